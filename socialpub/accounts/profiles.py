"""Profiles: the accounts that the appliance publishes to (contract section 3).

An account is connected once at a time. Nothing is saved before the network has said whose tokens these are, and once
`disconnect` has returned nothing is sent with a profile's tokens any more except their revocation.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from socialpub.accounts.credentials import Credentials
from socialpub.core import clock, ids
from socialpub.core.errors import InvalidRequest, NotFound, OperatorError
from socialpub.db import appliance_state
from socialpub.db.database import Reader, Row, Tx
from socialpub.db.models import Profile, ProfileStatus
from socialpub.providers.base import Identity, Provider
from socialpub.providers.errors import (
    AuthExpired,
    NotSent,
    ProviderError,
    RateLimited,
    Rejected,
    Unavailable,
)
from socialpub.runtime import Runtime

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Imported:
    profile_id: str
    missing: tuple[str, ...]
    """What this grant cannot do, as sentences."""
    revived: bool
    """The account was connected already: the same profile has new tokens."""


# --- reading ---------------------------------------------------------------------------------------------------------


def find(reader: Reader | Tx, profile_id: str) -> Profile | None:
    row = reader.one(f"SELECT {Profile.COLUMNS} FROM profile WHERE id = ?", (profile_id,))
    return None if row is None else Profile.of(row)


def list_all(reader: Reader) -> list[Row]:
    """Every profile, oldest first: what the API shows of it, its stored options (JSON), why it needs its owner, and
    whether its access can be renewed without one."""
    return reader.all(
        "SELECT id, name, provider, status, username, picture_url, expires_at, posts_count, created_at, updated_at, "
        "options, reason, refresh_token IS NOT NULL AS renewable FROM profile ORDER BY created_at, id"
    )


def count(reader: Reader) -> list[tuple[str, str, int]]:
    """How many profiles of each network are in each status."""
    rows = reader.all(
        "SELECT provider, status, count(*) FROM profile GROUP BY provider, status ORDER BY provider, status"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def is_connected(store: Reader | Tx, provider_name: str, account_id: str) -> bool:
    """Whether this account has a profile that is not disconnected."""
    row = store.one(
        "SELECT 1 FROM profile WHERE provider = ? AND account_id = ? AND status <> ?",
        (provider_name, account_id, ProfileStatus.DISCONNECTED.value),
    )
    return row is not None


def owner_acts_by(has_refresh_token: bool, access_ends: str | None, refresh_ends: str | None) -> str | None:
    """`expiresAt`: when the owner must act. With a refresh token only its own end counts, and X never tells that."""
    return refresh_ends if has_refresh_token else access_ends


# --- connecting ------------------------------------------------------------------------------------------------------


def import_account(rt: Runtime, provider_name: str, credentials: Credentials, name: str | None = None) -> Imported:
    """Connect the account that these tokens belong to, or give new ones to the profile that it already is.

    Asks the network, so not from the event loop. Raises OperatorError when the tokens are refused, when nothing could
    be published with them, or when the network cannot be asked; then nothing is saved.
    """
    provider = rt.providers[provider_name]
    if name is not None:
        name = check_name(name)
    check_grant(provider, credentials)
    identity, credentials = identify(rt, provider, credentials)
    return rt.write(save, provider, identity, credentials, name)


def reconnect(provider_name: str) -> str:
    """The command that connects an account of this network, again or for the first time."""
    return f"socialpub admin connect-profile {provider_name}"


def check_name(name: str) -> str:
    """The label, trimmed. Raises InvalidRequest at `name`."""
    name = name.strip()
    if not name or not name.isprintable():
        raise InvalidRequest.at("name", message="The name must be one line of visible text.")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest.at("name", message=f"The name may have {LONGEST_NAME} characters and has {len(name)}.")
    return name


def check_grant(provider: Provider, credentials: Credentials) -> None:
    """Raises OperatorError when no way of publishing is left in these scopes."""
    scopes = credentials.scopes or frozenset()
    if not provider.oauth.can_publish(scopes):
        raise OperatorError(
            f"With this grant nothing could be published to {provider.label}: "
            + " ".join(provider.oauth.missing_scopes(scopes)),
            f"Consent again, with everything that the app asks for: {reconnect(provider.name)}",
        )


def identify(rt: Runtime, provider: Provider, credentials: Credentials) -> tuple[Identity, Credentials]:
    """Whose tokens these are. An access token that has run out is renewed first, when there is a refresh token.

    Asks the network, so not from the event loop. Raises OperatorError.
    """
    scopes = credentials.scopes or frozenset()
    renewed = False
    try:
        ended = credentials.expires_at is not None and credentials.expires_at <= rt.now()
        if ended and credentials.refresh_token:
            credentials, renewed = _renew(rt, provider, credentials), True
        try:
            return provider.oauth.identify(rt.http, credentials.access_token, scopes), credentials
        except AuthExpired:
            if renewed or not credentials.refresh_token:
                raise
            credentials, renewed = _renew(rt, provider, credentials), True
            return provider.oauth.identify(rt.http, credentials.access_token, scopes), credentials
    except ProviderError as error:
        hint = remedy(provider, error)
        if renewed:
            hint += " The refresh token has been used in this attempt: import a newer one."
        raise OperatorError(f"{provider.label} did not say whose tokens these are: {error.message}", hint) from error


def _renew(rt: Runtime, provider: Provider, credentials: Credentials) -> Credentials:
    if appliance_state.paused_at(rt.reader):
        raise OperatorError(
            "The access token has run out, and while publishing is paused no token is refreshed.",
            "Import a fresh access token, or `socialpub admin resume` first.",
        )
    assert credentials.refresh_token is not None
    asked_at = rt.now()
    answer = provider.oauth.refresh(rt.http, credentials.refresh_token)
    return Credentials(
        answer.access_token,
        answer.refresh_token or credentials.refresh_token,
        _ends(asked_at, answer.expires_in_seconds),
        _ends(asked_at, answer.refresh_expires_in_seconds) or credentials.refresh_expires_at,
        answer.scopes or credentials.scopes,
    )


def _ends(asked_at: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else asked_at + timedelta(seconds=seconds)


def remedy(provider: Provider, error: ProviderError) -> str:
    """What to do about a call that failed while an account was being connected."""
    match error:
        case AuthExpired() | Rejected(reauth=True):
            return f"Let the account's owner consent again: {reconnect(provider.name)}"
        case NotSent() | Unavailable() | RateLimited():
            return "Nothing was saved. Try again in a while."
        case _:
            return f"Check [providers.{provider.name}] in the configuration and the app's page at {provider.label}."


def save(
    rt: Runtime, tx: Tx, provider: Provider, identity: Identity, credentials: Credentials, name: str | None
) -> Imported:
    """Keep this grant: in the profile that the account already is, else in a new one."""
    missing = tuple(provider.oauth.missing_scopes(credentials.scopes or frozenset()))
    access_ends = clock.stamp(credentials.expires_at) if credentials.expires_at else None
    refresh_ends = clock.stamp(credentials.refresh_expires_at) if credentials.refresh_expires_at else None
    columns: dict[str, Any] = {
        "status": ProfileStatus.ACTIVE.value,
        "reason": None,
        "username": identity.username,
        "picture_url": identity.picture_url,
        "facts": json.dumps(dict(identity.facts), ensure_ascii=False),
        "access_token": rt.secrets.seal(credentials.access_token),
        "refresh_token": rt.secrets.seal(credentials.refresh_token) if credentials.refresh_token else None,
        "access_expires_at": access_ends,
        "refresh_expires_at": refresh_ends,
        "expires_at": owner_acts_by(bool(credentials.refresh_token), access_ends, refresh_ends),
        "scopes": " ".join(sorted(credentials.scopes or ())),
        "renewed_at": tx.stamp,
        "warned_at": None,
        "updated_at": tx.stamp,
    }
    if name is not None:
        columns["name"] = name
    known = tx.one(
        "SELECT id FROM profile WHERE provider = ? AND account_id = ? AND status <> ?",
        (provider.name, identity.account_id, ProfileStatus.DISCONNECTED.value),
    )
    if known is not None:
        tx.update("profile", known["id"], **columns)
        return Imported(str(known["id"]), missing, revived=True)
    profile_id = ids.new(int(tx.now.timestamp() * 1000))
    label = identity.name or identity.username or identity.account_id
    columns = {"name": label.strip()[:LONGEST_NAME] or identity.account_id, **columns}
    tx.insert(
        "profile",
        id=profile_id,
        provider=provider.name,
        account_id=identity.account_id,
        created_at=tx.stamp,
        **columns,
    )
    return Imported(profile_id, missing, revived=False)


# --- changing --------------------------------------------------------------------------------------------------------


def rename(rt: Runtime, tx: Tx, profile_id: str, name: str) -> None:
    """Change the label. Posts keep the one they were accepted under."""
    _must_exist(tx, profile_id)
    tx.update("profile", profile_id, name=check_name(name), updated_at=tx.stamp)


def require_reauth(rt: Runtime, tx: Tx, profile_id: str, reason: str) -> None:
    """The network wants the owner: `active` becomes `reauthRequired`; other states stay."""
    tx.execute(
        "UPDATE profile SET status = ?, reason = ?, updated_at = ? WHERE id = ? AND status = ?",
        (ProfileStatus.REAUTH_REQUIRED.value, reason, tx.stamp, profile_id, ProfileStatus.ACTIVE.value),
    )


def disconnect(rt: Runtime, tx: Tx, profile_id: str) -> None:
    """End the connection; again is fine. The tokens stay for their revocation, which `revocation.py` does."""
    if _must_exist(tx, profile_id)["status"] == ProfileStatus.DISCONNECTED:
        return
    tx.update(
        "profile",
        profile_id,
        status=ProfileStatus.DISCONNECTED.value,
        disconnected_at=tx.stamp,
        updated_at=tx.stamp,
        expires_at=None,
        reason=None,
    )


def _must_exist(tx: Tx, profile_id: str) -> Row:
    row = tx.one("SELECT status FROM profile WHERE id = ?", (profile_id,))
    if row is None:
        raise NotFound("There is no profile with this id.")
    return row
