"""The tokens of an account as the operator hands them over: one JSON object, read strictly (contract section 7).

Every mistake is reported at once, a misspelt key with the name that was probably meant. No message ever shows the value
of a token.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo
from pydantic.alias_generators import to_camel

from socialpub.core import validation
from socialpub.core.errors import OperatorError
from socialpub.core.validation import list_mistakes, must_be

FORM = (
    '{"accessToken": "…", "refreshToken": "…", "expiresAt": "2026-11-21T12:00:00Z", "refreshExpiresAt": "…", '
    '"scope": "…"}; all but accessToken may be left out.'
)
MAX_TOKEN_LENGTH = 8192
"""Far above what networks issue: whatever is longer is a whole file that was pasted into the field."""

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LEFT_OUT: Any = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """One grant. `None`: not known; `scopes` empty is the same as None."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    refresh_expires_at: datetime | None = None
    scopes: frozenset[str] | None = None


def read(text: str) -> Credentials:
    """The credentials in `text`. Raises OperatorError, which lists every mistake and the form that is expected."""
    try:
        given = json.loads(text)
    except ValueError as error:
        # json's own message names line and column and never quotes the text.
        raise OperatorError(f"The credentials are not JSON: {error}.", f"Expected is {FORM}") from None
    if not isinstance(given, dict):
        raise OperatorError("The credentials are not a JSON object.", f"Expected is {FORM}")
    found, mistakes = validation.read(_CredentialsFile, given)
    if mistakes or found is None:
        sentences = [one.sentence for one in mistakes.errors]
        raise OperatorError(list_mistakes("The credentials have", sentences), f"Expected is {FORM}")
    scopes = frozenset((found.scope or "").replace(",", " ").split())
    return Credentials(
        found.access_token, found.refresh_token, found.expires_at, found.refresh_expires_at, scopes or None
    )


def _check_token(value: str, info: ValidationInfo) -> str:
    value = value.strip()
    if not value:
        may_be_left_out = info.field_name != "access_token"
        raise ValueError("must not be empty" + ("; leave it out when there is none" if may_be_left_out else ""))
    if len(value) > MAX_TOKEN_LENGTH:
        raise ValueError(f"has {len(value)} characters, which is too long for a token (at most {MAX_TOKEN_LENGTH})")
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        raise ValueError("holds spaces, line breaks or characters that no token has; paste it again")
    return value


def _read_date_time(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError(must_be("a string such as 2026-11-21T12:00:00Z", value))
    try:
        if not _DATE_TIME.fullmatch(value):
            raise ValueError
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date-time with an offset, such as 2026-11-21T12:00:00Z") from None


def _check_refresh_token_is_given(value: datetime, info: ValidationInfo) -> datetime:
    # A refresh token that was given and is wrong is not among the data: that mistake is reported by itself.
    if info.data.get("refresh_token", "") is None:
        raise ValueError("is given without a refreshToken")
    return value


_Token = Annotated[str, AfterValidator(_check_token)]
_DateTime = Annotated[datetime, BeforeValidator(_read_date_time)]


class _CredentialsFile(BaseModel):
    """The JSON object. Keys may be left out, but none may be null."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    access_token: _Token
    refresh_token: _Token = _LEFT_OUT
    expires_at: _DateTime = _LEFT_OUT
    refresh_expires_at: Annotated[_DateTime, AfterValidator(_check_refresh_token_is_given)] = _LEFT_OUT
    scope: str = _LEFT_OUT
