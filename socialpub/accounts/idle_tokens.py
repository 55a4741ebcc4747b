"""Renewal of tokens that nobody uses, before the network forgets them, and warnings to the owner in time.

One profile at a time and one per turn, so that what was connected on the same day is not renewed in the same second.
A paused copy renews nothing: what it spends, the original would miss.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from socialpub.accounts import cooldowns, remedies, renewal
from socialpub.accounts.remedies import Door
from socialpub.core import clock, logging
from socialpub.db import appliance_state, profile_rows
from socialpub.db.models import ProfileStatus
from socialpub.db.transaction import Row, Tx
from socialpub.providers.errors import ProviderError, Rejected
from socialpub.providers.job import Withdrawn
from socialpub.runtime import Runtime

SOON = timedelta(days=7)
"""The owner is warned this long before something has to be done."""
DAY = timedelta(days=1)
RETRY_SECONDS = 3600.0
ENDPOINT = "refresh"
"""Under this name a failed renewal waits in `not_before`."""

log = logging.get_logger("socialpub.upkeep")


# --- keeping alive ---------------------------------------------------------------------------------------------------


def keep_alive(rt: Runtime, held: Collection[str]) -> str | None:
    """Renew the tokens of the profile that has waited longest among those that must not wait; its id, or None.

    `held` are the networks that refuse this app for now: they are left alone.

    Talks to a network, which can take two minutes. One that does not answer is asked again after an hour. A pair that
    the disk did not take before is stored first, also while publishing is paused.
    """
    renewal.store_pending(rt)
    profile_id = None if appliance_state.paused_at(rt.reader) else _next(rt, held)
    if profile_id is None:
        return None
    try:
        renewal.renew(rt, profile_id)
    except Withdrawn:
        return None
    except Rejected as refused:
        # By now the profile's status says so, too.
        log.warning("an account must be connected again", profile=profile_id, why=refused.message)
    except ProviderError as error:
        named = cooldowns.named_by(error)
        rt.write(cooldowns.begin_for, profile_id, ENDPOINT, max(RETRY_SECONDS, named or 0.0), error.message)
        log.warning("idle tokens could not be renewed", profile=profile_id, why=error.message)
    else:
        log.info("idle tokens were renewed", profile=profile_id)
    return profile_id


def _next(rt: Runtime, held: Collection[str]) -> str | None:
    resting = cooldowns.profiles(rt.reader, (cooldowns.ANY_ENDPOINT, ENDPOINT), rt.stamp())
    for row in profile_rows.renewable(rt.reader):
        if row["provider"] not in held and row["id"] not in resting and _must_be_renewed(rt, row, rt.now()):
            return str(row["id"])
    return None


def _must_be_renewed(rt: Runtime, row: Row, now: datetime) -> bool:
    oauth = rt.providers[row["provider"]].oauth
    idle = now - clock.parse(row["renewed_at"])
    early = timedelta(seconds=oauth.refresh_early_seconds)
    if idle >= timedelta(seconds=oauth.idle_refresh_seconds):
        return True
    if idle < DAY:
        return False  # an end that did not move with the last renewal will not move with the next one either
    # Where access tokens last for weeks their end is looked at too; those that last for hours would be renewed all day.
    return (early >= DAY and _within(row["access_expires_at"], early, now)) or _within(
        row["refresh_expires_at"], SOON, now
    )


def _within(stamp: str | None, before: timedelta, now: datetime) -> bool:
    return stamp is not None and clock.parse(stamp) - now < before


# --- telling the owner -----------------------------------------------------------------------------------------------


def warn(rt: Runtime) -> int:
    """Log every account that needs its owner soon, each once a day; returns how many."""
    warned = 0
    for row in profile_rows.not_warned_since(rt.reader, clock.stamp(rt.now() - DAY)):
        message = warning(row, rt.now())
        if message is not None:
            log.warning(message, profile=row["id"], name=row["name"], provider=row["provider"])
            rt.write(_note_warning, row["id"])
            warned += 1
    return warned


def warning(row: Row, now: datetime, door: Door = Door.SHELL) -> str | None:
    """What the owner has to do about this profile within a week, and why; None when it can be left alone.

    `row` has provider, status, reason, expires_at, renewable.
    """
    how = remedies.reconnect(row["provider"], door)
    remedy = f"To connect the account again, {how}."
    if row["status"] == ProfileStatus.REAUTH_REQUIRED:
        if not row["reason"]:
            return remedy
        return f"{row['reason']} {remedies.sentence(how)}"
    if row["status"] != ProfileStatus.ACTIVE or not _within(row["expires_at"], SOON, now):
        return None
    what = "Its refresh token" if row["renewable"] else "It has no refresh token, and its access token"
    ends = clock.parse(row["expires_at"])
    when = f"ended on {ends:%Y-%m-%d %H:%M} UTC" if ends <= now else f"ends on {ends:%Y-%m-%d %H:%M} UTC"
    return f"{what} {when}. {remedy}"


def _note_warning(rt: Runtime, tx: Tx, profile_id: str) -> None:
    profile_rows.update(tx, profile_id, warned_at=tx.stamp)
