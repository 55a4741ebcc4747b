"""How long an account can be used without its owner, as the owner sees it on the profile's page."""

from dataclasses import dataclass

from socialpub.accounts import idle_tokens
from socialpub.accounts.remedies import Door
from socialpub.db.models import ProfileStatus
from socialpub.db.transaction import Row
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class TokenHealth:
    """Instants are stamps; None: not known, or there is no such token."""

    refused: bool
    """The network takes them no longer: the owner must connect the account again."""
    access_expires_at: str | None
    refresh_expires_at: str | None
    renewed_at: str | None
    """When tokens last came from the network."""
    renewable: bool
    """Whether a new access token can be had without the owner, unless they are refused."""
    warning: str | None
    """What the owner has to do within a week, and why."""
    missing: tuple[str, ...]
    """What the grant does not allow and what that costs, as sentences."""


def look(rt: Runtime, row: Row, door: Door) -> TokenHealth | None:
    """The tokens of a profile (`profiles.of_owner`); None when it is disconnected."""
    if row["status"] == ProfileStatus.DISCONNECTED:
        return None
    missing = rt.providers[row["provider"]].oauth.missing_scopes(frozenset(row["scopes"].split()))
    return TokenHealth(
        refused=row["status"] == ProfileStatus.REAUTH_REQUIRED,
        access_expires_at=row["access_expires_at"],
        refresh_expires_at=row["refresh_expires_at"],
        renewed_at=row["renewed_at"],
        renewable=bool(row["renewable"]),
        warning=idle_tokens.warning(row, rt.now(), door),
        missing=tuple(missing),
    )
