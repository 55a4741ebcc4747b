"""The end of a profile's tokens: revoked at the network, then erased here.

After an hour they are erased whatever the network says (contract section 3). While publishing is paused nothing is
revoked: a restored copy must not end what the original still uses.
"""

import threading
from datetime import timedelta

from socialpub.accounts import cooldowns, profiles, renewal, token_answer
from socialpub.core import clock, logging
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.db import appliance_state, profile_rows
from socialpub.db.transaction import Tx
from socialpub.providers.errors import AppRefused, NoAnswer, NotSent, ProviderError, Throttled
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.revocation")

ERASED_AFTER = timedelta(hours=1)
FIRST_RETRY_SECONDS = 15.0
LONGEST_RETRY_SECONDS = 600.0
ENDPOINT = "revoke"
"""Under this name a failed revocation waits in `not_before`."""


def start(rt: Runtime) -> threading.Thread | None:
    """Do it on a thread of its own, one at a time: a network that hangs must not hold up whoever calls this.

    The thread, or None when nothing is due or one is at it already.
    """
    if not _due(rt) or not _at_work.acquire(blocking=False):
        return None
    thread = threading.Thread(target=_work, args=(rt,), name="revocation", daemon=True)
    thread.start()
    return thread


def revoke_disconnected(rt: Runtime) -> int:
    """Revoke and erase the tokens of disconnected profiles; how many were erased.

    Talks to the networks, one profile after the other, which can take minutes. A network that does not answer is asked
    again later, until the hour is over.
    """
    paused = appliance_state.paused_at(rt.reader) is not None
    erased = 0
    for profile_id, since in _due(rt):
        held = renewal.lock(rt, profile_id)
        if not held.try_acquire() and since < ERASED_AFTER:
            continue  # a refresh is on the wire, and its new pair is the one to revoke
        try:
            erased += _end(rt, profile_id, since, ask=not paused and held.is_held)
        finally:
            held.release()
    return erased


_at_work = threading.Lock()


def _work(rt: Runtime) -> None:
    try:
        revoke_disconnected(rt)
    except SocialpubError as error:
        log.warning("tokens of disconnected profiles could not be erased yet", reason=error.detail)
    finally:
        _at_work.release()


def _due(rt: Runtime) -> list[tuple[str, timedelta]]:
    """Disconnected profiles with tokens whose turn it is, and how long ago they were disconnected."""
    now = rt.now()
    paused = appliance_state.paused_at(rt.reader) is not None
    resting = cooldowns.profiles(rt.reader, (ENDPOINT,), clock.stamp(now))
    found = []
    for row in profile_rows.disconnected_with_tokens(rt.reader):
        since = now - clock.parse(row["disconnected_at"])
        if not (paused or row["id"] in resting) or since >= ERASED_AFTER:
            found.append((row["id"], since))
    return found


def _end(rt: Runtime, profile_id: str, since: timedelta, ask: bool) -> bool:
    try:
        if ask:
            _revoke(rt, profile_id)
    except (NotSent, NoAnswer, Throttled, AppRefused) as error:
        if since < ERASED_AFTER:
            rt.write(cooldowns.begin_for, profile_id, ENDPOINT, _patience(since, error), error.message)
            return False
        log.warning("tokens are erased without being revoked", profile=profile_id, why=error.message)
    except (ProviderError, OperatorError) as error:
        # The network does not know them any more, or they cannot be read: nobody can use them either way.
        log.info("tokens could not be revoked", profile=profile_id, why=error.message)
    rt.write(_erase, profile_id)
    return True


def _revoke(rt: Runtime, profile_id: str) -> None:
    profile = profiles.find(rt.reader, profile_id)
    assert profile is not None
    oauth = rt.providers[profile.provider].oauth
    if oauth.revokes_every_grant and profiles.is_connected(rt.reader, profile.provider, profile.account_id):
        return  # it was connected again meanwhile, and that connection must live
    access = token_answer.access_token(rt.secrets, profile) if profile.access_token else ""
    refresh = token_answer.refresh_token(rt.secrets, profile)
    oauth.revoke(rt.http_of(profile.provider), access, refresh)


def _patience(since: timedelta, error: ProviderError) -> float:
    """As long again as it has lasted so far: few calls to a network that is away for the whole hour."""
    seconds = min(max(since.total_seconds(), FIRST_RETRY_SECONDS), LONGEST_RETRY_SECONDS)
    named = cooldowns.named_by(error)
    return min(max(seconds, named or 0.0), ERASED_AFTER.total_seconds())


def _erase(rt: Runtime, tx: Tx, profile_id: str) -> None:
    profile_rows.update(
        tx,
        profile_id,
        access_token=None,
        refresh_token=None,
        access_expires_at=None,
        refresh_expires_at=None,
    )
    cooldowns.forget(tx, profile_id)
