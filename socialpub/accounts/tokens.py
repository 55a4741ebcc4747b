"""The tokens of a profile: how they are stored, and one refresh at a time, stored before its use.

A refresh spends the old refresh token. Only a response that refuses the refresh token makes the owner connect again; an
outage or a wrong app secret does not. A value that a network leaves out does not change: an empty token never
overwrites a stored token.
"""

import secrets as random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeGuard

from socialpub.accounts import profiles
from socialpub.core import actor, clock, logging
from socialpub.core.errors import OperatorError, SocialpubError, Unavailable
from socialpub.core.locks import FileLock
from socialpub.core.secrets import redaction
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import audit_log, counters, delivery_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.counters import Event
from socialpub.providers.auth import Account, Tokens
from socialpub.providers.base import Provider, Withdrawn
from socialpub.providers.responses import AppRefused, NoAnswer, NotSent, ProviderError, Rejected
from socialpub.runtime import Runtime

LOCK_TRIES, LOCK_PAUSE_SECONDS = 20, 0.05
RESERVED_BYTES = 32 * 1024
"""More bytes than the longest pair of tokens needs."""

log = logging.get_logger(__name__)


# --- a grant, and the columns of its profile -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Credentials:
    """One grant. `None`: the value is not known. Empty `scopes` mean the same."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    refresh_expires_at: datetime | None = None
    scopes: frozenset[str] | None = None


def from_response(response: Tokens, asked_at: datetime, previous: Credentials | None = None) -> Credentials:
    """Return the grant after this response. Lifetimes count from the request."""
    redaction.add_secrets(response.access_token, response.refresh_token)
    previous = previous or Credentials("")
    return Credentials(
        response.access_token,
        response.refresh_token or previous.refresh_token,
        _ends(asked_at, response.expires_in_seconds),
        _ends(asked_at, response.refresh_expires_in_seconds) or previous.refresh_expires_at,
        response.scopes or previous.scopes,
    )


def to_account(profile: ProfileRow) -> Account:
    """Return the account as networks know it, with the scopes of its grant."""
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


# --- access tokens that work now --------------------------------------------------------------------------------------


class Paused(NotSent):
    """A paused installation does not refresh tokens, because the original installation may need the refresh token."""


class Locked(NotSent):
    """Another process changes these tokens now."""


class NotRenewed(NotSent):
    """The token endpoint did not return a usable response. The tokens are kept and refreshed later."""


class RefreshOutcome(StrEnum):
    """The counted outcome of a refresh."""

    RENEWED = "renewed"
    REFUSED = "refused"
    """The account must be connected again."""
    FAILED = "failed"
    """An unusable response, or a refusal of the app: retried later."""


def load_fresh(rt: Runtime, profile_id: str) -> str:
    """Return an access token that works now. Refresh an expiring token.

    Asks the network: do not call on the event loop. Raises `Withdrawn` (disconnected), `Rejected` with `reauth` (the
    owner must connect again), `AppRefused` (the app's credentials), or an error to retry later: `Paused`, `NotRenewed`,
    `NotSent`, `Throttled`.
    """
    profile = _require_usable(rt, profile_id)
    token = load_valid(rt, profile)
    if token is not None:
        return token
    spent = open_access_token(rt.secrets, profile) if _is_expiring(rt, profile) else None
    return replace_spent(rt, profile_id, spent)


def load_valid(rt: Runtime, profile: ProfileRow) -> str | None:
    """Return the token of a usable profile. None: it expires soon, or a pair waits to be stored."""
    if rt.tokens.find_pending(profile.id) is not None or _is_expiring(rt, profile):
        return None
    return open_access_token(rt.secrets, profile)


def renew(rt: Runtime, profile_id: str) -> None:
    """Request a new pair now, and record that in the audit log for an owner. Raises as `load_fresh` does.

    Without a refresh token it raises `Rejected`, and the profile's status does not change.
    """
    profile = _require_usable(rt, profile_id)
    if profile.refresh_token is None:
        raise Rejected("The profile does not have a refresh token, so the access token cannot be renewed.", reauth=True)
    replace_spent(rt, profile_id, open_access_token(rt.secrets, profile))
    if actor.is_owner(actor.current()):
        rt.write(_record_refresh, profile)


def _record_refresh(rt: Runtime, tx: Database, profile: ProfileRow) -> None:
    audit_log.record(tx, AuditAction.PROFILE_REFRESHED, profile.id, profile.name, provider=profile.provider)


def store_pending(rt: Runtime) -> None:
    """Store the pairs that could not be stored when they arrived. Raises Unavailable."""
    for profile_id in rt.tokens.list_pending():
        try:
            with suppress(Locked), _locked(rt, profile_id):
                _store_pending(rt, profile_id)
        except Unavailable:
            raise  # the disk fails for every account
        except Exception:
            log.error("the new tokens of an account could not be stored", profile=profile_id, exc_info=True)


def _require_usable(rt: Runtime, profile_id: str) -> ProfileRow:
    profile = profile_rows.find(rt.db, profile_id)
    if profile is None or profile.status == ProfileStatus.DISCONNECTED or profile.access_token is None:
        raise Withdrawn("The profile is disconnected.")
    if profile.status == ProfileStatus.REAUTH_REQUIRED:
        raise Rejected(profile.reason or "The account must be connected again.", reauth=True)
    return profile


def _is_expiring(rt: Runtime, profile: ProfileRow) -> bool:
    if profile.refresh_token is None or profile.access_expires_at is None:
        return False  # without an expiry, the network answers 401
    early = timedelta(seconds=rt.providers[profile.provider].auth.refresh_early_seconds)
    return clock.parse(profile.access_expires_at) - rt.now() < early


# --- one refresh ------------------------------------------------------------------------------------------------------


def replace_spent(rt: Runtime, profile_id: str, spent: str | None) -> str:
    """Return another token than `spent`, which the network refused (401) or which is about to expire.

    None: store a pending response, and return the current token. Raises as `load_fresh` does.
    """
    with _locked(rt, profile_id):
        _store_pending(rt, profile_id)
        profile = _require_usable(rt, profile_id)
        token = open_access_token(rt.secrets, profile)
        if token != spent:
            return token  # another process has renewed it meanwhile
        provider = rt.providers[profile.provider]
        if profile.refresh_token is None:
            reason = f"{provider.label} no longer accepts the access token, and there is no refresh token."
            return _give_up(rt, profile, Rejected(f"{reason} Connect the account again.", reauth=True))
        if appliance_state.paused_at(rt.db):
            raise Paused("No token is refreshed while publishing is paused.")
        require_disk_space(rt)
        asked_at = rt.now()
        try:
            response = _ask(rt, provider, profile)
        except Rejected as refused:
            _count(rt, provider, RefreshOutcome.REFUSED)
            return _give_up(rt, profile, refused)
        except ProviderError:
            _count(rt, provider, RefreshOutcome.FAILED)
            raise
        # The old refresh token is spent, so the response stays in memory until it is stored.
        rt.tokens.keep_pending(profile, response, asked_at)
        _store_pending(rt, profile_id)
        # The stored grant counts: an import may have replaced the pair, or the profile may be unusable now.
        return open_access_token(rt.secrets, _require_usable(rt, profile_id))


def require_disk_space(rt: Runtime) -> None:
    """Raise Unavailable if the database cannot store new tokens.

    A refresh token works once, so a response that cannot be stored costs the account.
    """
    filler = random.token_hex(RESERVED_BYTES // 2)
    rt.write(lambda _, tx: appliance_state.put(tx, appliance_state.TOKEN_SPACE, filler))


def _ask(rt: Runtime, provider: Provider, profile: ProfileRow) -> Tokens:
    """Request a new pair. Raises errors that mean “not sent”, or `Rejected` if the owner must consent again."""
    refresh_token, http = open_refresh_token(rt.secrets, profile), rt.http_for(provider.name)
    assert refresh_token is not None
    account = to_account(profile)
    try:
        try:
            response = provider.auth.refresh(http, account, refresh_token)
        except NoAnswer:
            _require_usable(rt, profile.id)  # a minute may have passed, and the profile may be disconnected now
            # The token may be spent. A second call returns a new pair, or shows that consent is needed.
            response = provider.auth.refresh(http, account, refresh_token)
    except NoAnswer as error:
        raise NotRenewed(f"The access token could not be renewed: {error.message}", code=error.code) from error
    except Rejected as refused:
        if refused.reauth:
            raise
        # The app's credentials are wrong, not this account's tokens.
        raise AppRefused(refused.message, code=refused.code, request_id=refused.request_id) from refused
    if not response.access_token:
        raise NotRenewed(f"{provider.label} answered the refresh without an access token.")
    if response.identity is not None and response.identity.account_id != profile.account_id:
        message = f"{provider.label} answered the refresh with the tokens of another account."
        raise Rejected(f"{message} Connect the account again.", reauth=True)
    return response


def _count(rt: Runtime, provider: Provider, outcome: RefreshOutcome) -> None:
    """Count a failure in its own write. A failed count is not an error."""
    with suppress(SocialpubError):
        rt.write(lambda _, tx: counters.count_event(tx, Event.REFRESH, provider.name, outcome))


def _give_up(rt: Runtime, profile: ProfileRow, refused: Rejected) -> str:
    """Set `reauthRequired` and raise. If the tokens have changed, return the new access token."""

    def require_reauth(_: Runtime, tx: Database) -> bool:
        is_same = _has_same_tokens(profile_rows.find(tx, profile.id), profile)
        if is_same:
            profile_rows.require_reauth(tx, profile.id, refused.message)
        return is_same

    if rt.write(require_reauth):
        raise refused
    return open_access_token(rt.secrets, _require_usable(rt, profile.id))


def _has_same_tokens(profile: ProfileRow | None, former: ProfileRow) -> TypeGuard[ProfileRow]:
    tokens = (former.access_token, former.refresh_token)
    return profile is not None and (profile.access_token, profile.refresh_token) == tokens


def _store_pending(rt: Runtime, profile_id: str) -> None:
    """Store the pending pair, if any. The caller holds the lock of the profile."""
    pending = rt.tokens.find_pending(profile_id)
    if pending is not None:
        rt.write(_store, *pending)
        rt.tokens.end_pending(profile_id)


def _store(rt: Runtime, tx: Database, profile: ProfileRow, response: Tokens, asked_at: datetime) -> None:
    """Store the new pair, and the account of the day. Values that the network left out stay."""
    stored, provider = profile_rows.find(tx, profile.id), rt.providers[profile.provider]
    if not _has_same_tokens(stored, profile):
        return  # an import was faster, and its grant stays
    grant = from_response(response, asked_at, previous=open_stored(rt.secrets, stored))
    columns = token_columns(rt.secrets, profile.id, grant, tx.stamp)
    if response.identity is not None:
        columns |= profiles.account_columns(redaction.mask_value(response.identity), stored, tx.stamp)
        del columns["account_read_at"]  # the weekly fetch of all account data stays due
    if stored.status == ProfileStatus.DISCONNECTED:
        del columns["expires_at"]  # it keeps the pair only for its revocation
    if stored.status == ProfileStatus.REAUTH_REQUIRED:
        # Before the disk took the new pair, another process was refused with the spent token.
        columns |= {"status": ProfileStatus.ACTIVE, "reason": None}
        delivery_rows.wake_reconnected(tx, profile.id)
    profile_rows.update(tx, profile.id, **columns)
    counters.count_event(tx, Event.REFRESH, provider.name, RefreshOutcome.RENEWED)
    scopes = grant.scopes or frozenset()
    if not provider.auth.can_publish(scopes):
        missing = " ".join(provider.auth.missing_scopes(scopes))
        profile_rows.require_reauth(tx, profile.id, f"The new tokens do not allow publishing: {missing}")


# --- the lock of a profile's tokens, across processes -----------------------------------------------------------------


def token_lock(rt: Runtime, profile_id: str) -> FileLock:
    """Return the lock that a process holds while it changes a profile's tokens at the network."""
    folder = rt.settings.run_dir / "profiles"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileLock(folder / f"{profile_id}.lock")


@contextmanager
def _locked(rt: Runtime, profile_id: str) -> Iterator[None]:
    """Hold the lock after a short wait, or raise `Locked`. The kernel releases the lock of a process that ends."""
    lock = token_lock(rt, profile_id)
    for _ in range(LOCK_TRIES):
        if lock.try_acquire():
            break
        time.sleep(LOCK_PAUSE_SECONDS)
    else:
        raise Locked("Another process is changing the account's tokens. If it is a command that hangs, end it.")
    try:
        yield
    finally:
        lock.release()
