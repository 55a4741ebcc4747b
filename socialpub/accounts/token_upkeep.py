"""Token upkeep: renewal before a network forgets them, warnings to the owner, and revocation."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts import grants, hints, rate_limits, tokens
from socialpub.accounts.hints import Surface
from socialpub.core import clock, logging
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.connection import Row, Tx
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows, waits
from socialpub.providers.base import Withdrawn
from socialpub.providers.errors import AppRefused, NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.runtime import Runtime

# MERGED from accounts/idle_tokens.py: Renewal of tokens that nobody uses, before the network forgets them, and war

SOON = timedelta(days=7)
"""The owner is warned this long before something has to be done."""
DAY = timedelta(days=1)
RETRY_SECONDS = 3600.0
REFRESH_ENDPOINT = "refresh"
"""Under this name a failed renewal waits in `not_before`."""

log = logging.get_logger("socialpub.upkeep")


# --- keeping alive ---------------------------------------------------------------------------------------------------


def keep_alive(rt: Runtime, held: Collection[str]) -> str | None:
    """Renew the tokens of the profile that has waited longest among those that must not wait; its id, or None.

    `held` are the networks that refuse this app for now: they are left alone.

    Talks to a network, which can take two minutes. One that does not answer is asked again after an hour. A pair that
    the disk did not take before is stored first, also while publishing is paused.
    """
    tokens.store_pending(rt)
    profile_id = None if appliance_state.paused_at(rt.reader) else _next(rt, held)
    if profile_id is None:
        return None
    try:
        tokens.renew(rt, profile_id)
    except Withdrawn:
        return None
    except Rejected as refused:
        # By now the profile's status says so, too.
        log.warning("an account must be connected again", profile=profile_id, why=refused.message)
    except ProviderError as error:
        named = rate_limits.named_wait(error)
        rt.write(rate_limits.begin_for, profile_id, REFRESH_ENDPOINT, max(RETRY_SECONDS, named or 0.0), error.message)
        log.warning("idle tokens could not be renewed", profile=profile_id, why=error.message)
    else:
        log.info("idle tokens were renewed", profile=profile_id)
    return profile_id


def _next(rt: Runtime, held: Collection[str]) -> str | None:
    resting = waits.profiles_waiting(rt.reader, (waits.ANY_ENDPOINT, REFRESH_ENDPOINT), rt.stamp())
    for row in profile_rows.renewable(rt.reader):
        if row.provider not in held and row.id not in resting and _must_be_renewed(rt, row, rt.now()):
            return str(row.id)
    return None


def _must_be_renewed(rt: Runtime, row: Row, now: datetime) -> bool:
    oauth = rt.providers[row.provider].oauth
    idle = now - clock.parse(row.renewed_at)
    early = timedelta(seconds=oauth.refresh_early_seconds)
    if idle >= timedelta(seconds=oauth.idle_refresh_seconds):
        return True
    if idle < DAY:
        return False  # an end that did not move with the last renewal will not move with the next one either
    # Where access tokens last for weeks their end is looked at too; those that last for hours would be renewed all day.
    return (early >= DAY and _within(row.access_expires_at, early, now)) or _within(row.refresh_expires_at, SOON, now)


def _within(stamp: str | None, before: timedelta, now: datetime) -> bool:
    return stamp is not None and clock.parse(stamp) - now < before


# --- telling the owner -----------------------------------------------------------------------------------------------


def warn(rt: Runtime) -> int:
    """Log every account that needs its owner soon, each once a day; returns how many."""
    warned = 0
    for row in profile_rows.not_warned_since(rt.reader, clock.stamp(rt.now() - DAY)):
        message = warning(row, rt.now())
        if message is not None:
            log.warning(message, profile=row.id, name=row.name, provider=row.provider)
            rt.write(_note_warning, row.id)
            warned += 1
    return warned


def warning(row: Row, now: datetime, door: Surface = Surface.SHELL) -> str | None:
    """What the owner has to do about this profile within a week, and why; None when it can be left alone.

    `row` has provider, status, reason, expires_at, renewable.
    """
    how = hints.reconnect(row.provider, door)
    remedy = f"To connect the account again, {how}."
    if row.status == ProfileStatus.REAUTH_REQUIRED:
        if not row.reason:
            return remedy
        return f"{row.reason} {hints.sentence(how)}"
    if row.status != ProfileStatus.ACTIVE or not _within(row.expires_at, SOON, now):
        return None
    what = "Its refresh token" if row.renewable else "It has no refresh token, and its access token"
    ends = clock.parse(row.expires_at)
    when = f"ended on {ends:%Y-%m-%d %H:%M} UTC" if ends <= now else f"ends on {ends:%Y-%m-%d %H:%M} UTC"
    return f"{what} {when}. {remedy}"


def _note_warning(rt: Runtime, tx: Tx, profile_id: str) -> None:
    profile_rows.update(tx, profile_id, warned_at=tx.stamp)


# MERGED from accounts/token_health.py: How long an account can be used without its owner, as the owner sees it on


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


def read_health(rt: Runtime, row: Row, door: Surface) -> TokenHealth | None:
    """The tokens of a profile (`profiles.of_owner`); None when it is disconnected."""
    if row.status == ProfileStatus.DISCONNECTED:
        return None
    missing = rt.providers[row.provider].oauth.missing_scopes(frozenset(row.scopes.split()))
    return TokenHealth(
        refused=row.status == ProfileStatus.REAUTH_REQUIRED,
        access_expires_at=row.access_expires_at,
        refresh_expires_at=row.refresh_expires_at,
        renewed_at=row.renewed_at,
        renewable=bool(row.renewable),
        warning=warning(row, rt.now(), door),
        missing=tuple(missing),
    )


# MERGED from accounts/revocation.py: The end of a profile's tokens: revoked at the network, then erased here.

revocation_log = logging.get_logger("socialpub.revocation")

ERASED_AFTER = timedelta(hours=1)
FIRST_RETRY_SECONDS = 15.0
MAX_RETRY_SECONDS = 600.0
REVOKE_ENDPOINT = "revoke"
"""Under this name a failed revocation waits in `not_before`."""


def revoke_disconnected(rt: Runtime) -> int:
    """Revoke and erase the tokens of disconnected profiles; how many were erased.

    Talks to the networks, one profile after the other, which can take minutes. A network that does not answer is asked
    again later, until the hour is over.
    """
    paused = appliance_state.paused_at(rt.reader) is not None
    erased = 0
    for profile_id, since in _due_revocations(rt):
        held = tokens.token_lock(rt, profile_id)
        if not held.try_acquire() and since < ERASED_AFTER:
            continue  # a refresh is on the wire, and its new pair is the one to revoke
        try:
            erased += _end(rt, profile_id, since, ask=not paused and held.is_held)
        finally:
            held.release()
    return erased


def _due_revocations(rt: Runtime) -> list[tuple[str, timedelta]]:
    """Disconnected profiles with tokens whose turn it is, and how long ago they were disconnected."""
    now = rt.now()
    paused = appliance_state.paused_at(rt.reader) is not None
    resting = waits.profiles_waiting(rt.reader, (REVOKE_ENDPOINT,), clock.stamp(now))
    found = []
    for row in profile_rows.disconnected_with_tokens(rt.reader):
        since = now - clock.parse(row.disconnected_at)
        if not (paused or row.id in resting) or since >= ERASED_AFTER:
            found.append((row.id, since))
    return found


def _end(rt: Runtime, profile_id: str, since: timedelta, ask: bool) -> bool:
    try:
        if ask:
            _revoke(rt, profile_id)
    except (NotSent, NoAnswer, Throttled, AppRefused) as error:
        if since < ERASED_AFTER:
            rt.write(rate_limits.begin_for, profile_id, REVOKE_ENDPOINT, _retry_seconds(since, error), error.message)
            return False
        revocation_log.warning("tokens are erased without being revoked", profile=profile_id, why=error.message)
    except (ProviderError, OperatorError) as error:
        # The network does not know them any more, or they cannot be read: nobody can use them either way.
        revocation_log.info("tokens could not be revoked", profile=profile_id, why=error.message)
    rt.write(_erase, profile_id)
    return True


def _revoke(rt: Runtime, profile_id: str) -> None:
    profile = profile_rows.find(rt.reader, profile_id)
    assert profile is not None
    oauth = rt.providers[profile.provider].oauth
    if oauth.revokes_every_grant and profile_rows.connected(rt.reader, profile.provider, profile.account_id):
        return  # it was connected again meanwhile, and that connection must live
    access = grants.open_access_token(rt.secrets, profile) if profile.access_token else ""
    refresh = grants.open_refresh_token(rt.secrets, profile)
    oauth.revoke(rt.http_of(profile.provider), access, refresh)


def _retry_seconds(since: timedelta, error: ProviderError) -> float:
    """As long again as it has lasted so far: few calls to a network that is away for the whole hour."""
    seconds = min(max(since.total_seconds(), FIRST_RETRY_SECONDS), MAX_RETRY_SECONDS)
    named = rate_limits.named_wait(error)
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
    waits.delete_cooldowns(tx, profile_id)
