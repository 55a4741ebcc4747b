"""The options of a post: one table per network, one reader for all.

The reader neither guesses nor ignores anything. A misspelled key, a wrong type or an unknown value is an error at its
field, because a misspelled privacy level must never publish publicly.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from socialpub.core import units
from socialpub.core.clock import parse_id
from socialpub.core.errors import FieldError, end_sentence
from socialpub.core.validation import did_you_mean, nearest
from socialpub.providers.preview import utf16_units


class OptionType(StrEnum):
    """The type of a value in JSON. `"5"` is not 5."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    """A whole number from `Option.minimum` to `Option.maximum`."""
    TEXT = "text"
    """A string that is not blank, of at most `Option.maximum` UTF-16 units."""
    DIGITS = "digits"
    """An id of the network: a string of at most `Option.maximum` digits."""
    LINK = "link"
    """A complete http or https URL of at most `Option.maximum` UTF-16 units."""
    COLOR = "color"
    """Red, green and blue in hexadecimal digits: `#6E7874`."""
    CHOICE = "choice"
    CHOICES = "choices"
    """A list of one or more of `Option.values` without repetition."""
    LANGUAGES = "languages"
    """A list of one to `Option.maximum` language tags without repetition: `de`, `pt-BR`, `zh-Hant-TW`."""
    ARTIFACT = "artifact"
    """The id of an artifact. `Content.option_files` has its file."""
    POST = "post"
    """The id of a post of this appliance, to which the post replies. The post waits for that post. Then
    `Option.sent_as` has that post's id at the network."""

    @property
    def json_type(self) -> str:
        match self:
            case OptionType.BOOLEAN | OptionType.INTEGER:
                return self.value
            case OptionType.CHOICES | OptionType.LANGUAGES:
                return "array"
            case _:
                return "string"


def _never(_chosen: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Option:
    """One option. Its snake_case spelling and its `aliases` are accepted.

    `meaning` documents the option and each of its `values`. `hint` ends the message about a wrong value. `of_one_post`:
    the form for a profile's defaults does not offer the option. `closed` says why the network no longer supports the
    option, which is still accepted, but no form offers it. `sent_as` is the network's own option for a `POST`. Both
    together are refused. `required(chosen)`: a post with these other options needs a value.
    """

    name: str
    type: OptionType
    meaning: str = ""
    default: bool | int | str | None = None
    values: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None
    aliases: tuple[str, ...] = ()
    hint: str | Callable[[], str] = ""
    of_one_post: bool = False
    closed: str = ""
    sent_as: str = ""
    required: Callable[[Mapping[str, Any]], bool] = _never
    spellings: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spellings", frozenset({self.name, self.snake_name, *self.aliases}))

    @property
    def snake_name(self) -> str:
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()


Table = tuple[Option, ...]
Options = dict[str, Any]
"""The options of a post at one network, by their canonical camelCase keys."""

MAX_BYTES = 16 * 1024
"""The limit of one network's options as compact JSON (contract 1.19)."""

MAX_KEYS = 50
"""The maximum number of keys. No table has more, with all spellings."""


def read_options(provider: str, table: Table, given: Mapping[str, Any]) -> tuple[Options, list[FieldError]]:
    """Return the valid options by their canonical names, and an error for each of the others.

    `null` means "not given", so a post can cancel a stored default.
    """
    options: Options = {}
    spelt: dict[str, str] = {}
    problems: list[FieldError] = []
    if len(given) > MAX_KEYS:
        # The search for the nearest name costs time, and a caller may send a hundred thousand keys.
        return {}, [FieldError(("providerOptions", provider), f"Give at most {MAX_KEYS} options, not {len(given)}.")]
    for key, value in given.items():
        path = ("providerOptions", provider, key)
        option = _find(table, key)
        if option is None:
            problems.append(FieldError(path, _unknown(table, key)))
        elif option.name in spelt:
            problems.append(FieldError(path, f"{key} and {spelt[option.name]} are the same option. Use only one."))
        else:
            spelt[option.name] = key
            wrong = None if value is None else _wrong(option, value)
            if wrong:
                hint = option.hint() if callable(option.hint) else option.hint
                problems.append(FieldError(path, " ".join(filter(None, (f"{key} {wrong}.", hint)))))
            elif value is not None:
                options[option.name] = value
    return options, problems


def read_value(table: Table, key: str, text: str) -> Any:
    """Return the value that a person typed: JSON if that fits the option, and otherwise the text.

    An id of digits and a title such as "2026" are texts. Commas separate the values of a list.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    option = _find(table, key)
    if option is None:
        return value if isinstance(value, bool | list) else text
    if isinstance(value, str) and option.type.json_type == "array":
        return [part.strip() for part in value.split(",")]
    return text if value is not None and _wrong(option, value) and not _wrong(option, text) else value


def merge_options(table: Table, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
    """Return stored defaults overridden by a post's own keys in any spelling, unchecked."""
    if not (stored and own):
        return {**stored, **own}
    names = {spelling: option.name for option in table for spelling in option.spellings}
    taken = {names.get(key, key) for key in own}
    return {**{key: value for key, value in stored.items() if names.get(key, key) not in taken}, **own}


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


TOO_LARGE = f"may take at most {units.size(MAX_BYTES)} as JSON"


def is_too_large(options: Mapping[str, Any]) -> bool:
    return bool(options) and len(_COMPACT.encode(options).encode()) > MAX_BYTES


def is_surely_too_large(given: Any) -> bool:
    """Return whether values exceed MAX_BYTES in any notation. Escapes and wide characters do not count.

    The count stops at the limit, so the time is limited for values of any size.
    """
    left, waiting = MAX_BYTES, [given]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            left -= len(value) + len('""')
        elif isinstance(value, dict | list):
            left -= len(value)  # a comma or bracket for each item
            if left >= 0:
                waiting += [*value, *value.values()] if isinstance(value, dict) else value
        else:
            left -= 1
        if left < 0:
            return True
    return False


def list_artifacts(table: Table, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the key as given and the id of each artifact in these options."""
    return [
        (key, value)
        for key, value in given.items()
        if isinstance(value, str) and (option := _find(table, key)) is not None and option.type is OptionType.ARTIFACT
    ]


def find_post_option(table: Table) -> Option | None:
    """Return the option that names the post to which a post replies. None: the network does not have such an option."""
    return next((option for option in table if option.type is OptionType.POST), None)


def spelled(option_name: str, table: Table, given: Mapping[str, Any]) -> str | None:
    """Return the key of this option as given. None: the option is not given, or is `null`."""
    return next(
        (
            key
            for key, value in given.items()
            if value is not None and (option := _find(table, key)) is not None and option.name == option_name
        ),
        None,
    )


def _find(table: Table, key: str) -> Option | None:
    return next((option for option in table if key in option.spellings), None)


def _unknown(table: Table, key: str) -> str:
    names = [option.name for option in table]
    return end_sentence(FieldError((key,), did_you_mean(_nearest(key, _spellings(table)), names)).sentence)


@lru_cache(maxsize=16)
def _spellings(table: Table) -> tuple[str, ...]:
    return tuple(spelling for option in table for spelling in (option.name, *sorted(option.spellings)))


# One post may go to a hundred profiles with the same wrong keys, so each key is compared once.
_nearest = lru_cache(maxsize=256)(nearest)


def _wrong(option: Option, value: Any) -> str | None:
    match option.type:
        case OptionType.BOOLEAN:
            fault = None if isinstance(value, bool) else f"must be true or false, not {_show(value)}"
        case OptionType.INTEGER:
            fault = _wrong_integer(option, value)
        case OptionType.TEXT:
            fault = _wrong_text(option, value)
        case OptionType.DIGITS:
            fault = _wrong_digits(option, value)
        case OptionType.LINK:
            fault = _wrong_text(option, value) or _wrong_link(value)
        case OptionType.COLOR:
            fault = _wrong_text(option, value) or _wrong_color(value)
        case OptionType.ARTIFACT:
            named = isinstance(value, str) and bool(value.strip())
            fault = None if named else f"must be the id of an artifact, not {_show(value)}"
        case OptionType.POST:
            named = isinstance(value, str) and parse_id(value) is not None
            fault = None if named else f"must be the id of a post, not {_show(value)}"
        case OptionType.CHOICE:
            fault = None if value in option.values else _not_among(option.values, value)
        case OptionType.CHOICES:
            fault = _wrong_choices(option, value)
        case OptionType.LANGUAGES:
            fault = _wrong_languages(option, value)
    return fault


def _wrong_digits(option: Option, value: Any) -> str | None:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]+", value):
        return f"must be a string of digits, not {_show(value)}"
    if option.maximum is not None and len(value) > option.maximum:
        return f"may have at most {option.maximum} digits, but has {len(value)}"
    return None


def _wrong_link(value: str) -> str | None:
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = None
    if parts is None or parts.scheme.lower() not in ("http", "https") or not parts.netloc or re.search(r"\s", value):
        return "must be a complete http or https URL, such as https://example.com/page"
    return None


def _wrong_color(value: str) -> str | None:
    return None if re.fullmatch(r"#[0-9A-Fa-f]{6}", value) else "must be a color such as #6E7874"


def _wrong_integer(option: Option, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"must be a whole number, not {_show(value)}"
    if value < option.minimum:
        return f"must be at least {option.minimum}, not {_show(value)}"
    if option.maximum is not None and value > option.maximum:
        return f"must be at most {option.maximum}, not {_show(value)}"
    return None


def _wrong_text(option: Option, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be a string, not {_show(value)}"
    if not value.strip():
        return "must not be empty"
    units = utf16_units(value)
    if option.maximum is not None and units > option.maximum:
        return f"may have at most {option.maximum} characters, but has {units}"
    return None


def _wrong_choices(option: Option, value: Any) -> str | None:
    if not isinstance(value, list):
        return f"must be a list of {', '.join(option.values)}, not {_show(value)}"
    if not value:
        return f"must not be empty: use at least one of {', '.join(option.values)}"
    unknown = [choice for choice in value if choice not in option.values]
    if unknown:
        return _not_among(option.values, unknown[0], "must contain only")
    return None if len(set(value)) == len(value) else "must not contain a value twice"


LANGUAGE_TAG = re.compile("[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?")
"""The language, script and region of BCP 47. Networks show posts by these parts."""


def _wrong_languages(option: Option, value: Any) -> str | None:
    if not isinstance(value, list):
        return f"must be a list of language tags, not {_show(value)}"
    if not value:
        return 'must not be empty: use at least one language tag, such as "en"'
    if option.maximum is not None and len(value) > option.maximum:
        return f"may have at most {option.maximum} language tags, but has {len(value)}"
    for language in value:
        if not isinstance(language, str) or not LANGUAGE_TAG.fullmatch(language):
            return f'must contain only language tags such as "en" or "pt-BR", not {_show(language)}'
    return None if len({language.lower() for language in value}) == len(value) else "must not contain a value twice"


def _not_among(values: tuple[str, ...], value: Any, rule: str = "must be one of") -> str:
    wrong = f"{rule} {', '.join(values)}, not {_show(value)}"
    close = nearest(value, values) if isinstance(value, str) else None
    return f"{wrong} (did you mean {close}?)" if close else wrong


def _show(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:59]}…"'
    if isinstance(value, int | float):
        return repr(value) if isinstance(value, float) or abs(value) < 10**20 else "a number out of range"
    return "a list" if isinstance(value, list | tuple) else "an object"
