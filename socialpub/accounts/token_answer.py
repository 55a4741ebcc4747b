"""What a network's token answer becomes: values to go on with, and the columns in which a profile keeps them.

What the network left out keeps its former value; an empty token never overwrites a stored one.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from socialpub.accounts.credentials import Credentials
from socialpub.core import clock, held_secrets
from socialpub.core.crypto import Secrets
from socialpub.core.errors import OperatorError
from socialpub.db.models import Profile
from socialpub.db.transaction import Value
from socialpub.providers.oauth import Tokens


def credentials(answer: Tokens, asked_at: datetime, previous: Credentials | None = None) -> Credentials:
    """The grant after this answer. The network counts from when it was asked, so its seconds end a little early."""
    held_secrets.hold(answer.access_token, answer.refresh_token)
    previous = previous or Credentials("")
    return Credentials(
        answer.access_token,
        answer.refresh_token or previous.refresh_token,
        _ends(asked_at, answer.expires_in_seconds),
        _ends(asked_at, answer.refresh_expires_in_seconds) or previous.refresh_expires_at,
        answer.scopes or previous.scopes,
    )


def access_token(secrets: Secrets, profile: Profile) -> str:
    """With it the refresh token is in hand, too, which a network may know and quote. Raises OperatorError when it
    cannot be unsealed."""
    assert profile.access_token is not None
    with suppress(OperatorError):
        refresh_token(secrets, profile)
    return secrets.open(profile.access_token, "profile", profile.id, "access_token")


def refresh_token(secrets: Secrets, profile: Profile) -> str | None:
    """Raises OperatorError when it cannot be unsealed."""
    sealed = profile.refresh_token
    return secrets.open(sealed, "profile", profile.id, "refresh_token") if sealed else None


def stored(secrets: Secrets, profile: Profile) -> Credentials:
    """The grant that a profile holds. Raises OperatorError when its tokens cannot be unsealed."""
    return Credentials(
        access_token(secrets, profile),
        refresh_token(secrets, profile),
        clock.parse(profile.access_expires_at) if profile.access_expires_at else None,
        clock.parse(profile.refresh_expires_at) if profile.refresh_expires_at else None,
        profile.scopes,
    )


def columns(secrets: Secrets, profile_id: str, grant: Credentials, now: str) -> dict[str, Value]:
    """The columns of this profile for this grant, tokens sealed. `expires_at` is when the owner must act: with a
    refresh token only its own end counts, and X never names that."""
    access_ends, refresh_ends = _stamp(grant.expires_at), _stamp(grant.refresh_expires_at)

    def seal(token: str | None, column: str) -> bytes | None:
        return secrets.seal(token, "profile", profile_id, column) if token else None

    return {
        "access_token": seal(grant.access_token, "access_token"),
        "refresh_token": seal(grant.refresh_token, "refresh_token"),
        "access_expires_at": access_ends,
        "refresh_expires_at": refresh_ends,
        "expires_at": refresh_ends if grant.refresh_token else access_ends,
        "scopes": " ".join(sorted(grant.scopes or ())),
        "renewed_at": now,
        "updated_at": now,
    }


def _ends(asked_at: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else asked_at + timedelta(seconds=seconds)


def _stamp(instant: datetime | None) -> str | None:
    return None if instant is None else clock.stamp(instant)
