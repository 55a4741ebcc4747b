"""Grants: tokens and scopes as the operator gives them, as a network answers them, and as a profile stores them.

The operator gives one JSON object (contract section 7). Every mistake is reported at once, a misspelled key with the
nearest known name. Messages never contain a token. A value that a network leaves out does not change: an empty token
never overwrites a stored token.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo
from pydantic.alias_generators import to_camel

from socialpub.core import clock, validation
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.validation import format_mistakes, must_be
from socialpub.db.models import ProfileRow
from socialpub.providers.auth import MAX_TOKEN_LENGTH, TOKEN, Account, Tokens

FORM = (
    '{"accessToken": "…", "refreshToken": "…", "expiresAt": "2026-11-21T12:00:00Z", "refreshExpiresAt": "…", '
    '"scope": "…"}; all but accessToken may be left out.'
)

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LEFT_OUT: Any = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """One grant. `None`: the value is not known. Empty `scopes` mean the same."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    refresh_expires_at: datetime | None = None
    scopes: frozenset[str] | None = None


def read_credentials(text: str) -> Credentials:
    """Read the credentials in `text`. Raises OperatorError, which lists every mistake and the expected form."""
    try:
        document = json.loads(text)
    except ValueError as error:
        # The message of `json` contains the line and the column, and does not quote the text.
        raise OperatorError(f"The credentials are not JSON: {error}.", f"Use this form: {FORM}") from None
    if not isinstance(document, dict):
        raise OperatorError("The credentials are not a JSON object.", f"Use this form: {FORM}")
    credentials, mistakes = validation.parse(_CredentialsFile, document)
    if mistakes or credentials is None:
        sentences = [error_of_field.sentence for error_of_field in mistakes.errors]
        raise OperatorError(format_mistakes("The credentials have", sentences), f"Use this form: {FORM}")
    scopes = frozenset((credentials.scope or "").replace(",", " ").split())
    return Credentials(
        credentials.access_token,
        credentials.refresh_token,
        credentials.expires_at,
        credentials.refresh_expires_at,
        scopes or None,
    )


def _check_token(value: str, info: ValidationInfo) -> str:
    value = value.strip()
    if not value:
        may_be_left_out = info.field_name != "access_token"
        raise ValueError("must not be empty" + ("; leave it out when there is none" if may_be_left_out else ""))
    if len(value) > MAX_TOKEN_LENGTH:
        raise ValueError(f"has {len(value)} characters, which is too long for a token (at most {MAX_TOKEN_LENGTH})")
    if not TOKEN.fullmatch(value):
        raise ValueError(
            "contains spaces, line breaks or characters that a token cannot contain; paste the token again"
        )
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
    # A wrong refresh token is not among the data and has its own message.
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


# --- from a network's answer, and in a profile ------------------------------------------------------------------------


def from_answer(answer: Tokens, asked_at: datetime, previous: Credentials | None = None) -> Credentials:
    """Return the grant after this answer. Lifetimes count from the request."""
    redaction.add_secrets(answer.access_token, answer.refresh_token)
    previous = previous or Credentials("")
    return Credentials(
        answer.access_token,
        answer.refresh_token or previous.refresh_token,
        _ends(asked_at, answer.expires_in_seconds),
        _ends(asked_at, answer.refresh_expires_in_seconds) or previous.refresh_expires_at,
        answer.scopes or previous.scopes,
    )


def to_account(profile: ProfileRow) -> Account:
    return Account(profile.account_id, profile.username, profile.scopes, profile.facts, profile.id)


def open_access_token(secrets: Secrets, profile: ProfileRow) -> str:
    """Return the access token. The refresh token is opened as well, so that it is masked where a network quotes it.

    Raises OperatorError when the access token cannot be unsealed.
    """
    assert profile.access_token is not None
    with suppress(OperatorError):
        open_refresh_token(secrets, profile)
    return secrets.open(profile.access_token, "profile", profile.id, "access_token")


def open_refresh_token(secrets: Secrets, profile: ProfileRow) -> str | None:
    """Return the refresh token. Raises OperatorError when it cannot be unsealed."""
    sealed = profile.refresh_token
    return secrets.open(sealed, "profile", profile.id, "refresh_token") if sealed else None


def open_stored(secrets: Secrets, profile: ProfileRow) -> Credentials:
    """Return the grant of a profile. Raises OperatorError when its tokens cannot be unsealed."""
    return Credentials(
        open_access_token(secrets, profile),
        open_refresh_token(secrets, profile),
        clock.parse(profile.access_expires_at) if profile.access_expires_at else None,
        clock.parse(profile.refresh_expires_at) if profile.refresh_expires_at else None,
        profile.scopes,
    )


def token_columns(secrets: Secrets, profile_id: str, grant: Credentials, now: str) -> dict[str, Any]:
    """Return the columns of this profile for this grant, tokens sealed.

    `expires_at` is when the owner must act: with a refresh token, only the end of that token counts.
    """
    access_ends, refresh_ends = _stamp(grant.expires_at), _stamp(grant.refresh_expires_at)

    def seal(token: str | None, column: str) -> bytes | None:
        return secrets.seal(token, "profile", profile_id, column) if token else None

    return {
        "access_token": seal(grant.access_token, "access_token"),
        "refresh_token": seal(grant.refresh_token, "refresh_token"),
        "access_expires_at": access_ends,
        "refresh_expires_at": refresh_ends,
        "expires_at": refresh_ends if grant.refresh_token else access_ends,
        "scopes": grant.scopes or frozenset(),
        "renewed_at": now,
        "updated_at": now,
    }


def _ends(asked_at: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else clock.later(asked_at, timedelta(seconds=seconds))


def _stamp(instant: datetime | None) -> str | None:
    return None if instant is None else clock.stamp(instant)
