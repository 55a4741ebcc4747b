"""Conditions that a column contains a text in any case.

SQLite's LIKE is fast and ignores the case of ASCII letters only. Other letters are searched in both cases. For many
such letters, the search uses the usual spellings: as given, lower case, capitalized, title case, upper case.
"""

from functools import reduce
from itertools import product
from operator import or_

from peewee import SQL, ColumnBase, NodeList, TextField, fn

MAX_SEARCH_LENGTH = 10_000
"""A pattern in SQLite may have 50,000 bytes."""

_SIGNS = "\\%_"
_MAX_FOREIGN = 3
"""Up to this number of letters, every combination of cases is searched."""


def contains(column: TextField, text: str) -> ColumnBase:
    """Return the condition that `column` contains `text` in any case.

    `text` does not contain wildcards. The condition is false for a text that no column can contain.
    """
    if len(text) > MAX_SEARCH_LENGTH or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return SQL("0")
    if text.lower() == text.upper():
        return fn.instr(column, text)  # without case, such as 日本 and 🌅
    foreign = [letter for letter in text if _is_foreign(letter)]
    if not foreign:
        return column.contains(text)
    if _is_foreign(text[0]):
        # LIKE is slow with such a first letter, so it only runs on texts that contain the letter.
        narrow: ColumnBase = reduce(or_, (fn.instr(column, letter) for letter in _cases(text[0])))
    else:
        escaped = "".join(f"\\{letter}" if letter in _SIGNS else letter for letter in text)
        wildcards = "".join("_" if _is_foreign(letter) else letter for letter in escaped)
        narrow = column ** NodeList((f"%{wildcards}%", SQL("ESCAPE '\\'")))
    return narrow & reduce(or_, (column.contains(spelling) for spelling in _spellings(text, len(foreign))))


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and len(_cases(letter)) > 1


def _cases(letter: str) -> tuple[str, ...]:
    """Return the letter in its cases, lower case first."""
    return tuple(dict.fromkeys(form for form in (letter.lower(), letter.upper(), letter) if len(form) == 1))


def _spellings(text: str, foreign: int) -> list[str]:
    if foreign > _MAX_FOREIGN:
        return list(dict.fromkeys((text.lower(), text, text.capitalize(), text.title(), text.upper())))
    choices = (_cases(letter) if _is_foreign(letter) else (letter,) for letter in text)
    return ["".join(letters) for letters in product(*choices)]
