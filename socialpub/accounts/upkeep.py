"""Upkeep of accounts: tokens and account data that stay current, what the owner has to do, and revocation.

Idle tokens are renewed one profile at a time. While publishing is paused, nothing is renewed, fetched or revoked: a
restored installation must not spend or revoke the tokens of the original installation. An unexpected failure of one
account never stops the upkeep of the others.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from socialpub.accounts import profiles, queries, remedies, tokens
from socialpub.accounts.remedies import Surface
from socialpub.core import clock, logging
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows, waits
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.auth import Identity
from socialpub.providers.base import Provider, Withdrawn
from socialpub.providers.responses import (
    MAX_WAIT_SECONDS,
    AppRefused,
    NoAnswer,
    NotSent,
    ProviderError,
    Rejected,
    Throttled,
    named_wait,
)
from socialpub.runtime import Runtime

SOON = timedelta(days=7)
"""The time between the warning to the owner and the due action."""
DAY = timedelta(days=1)
RETRY_SECONDS = 3600.0
REFRESH_ENDPOINT = "refresh"
"""The name of the wait in `stored_wait` after a failed renewal."""

log = logging.get_logger(__name__)


@contextmanager
def _only_this_account(rt: Runtime, profile_id: str, endpoint: str) -> Iterator[None]:
    """Log an unexpected error of one account. The account then rests at this endpoint."""
    try:
        yield
    except Unavailable:
        raise  # the disk fails for every account
    except Exception:
        log.error("the upkeep of an account failed unexpectedly", profile=profile_id, what=endpoint, exc_info=True)
        reason = "socialpub failed unexpectedly (see its log)."
        rt.write(_begin_wait, profile_id, endpoint, RETRY_SECONDS, reason)


# --- renewal of idle tokens -------------------------------------------------------------------------------------------


def renew_idle_tokens(rt: Runtime, held: Collection[str]) -> str | None:
    """Renew the tokens of the due profile that has waited longest. Return its id, or None.

    `held` are the networks that refuse this app. Asks a network, which can take two minutes. First store pending pairs,
    even while publishing is paused.
    """
    tokens.store_pending(rt)
    profile_id = None if appliance_state.paused_at(rt.db) else _find_due(rt, held)
    if profile_id is None:
        return None
    with _only_this_account(rt, profile_id, REFRESH_ENDPOINT):
        try:
            tokens.renew(rt, profile_id)
        except Withdrawn:
            return None
        except Rejected as refused:
            log.warning("an account must be connected again", profile=profile_id, why=refused.message)
        except ProviderError as error:
            rt.write(_begin_wait, profile_id, REFRESH_ENDPOINT, _seconds_after(error), error.message)
            log.warning("idle tokens could not be renewed", profile=profile_id, why=error.message)
        else:
            log.info("idle tokens were renewed", profile=profile_id)
    return profile_id


def _find_due(rt: Runtime, held: Collection[str]) -> str | None:
    resting = waits.subjects(rt.db, (waits.ALL_CALLS, REFRESH_ENDPOINT), rt.stamp())
    for row in profile_rows.renewable(rt.db):
        if row.provider in held or row.id in resting:
            continue
        with _only_this_account(rt, row.id, REFRESH_ENDPOINT):
            if _must_be_renewed(rt, row, rt.now()):
                return str(row.id)
    return None


def _must_be_renewed(rt: Runtime, row: ProfileRow, now: datetime) -> bool:
    auth = rt.providers[row.provider].auth
    idle = now - clock.parse(row.issued_at)
    early = timedelta(seconds=auth.refresh_early_seconds)
    if idle >= timedelta(seconds=auth.idle_refresh_seconds):
        return True
    if idle < DAY:
        return False  # the last renewal did not move the end
    # Access tokens that last for hours would be renewed all day.
    return (early >= DAY and _within(row.access_expires_at, early, now)) or _within(row.refresh_expires_at, SOON, now)


def _within(stamp: str | None, before: timedelta, now: datetime) -> bool:
    return stamp is not None and clock.parse(stamp) - now < before


def _seconds_after(error: ProviderError) -> float:
    return max(RETRY_SECONDS, named_wait(error) or 0.0)


def _begin_wait(rt: Runtime, tx: Database, profile_id: str, endpoint: str, seconds: float, reason: str) -> None:
    until = clock.after(tx.stamp, min(seconds, MAX_WAIT_SECONDS))
    waits.begin(tx, WaitReason.NETWORK, profile_id, endpoint, until, reason)


# --- what the owner has to do -----------------------------------------------------------------------------------------


def describe_warning(row: ProfileRow, now: datetime, surface: Surface = Surface.SHELL) -> str | None:
    """Return the action that this profile requires within a week, and the reason. None: no action is required."""
    how = remedies.reconnect(row.provider, surface)
    remedy = f"To connect the account again, {how}."
    if row.status == ProfileStatus.REAUTH_REQUIRED:
        return f"{row.reason} {remedies.sentence(how)}" if row.reason else remedy
    if row.status != ProfileStatus.ACTIVE or row.expires_at is None or not _within(row.expires_at, SOON, now):
        return None
    what = "The refresh token" if row.renewable else "The profile does not have a refresh token. The access token"
    ends = clock.parse(row.expires_at)
    when = f"expired on {ends:%Y-%m-%d %H:%M} UTC" if ends <= now else f"expires on {ends:%Y-%m-%d %H:%M} UTC"
    return f"{what} {when}. {remedy}"


# --- revocation -------------------------------------------------------------------------------------------------------
#
# After an hour, tokens are erased even if the network does not answer (contract section 3).


ERASED_AFTER = timedelta(hours=1)
FIRST_RETRY_SECONDS = 15.0
MAX_RETRY_SECONDS = 600.0
REVOKE_ENDPOINT = "revoke"
"""The name of the wait in `stored_wait` after a failed revocation."""


def revoke_disconnected(rt: Runtime) -> int:
    """Revoke and erase the tokens of disconnected profiles. Return the number of erased grants.

    Asks the networks one after the other, which can take minutes.
    """
    paused = appliance_state.paused_at(rt.db) is not None
    erased = 0
    for profile_id, since in _due_revocations(rt):
        lock = tokens.token_lock(rt, profile_id)
        is_locked = lock.try_acquire()
        if not is_locked and since < ERASED_AFTER:
            continue  # a refresh is in flight, and its new pair is the one to revoke
        try:
            with _only_this_account(rt, profile_id, REVOKE_ENDPOINT):
                erased += _end(rt, profile_id, since, ask=is_locked and not paused)
        finally:
            lock.release()
    return erased


def _due_revocations(rt: Runtime) -> list[tuple[str, timedelta]]:
    """Return disconnected profiles with tokens that are due, and how long ago they were disconnected."""
    now = rt.now()
    paused = appliance_state.paused_at(rt.db) is not None
    resting = waits.subjects(rt.db, (REVOKE_ENDPOINT,), clock.stamp(now))
    due = []
    for row in profile_rows.disconnected_with_tokens(rt.db):
        since = now - clock.parse(row.disconnected_at or row.updated_at)
        if not (paused or row.id in resting) or since >= ERASED_AFTER:
            due.append((row.id, since))
    return due


def _end(rt: Runtime, profile_id: str, since: timedelta, ask: bool) -> bool:
    try:
        if ask:
            _revoke(rt, profile_id)
    except (NotSent, NoAnswer, Throttled, AppRefused) as error:
        if since < ERASED_AFTER:
            rt.write(_begin_wait, profile_id, REVOKE_ENDPOINT, _retry_seconds(since, error), error.message)
            return False
        log.warning("tokens are erased without being revoked", profile=profile_id, why=error.message)
    except (ProviderError, OperatorError) as error:
        log.info("tokens could not be revoked", profile=profile_id, why=error.message)
    except Exception:
        if since < ERASED_AFTER:
            raise
        log.error("tokens are erased without being revoked", profile=profile_id, exc_info=True)
    rt.write(_erase, profile_id)
    return True


def _revoke(rt: Runtime, profile_id: str) -> None:
    profile = profiles.get(rt.db, profile_id)
    auth = rt.providers[profile.provider].auth
    if auth.revokes_every_grant and profile_rows.connected(rt.db, profile.provider, profile.account_id):
        return  # the account was connected again meanwhile, and that connection must stay
    access = tokens.open_access_token(rt.secrets, profile) if profile.access_token else ""
    refresh = tokens.open_refresh_token(rt.secrets, profile)
    auth.revoke(rt.http_for(profile.provider), tokens.to_account(profile), access, refresh)


def _retry_seconds(since: timedelta, error: ProviderError) -> float:
    """Return a wait that is as long as the time since the disconnection."""
    seconds = min(max(since.total_seconds(), FIRST_RETRY_SECONDS), MAX_RETRY_SECONDS)
    named = named_wait(error)
    return min(max(seconds, named or 0.0), ERASED_AFTER.total_seconds())


def _erase(rt: Runtime, tx: Database, profile_id: str) -> None:
    columns = ("access_token", "refresh_token", "access_expires_at", "refresh_expires_at")
    profile_rows.update(tx, profile_id, **dict.fromkeys(columns))
    waits.forget(tx, profile_id)


# --- account data -----------------------------------------------------------------------------------------------------

# Handle, name, image and limits of the account, as its network reports them. They are fetched at the owner's request,
# after the network refused a post as too long, and once a week. X bills each fetch as the read of a user.

FETCHED_EVERY = timedelta(days=7)
ACCOUNT_ENDPOINT = "account"
"""The name of the wait in `stored_wait` before the next fetch."""


def fetch_account_data(rt: Runtime, profile_id: str) -> list[str]:
    """Fetch the account data now, and return the changes as sentences.

    Asks the network, so do not call on the event loop. Raises NotFound, and as `queries.send` does.
    """
    profile = profiles.get(rt.db, profile_id)
    auth = rt.providers[profile.provider].auth
    identity = queries.send(rt, profile, lambda http, token: auth.identify(http, tokens.to_account(profile), token))
    return rt.write(_store_account_data, profile_id, identity)


def refresh_account_data(rt: Runtime, held: Collection[str]) -> str | None:
    """Fetch the account data of the due profile that has waited longest. Return its id, or None.

    `held` are the networks that refuse this app.
    """
    if appliance_state.paused_at(rt.db):
        return None
    resting = waits.subjects(rt.db, (waits.ALL_CALLS, ACCOUNT_ENDPOINT), rt.stamp())
    due = profile_rows.account_data_due(rt.db, clock.stamp(rt.now() - FETCHED_EVERY))
    profile_id = next((str(row.id) for row in due if row.provider not in held and row.id not in resting), None)
    if profile_id is None:
        return None
    with _only_this_account(rt, profile_id, ACCOUNT_ENDPOINT):
        try:
            changes = fetch_account_data(rt, profile_id)
        except Withdrawn:
            return None
        except ProviderError as error:
            rt.write(_begin_wait, profile_id, ACCOUNT_ENDPOINT, _seconds_after(error), error.message)
            later = "account data could not be fetched; socialpub tries again later"
            log.info(later, profile=profile_id, why=error.message)
            return profile_id
        if not changes:
            # Otherwise each post that the network refuses as too long would cost a fetch.
            rt.write(_begin_wait, profile_id, ACCOUNT_ENDPOINT, RETRY_SECONDS, "The account data has not changed.")
        log.info("account data was fetched", profile=profile_id, changes=len(changes))
    return profile_id


def _store_account_data(rt: Runtime, tx: Database, profile_id: str, identity: Identity) -> list[str]:
    profile = profiles.get(tx, profile_id)
    if profile.status == ProfileStatus.DISCONNECTED:
        return []
    if identity.account_id != profile.account_id:
        profile_rows.update(tx, profile_id, account_read_at=tx.stamp)
        tx.call_after_commit(
            partial(log.warning, "the tokens of a profile belong to another account", profile=profile_id)
        )
        return []
    columns = profiles.account_columns(identity, profile, tx.stamp)
    profile_rows.update(tx, profile_id, **columns, updated_at=tx.stamp)
    return _changes(rt.providers[profile.provider], profile, profiles.get(tx, profile_id))


def _changes(provider: Provider, before: ProfileRow, now: ProfileRow) -> list[str]:
    sentences = []
    if now.username != before.username and now.username:
        sentences.append(f"The handle is now @{now.username}.")
    if before.account_name not in (None, now.account_name):
        sentences.append(f"The account name is now “{now.account_name}”.")
    former = dict(provider.account_facts(before.facts))
    for label, value in provider.account_facts(now.facts):
        if former.get(label) != value:
            sentences.append(f"{label}: {value} (before: {former.get(label, 'not known')}).")
    return sentences
