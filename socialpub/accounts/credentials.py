"""The tokens of an account as its owner hands them over: one JSON object, read strictly (contract section 7).

A misspelt key is told with the name that was probably meant, and every mistake is told at once. No message ever shows
the value of a token.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from socialpub.core.errors import OperatorError
from socialpub.core.spelling import nearest

KEYS = ("accessToken", "refreshToken", "expiresAt", "refreshExpiresAt", "scope")
FORM = (
    '{"accessToken": "…", "refreshToken": "…", "expiresAt": "2026-11-21T12:00:00Z", "refreshExpiresAt": "…", '
    '"scope": "…"}; all but accessToken may be left out.'
)
LONGEST_TOKEN = 8192
"""Far above what networks issue; a whole file pasted into the field is told as such."""

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Credentials:
    """One grant. `None` means the owner did not say; `scopes` empty is the same as None."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    refresh_expires_at: datetime | None = None
    scopes: frozenset[str] | None = None


def read(text: str) -> Credentials:
    """The credentials in `text`. Raises OperatorError, which tells every mistake and the form that is expected."""
    try:
        given = json.loads(text)
    except ValueError as error:
        # json's own message names line and column and never quotes the text.
        raise OperatorError(f"The credentials are not JSON: {error}.", f"Expected is {FORM}") from None
    if not isinstance(given, dict):
        raise OperatorError("The credentials are no JSON object.", f"Expected is {FORM}")
    mistakes: list[str] = [_unknown(key) for key in given if key not in KEYS]
    values = {
        "accessToken": _token(given, "accessToken", mistakes),
        "refreshToken": _token(given, "refreshToken", mistakes),
        "expiresAt": _instant(given, "expiresAt", mistakes),
        "refreshExpiresAt": _instant(given, "refreshExpiresAt", mistakes),
        "scope": _scopes(given, mistakes),
    }
    if "accessToken" not in given:
        mistakes.append("accessToken is missing")
    if given.get("refreshExpiresAt") is not None and "refreshToken" not in given:
        mistakes.append("refreshExpiresAt is given without a refreshToken")
    if mistakes:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise OperatorError(
            f"The credentials have {count}:\n" + "\n".join(f"- {line}" for line in mistakes), f"Expected is {FORM}"
        )
    return Credentials(
        values["accessToken"], values["refreshToken"], values["expiresAt"], values["refreshExpiresAt"], values["scope"]
    )


def _unknown(key: str) -> str:
    shown = key if len(key) <= 60 else key[:59] + "…"
    spelt = re.sub(r"_([a-z])", lambda match: match[1].upper(), key)
    close = spelt if spelt in KEYS else nearest(key, KEYS)
    return f"unknown key {shown}: " + (f"did you mean {close}?" if close else f"known are {', '.join(KEYS)}")


def _token(given: dict[str, Any], key: str, mistakes: list[str]) -> Any:
    if key not in given:
        return None
    value = given[key]
    if not isinstance(value, str):
        mistakes.append(f"{key} must be a text, not {_kind(value)}")
        return None
    value = value.strip()
    if not value:
        mistakes.append(f"{key} must not be empty" + ("; leave it out when there is none" if key != KEYS[0] else ""))
    elif len(value) > LONGEST_TOKEN:
        mistakes.append(f"{key} has {len(value)} characters, which is too long for a token (at most {LONGEST_TOKEN})")
    elif not re.fullmatch(r"[\x21-\x7e]+", value):
        mistakes.append(f"{key} holds spaces, line breaks or characters that no token has; paste it again")
    return value


def _instant(given: dict[str, Any], key: str, mistakes: list[str]) -> Any:
    if key not in given:
        return None
    value = given[key]
    if not isinstance(value, str):
        mistakes.append(f"{key} must be a text such as 2026-11-21T12:00:00Z, not {_kind(value)}")
        return None
    try:
        if not _DATE_TIME.fullmatch(value):
            raise ValueError
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        shown = value if len(value) <= 40 else value[:39] + "…"
        mistakes.append(f"{key} must be a date-time with an offset, such as 2026-11-21T12:00:00Z, not {shown!r}")
        return None


def _scopes(given: dict[str, Any], mistakes: list[str]) -> Any:
    if "scope" not in given:
        return None
    value = given["scope"]
    if not isinstance(value, str):
        mistakes.append(f"scope must be a text with the scopes between spaces or commas, not {_kind(value)}")
        return None
    return frozenset(value.replace(",", " ").split()) or None


def _kind(value: Any) -> str:
    if value is None:
        return "null (leave the key out when there is nothing to say)"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"
