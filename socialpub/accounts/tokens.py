"""Access tokens that work now: one refresh at a time per profile, and never a pair that is half stored.

A refresh spends the old refresh token at the network, so the new pair is on the disk before anybody uses it, and only
an answer that refuses the refresh token itself makes the owner connect again: an outage or a wrong app secret never
costs an account.
"""

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from socialpub.accounts import grants
from socialpub.core import actor, clock, logging
from socialpub.core.errors import SocialpubError, Unavailable
from socialpub.core.locks import FileLock
from socialpub.db import appliance_state
from socialpub.db.connection import Tx
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import audit_log, counters, delivery_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.counters import Event
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Withdrawn
from socialpub.providers.errors import AppRefused, NoAnswer, NotSent, ProviderError, Rejected
from socialpub.providers.oauth import Tokens
from socialpub.providers.provider import Provider
from socialpub.runtime import Runtime

LOCK_SECONDS = 50.0
"""Longer than a call of a token endpoint usually takes; its lane waits no longer than a minute for a lock."""
LOCK_TRIES, LOCK_PAUSE_SECONDS = 20, 0.05

log = logging.get_logger("socialpub.renewal")


class Paused(NotSent):
    """A paused or restored copy refreshes nothing: what it spends, the original would miss."""


class Locked(NotSent):
    """Another process changes this account's tokens at the moment."""


class NotRenewed(NotSent):
    """The token endpoint gave no usable answer; the tokens are kept and tried again later."""


class RefreshOutcome(StrEnum):
    """What came of asking a network for new tokens."""

    RENEWED = "renewed"
    REFUSED = "refused"
    """The account must be connected again."""
    FAILED = "failed"
    """No usable answer, or a refusal of the app: asked again later."""


@dataclass(slots=True)
class PendingGrants:
    """What networks answered and the disk did not take yet: the former profile, the answer, when it was asked for, and
    whether an owner asked for it."""

    of_profile: dict[str, tuple[Profile, Tokens, datetime, bool]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TakenLock:
    """A lock that somebody else holds, and when that was seen, on the monotonic clock."""

    file: int | None
    first_seen: float
    last_seen: float


@dataclass(slots=True)
class TokenLocks:
    """The locks that this process has found taken, by profile."""

    taken: dict[str, TakenLock] = field(default_factory=dict)


def load_fresh(rt: Runtime, profile_id: str) -> str:
    """The access token to use now, refreshed when it is about to run out.

    Asks the network, so not from the event loop. Raises `Withdrawn` (disconnected), `Rejected` with `reauth` (the owner
    must connect again; the profile says so), `AppRefused` (the app's credentials), or one that asks to try again later:
    `Paused`, `NotRenewed`, `NotSent`, `Throttled`.
    """
    profile = _usable(rt, profile_id)
    token = _access_token(rt, profile)
    if _runs_out(rt, profile):
        return _renew(rt, profile_id, spent=token)
    if profile_id in rt.memory(PendingGrants).of_profile:
        return _renew(rt, profile_id, spent=None)
    return token


def replace_spent(rt: Runtime, profile_id: str, spent: str) -> str:
    """Another access token, after the network refused `spent` (401). Raises as `fresh` does."""
    return _renew(rt, profile_id, spent)


def renew(rt: Runtime, profile_id: str) -> None:
    """Another pair now, whether or not the present one still works; the trail tells when an owner asked for it. Raises
    as `fresh` does.

    Without a refresh token there is nothing to ask for (`Rejected`), and the access token may well be good: the
    profile's status stays as it is then.
    """
    profile = _usable(rt, profile_id)
    if profile.refresh_token is None:
        raise Rejected("The profile has no refresh token: its access token cannot be renewed.", reauth=True)
    _renew(rt, profile_id, spent=_access_token(rt, profile), by_hand=True)


def token_lock(rt: Runtime, profile_id: str) -> FileLock:
    """Held by whoever changes a profile's tokens at the network."""
    folder = rt.settings.run_dir / "profiles"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileLock(folder / f"{profile_id}.lock")


def _usable(rt: Runtime, profile_id: str) -> Profile:
    profile = profile_rows.find(rt.reader, profile_id)
    if profile is None or profile.status is ProfileStatus.DISCONNECTED or profile.access_token is None:
        raise Withdrawn("The profile is disconnected.")
    if profile.status is ProfileStatus.REAUTH_REQUIRED:
        raise Rejected(profile.reason or "The account must be connected again.", reauth=True)
    return profile


def _access_token(rt: Runtime, profile: Profile) -> str:
    return grants.open_access_token(rt.secrets, profile)


def _runs_out(rt: Runtime, profile: Profile) -> bool:
    if profile.refresh_token is None or profile.access_expires_at is None:
        return False  # without the one nothing can be done, without the other the network will tell (401)
    early = timedelta(seconds=rt.providers[profile.provider].oauth.refresh_early_seconds)
    return clock.parse(profile.access_expires_at) - rt.now() < early


def store_pending(rt: Runtime) -> None:
    """Store the pairs that the disk did not take when they came. Asks no network. Raises Unavailable."""
    for profile_id in list(rt.memory(PendingGrants).of_profile):
        with suppress(Locked), _locked(rt, profile_id):
            _store_pending(rt, profile_id)


def _renew(rt: Runtime, profile_id: str, spent: str | None, *, by_hand: bool = False) -> str:
    """Another token than `spent`; with None the present one, once an answer that still waits for the disk is stored."""
    with _locked(rt, profile_id) as held:
        _store_pending(rt, profile_id)
        profile = _usable(rt, profile_id)
        token = _access_token(rt, profile)
        if token != spent:
            return token  # somebody else has renewed it while we waited
        provider = rt.providers[profile.provider]
        if profile.refresh_token is None:
            reason = f"{provider.label} no longer accepts the access token, and there is no refresh token."
            return _give_up(rt, profile, Rejected(f"{reason} Connect the account again.", reauth=True))
        if appliance_state.paused_at(rt.reader):
            raise Paused("Publishing is paused; no token is refreshed meanwhile.")
        with reserve_disk(rt):
            asked_at = rt.now()
            try:
                answer = _ask(rt, provider, profile, held)
            except Rejected as refused:
                _count(rt, provider, RefreshOutcome.REFUSED)
                return _give_up(rt, profile, refused)
            except ProviderError:
                _count(rt, provider, RefreshOutcome.FAILED)
                raise
            # The old refresh token is spent: what the disk does not take now is written at the next try.
            rt.memory(PendingGrants).of_profile[profile_id] = (profile, answer, asked_at, by_hand)
        _store_pending(rt, profile_id)
        # What was stored counts: an import may have brought another grant, the new one may lack every scope, and a
        # profile that was disconnected meanwhile keeps the pair only for its revocation.
        return _access_token(rt, _usable(rt, profile_id))


def _store_pending(rt: Runtime, profile_id: str) -> None:
    """Store the pair that waits for the disk, if any. The caller holds the lock of the profile."""
    pending = rt.memory(PendingGrants).of_profile
    kept = pending.get(profile_id)
    if kept is not None:
        rt.write(_store, rt.providers[kept[0].provider], *kept)
        pending.pop(profile_id, None)


@contextmanager
def _locked(rt: Runtime, profile_id: str) -> Iterator[FileLock]:
    """The lock, waited for a moment; else `Locked`. A process that has not let go of it for most of a minute is
    suspended, or waits for a network that will not answer it: the lane of the account goes on without it then."""
    held, taken = token_lock(rt, profile_id), rt.memory(TokenLocks).taken
    for _ in range(LOCK_TRIES):
        if held.try_acquire():
            break
        time.sleep(LOCK_PAUSE_SECONDS)
    else:
        _break_or_wait(rt, profile_id, held)
    taken.pop(profile_id, None)
    try:
        yield held
    finally:
        held.release()


def _break_or_wait(rt: Runtime, profile_id: str, held: FileLock) -> None:
    """Take a lock that was found taken for long enough. Raises `Locked` before that."""
    taken, now, file = rt.memory(TokenLocks).taken, rt.clock.monotonic(), held.file
    known = taken.get(profile_id)
    if known is None or known.file != file or now - known.last_seen > LOCK_SECONDS:
        known = TakenLock(file, now, now)
    taken[profile_id] = replace(known, last_seen=now)
    if file is None or now - known.first_seen < LOCK_SECONDS or not held.break_open(file):
        raise Locked("Another process is changing the account's tokens: perhaps a command that hangs or is suspended.")
    log.warning("the lock of an account's tokens was taken from a process that does not go on", profile=profile_id)


def _ask(rt: Runtime, provider: Provider, profile: Profile, held: FileLock) -> Tokens:
    """The answer. Errors are turned into what they mean for the post that wants the token: nothing was sent yet.

    `Rejected` from here always means that the owner must consent again.
    """
    refresh_token, http = grants.open_refresh_token(rt.secrets, profile), rt.http_of(provider.name)
    assert refresh_token is not None
    try:
        try:
            answer = provider.oauth.refresh(http, refresh_token)
        except NoAnswer:
            _usable(rt, profile.id)  # it may have taken a minute: nothing is sent for a profile disconnected meanwhile
            if not held.is_held:
                raise Locked("Another process has begun to renew the account's tokens meanwhile.") from None
            # It may have been spent or not. The same token once more shows which: a new pair, or consent is needed.
            answer = provider.oauth.refresh(http, refresh_token)
    except NoAnswer as error:
        raise NotRenewed(f"The access token could not be renewed: {error.message}", code=error.code) from error
    except Rejected as refused:
        if refused.reauth:
            raise
        # The app's credentials are wrong, not this account's tokens: every post of this network would meet the same.
        raise AppRefused(refused.message, code=refused.code, request_id=refused.request_id) from refused
    if not answer.access_token:
        raise NotRenewed(f"{provider.label} answered the refresh without an access token.")
    return answer


def _count(rt: Runtime, provider: Provider, outcome: RefreshOutcome) -> None:
    """A failure is followed by a long pause, so that a write of its own costs nothing; a number is worth no error."""
    with suppress(SocialpubError):
        rt.write(lambda _, tx: counters.count_event(tx, Event.REFRESH, provider.name, outcome))


def _give_up(rt: Runtime, profile: Profile, refused: Rejected) -> str:
    """`reauthRequired`, unless the tokens are other ones by now: then the access token of those."""
    if rt.write(_require_reauth, profile, refused.message):
        raise refused
    return _access_token(rt, _usable(rt, profile.id))


def _require_reauth(rt: Runtime, tx: Tx, profile: Profile, reason: str) -> bool:
    known = profile_rows.find(tx, profile.id)
    if known is None or _grant(known) != _grant(profile):
        return False
    profile_rows.require_reauth(tx, profile.id, reason)
    return True


def _grant(profile: Profile) -> tuple[bytes | None, bytes | None]:
    return profile.access_token, profile.refresh_token


def _store(
    rt: Runtime, tx: Tx, provider: Provider, profile: Profile, answer: Tokens, asked_at: datetime, by_hand: bool
) -> None:
    """Keep the new pair, all of it or nothing. What the network left out keeps its old value."""
    known = profile_rows.find(tx, profile.id)
    if known is None or _grant(known) != _grant(profile):
        return  # an import was faster; its grant stands
    grant = grants.from_answer(answer, asked_at, previous=grants.open_stored(rt.secrets, known))
    columns = grants.token_columns(rt.secrets, profile.id, grant, tx.stamp)
    if known.status is ProfileStatus.DISCONNECTED:
        del columns["expires_at"]  # it keeps the pair only for its revocation
    if known.status is ProfileStatus.REAUTH_REQUIRED:
        # Somebody who took our lock asked with the token that we had just spent.
        columns |= {"status": ProfileStatus.ACTIVE, "reason": None}
        delivery_rows.wake_waiting_for_reconnect(tx, profile.id)
    profile_rows.update(tx, profile.id, **columns)
    counters.count_event(tx, Event.REFRESH, provider.name, RefreshOutcome.RENEWED)
    if by_hand and actor.is_owner(tx.actor):
        audit_log.record(tx, AuditAction.PROFILE_REFRESHED, profile.id, known.name, provider=provider.name)
    scopes = grant.scopes or frozenset()
    # Of a profile in another state this changes nothing: only an active one becomes `reauthRequired`.
    if not provider.oauth.can_publish(scopes):
        missing = " ".join(provider.oauth.missing_scopes(scopes))
        profile_rows.require_reauth(tx, profile.id, f"Nothing can be published with the new grant: {missing}")


# MERGED from accounts/token_space.py: Disk space for the tokens that a network is about to hand out.

RESERVED_FILE_BYTES = 256 * 1024
"""More than the pages that one stored pair adds to the write-ahead log."""
RESERVED_ROW_BYTES = 16 * 1024
"""More than the longest pair of tokens with everything that is stored beside it."""


@contextmanager
def reserve_disk(rt: Runtime) -> Iterator[None]:
    """Reserve disk space until the block ends; store the new tokens right after it.

    The database accepts a write of the size of the tokens first. Raises Unavailable when it does not, or when the disk
    is full: the block does not run then, and the network is not asked.
    """
    with ExitStack() as opened:
        try:
            # The accepted write may take the last free pages. This file keeps others for the write that follows the
            # answer. It has no name, so the space is free again when the process dies.
            file = opened.enter_context(tempfile.TemporaryFile(dir=rt.settings.database_file.parent))
            os.posix_fallocate(file.fileno(), 0, RESERVED_FILE_BYTES)
        except OSError as error:
            message = f"The disk cannot store new tokens ({error.strerror}), so the network was not asked for them."
            raise Unavailable(f"{message} Free some space on it.", retry_after_seconds=60) from error
        rt.write(_write_reserved_row)
        yield


def _write_reserved_row(_: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.TOKEN_SPACE, secrets.token_hex(RESERVED_ROW_BYTES // 2))
