"""What a column must hold, as a condition of SQL.

SQLite's LIKE reads a text fast and folds the case of ASCII letters only. Every other letter that has a case is looked
for in both; where they are many, in the ways in which people write: as it was asked for, small, Capitalised, in
capitals.
"""

from itertools import product

MAX_LENGTH = 10_000
"""A pattern of SQLite may have 50,000 bytes."""

_SIGNS = "\\%_"
_MAX_FOREIGN = 3
"""So many letters are looked for in every mixture of their cases."""


def condition(column: str, text: str) -> tuple[str, list[str]]:
    """A condition that holds where `column` has `text` somewhere, whatever its case, and its parameters. Nothing in
    `text` is a sign of a pattern; one that no column can hold is found nowhere."""
    if len(text) > MAX_LENGTH or "\0" in text or not _is_unicode(text):
        return "0", []
    if text.lower() == text.upper():
        return f"instr({column}, ?)", [text]  # without capitals, such as 日本 and 🌅
    foreign = [letter for letter in text if _is_foreign(letter)]
    if not foreign:
        return _like(column), [_pattern(text)]
    if _is_foreign(text[0]):
        # LIKE is slow with such a beginning, so it is only tried where that letter is met.
        first = _cases(text[0])
        narrow, params = " OR ".join([f"instr({column}, ?)"] * len(first)), [*first]
    else:
        narrow, params = _like(column), [_pattern(text, foreign="_")]
    spellings = _spellings(text, len(foreign))
    spelled = " OR ".join([_like(column)] * len(spellings))
    return f"({narrow}) AND ({spelled})", [*params, *map(_pattern, spellings)]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _like(column: str) -> str:
    return f"{column} LIKE ? ESCAPE '\\'"


def _pattern(text: str, foreign: str | None = None) -> str:
    """The text somewhere; with `foreign` that stands for each of the letters that LIKE does not fold."""
    letters = (foreign if foreign and _is_foreign(letter) else letter for letter in _escaped(text))
    return f"%{''.join(letters)}%"


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in _SIGNS else letter for letter in text)


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and len(_cases(letter)) > 1


def _cases(letter: str) -> tuple[str, ...]:
    """The letter, small first, in each case that is one letter, too."""
    return tuple(dict.fromkeys(one for one in (letter.lower(), letter.upper(), letter) if len(one) == 1))


def _spellings(text: str, foreign: int) -> list[str]:
    if foreign > _MAX_FOREIGN:
        return list(dict.fromkeys((text.lower(), text, text.capitalize(), text.title(), text.upper())))
    choices = (_cases(letter) if _is_foreign(letter) else (letter,) for letter in text)
    return ["".join(letters) for letters in product(*choices)]
