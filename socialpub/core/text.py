"""Text as it can be shown to a person: what would steer their terminal is spelled out.

Texts come from callers, networks and files. A control character among them can rewrite what a terminal shows, and a
direction mark can turn what is read around. Letters of every script stay as they are, whichever way they run.
"""

import re

_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_FORMATS = (
    r"\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f"
)
"""The categories Cf, Zl and Zp of Unicode 16."""
_INVISIBLE = re.compile(rf"[{_CONTROLS}{_FORMATS}\ud800-\udfff]")

_EMOJI = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_JOINED_EMOJI = re.compile(f"(?<={_EMOJI})\ufe0f?\u200d(?={_EMOJI})|(?<=\ufe0f)\u200d(?={_EMOJI})")
"""A joiner between two emoji makes one of them: a family, a flag. It steers nothing."""


def visible(text: str, keep: str = "") -> str:
    """`text` with control, direction and zero-width characters spelled out (`\\x1b`, `\\u202e`), line breaks too unless
    they are among `keep`. Emoji that are joined stay joined."""
    if text.isprintable():
        return text
    joiners = {place for found in _JOINED_EMOJI.finditer(text) for place in range(*found.span())}

    def spelled(found: re.Match[str]) -> str:
        char = found[0]
        return char if char in keep or found.start() in joiners else _name(char)

    return _INVISIBLE.sub(spelled, text)


def visible_json(text: str) -> str:
    """JSON that means the same, with such characters escaped as JSON has it. What is outside of strings stays."""
    if text.isprintable():
        return text
    return _INVISIBLE.sub(lambda found: found[0] if found[0] == "\n" else _json_name(found[0]), text)


def _name(char: str) -> str:
    return repr(char)[1:-1]


def _json_name(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
