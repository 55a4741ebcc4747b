"""What the owner sees first: what needs them, then what is published next and what was published.

Everything here is read from rows and the disk in a few milliseconds, however many posts there are: fit for the event
loop. No network is asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts import idle_tokens, profiles, restored_keys
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.accounts.remedies import Door
from socialpub.core.clock import after, stamp
from socialpub.db import appliance_state, failed_deliveries, log_lists, post_calendar
from socialpub.db.failed_deliveries import FailedDeliveries
from socialpub.db.log_lists import LogEntry
from socialpub.db.post_calendar import CalendarPost
from socialpub.db.transaction import Reader
from socialpub.ops import health
from socialpub.ops.copies import last_copy
from socialpub.ops.copies.last_copy import LastCopy
from socialpub.ops.finding import Finding
from socialpub.providers.registry import DRAFT_MODES
from socialpub.publishing import audiences, holds, post_details
from socialpub.runtime import Runtime

FAILED_SINCE = timedelta(days=7)
NEAR_FLOOR = 2.0
"""Less room than so many times what is kept free, and the next videos may not find any."""
MOST = 10
MOST_FAILED = 5
MAX_UPCOMING = 60
"""A series is shown as one entry, so more are read than are shown."""
MAX_PUBLISHED = 100
"""One post may have been published to a hundred profiles."""
DRAFTS_SINCE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ProfileInNeed:
    """An account that must be connected again, now or within a week."""

    id: str
    name: str
    provider: str
    reauth_required: bool
    expires_at: str | None
    reason: str | None
    """What the network said."""
    warning: str
    """Why, and what to do."""


@dataclass(frozen=True, slots=True)
class HeldNetwork:
    """A network that refuses this app."""

    provider: str
    scope: str
    what: str
    """What that keeps back, in words."""
    reason: str
    code: str | None
    since: str
    probe_at: str
    """When it is tried again."""


@dataclass(frozen=True, slots=True)
class DiskRoom:
    free_bytes: int
    floor_bytes: int
    """What `health.disk_floor_bytes` keeps free: below that nothing is accepted."""

    @property
    def is_full(self) -> bool:
        return self.free_bytes < self.floor_bytes

    @property
    def is_nearly_full(self) -> bool:
        return not self.is_full and self.free_bytes < NEAR_FLOOR * self.floor_bytes


@dataclass(frozen=True, slots=True)
class Needs:
    """What needs the owner. Instants are stamps."""

    paused_at: str | None
    restored_from: str | None
    """The instant of the copy that this is, until it is resumed."""
    restored_keys: list[UnrevokedKey]
    """Valid API keys that came with a restored backup, until the owner keeps or revokes them."""
    profiles: list[ProfileInNeed]
    failed: FailedDeliveries
    """Of the last 7 days, but for what was tried again."""
    holds: list[HeldNetwork]
    worker: list[Finding]
    """Late, missing, or with overdue deliveries."""
    clock_jump: str | None
    """A sentence."""
    disk: DiskRoom
    copy: LastCopy
    copy_reminder: str | None
    """A sentence."""

    @property
    def anything(self) -> bool:
        """Whether there is anything at all to be seen to."""
        return any(
            (
                self.paused_at,
                self.restored_keys,
                self.profiles,
                self.failed.newest,
                self.holds,
                self.worker,
                self.clock_jump,
                self.disk.is_full or self.disk.is_nearly_full,
                self.copy_reminder,
            )
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """What is published next, and what was published."""

    pending: tuple[CalendarPost, ...]
    """The last ones on their way, oldest first."""
    pending_count: int
    upcoming: tuple[CalendarPost, ...]
    """The next ones that wait for their time."""
    scheduled_count: int
    published: list[LogEntry]
    """The last deliveries that were published, newest first."""
    in_app: list[LogEntry]
    """The drafts of the last 7 days that the owner finishes in the network's app, newest first."""


def needs(rt: Runtime, door: Door = Door.DASHBOARD) -> Needs:
    """What needs the owner, with remedies that name what stands at this door."""
    reader, now = rt.reader, rt.now()
    copy = last_copy.read(reader)
    return Needs(
        paused_at=appliance_state.paused_at(reader),
        restored_from=appliance_state.restored_from(reader),
        restored_keys=restored_keys.undecided(reader, stamp(now)),
        profiles=list(_profiles(rt, door)),
        failed=failed_deliveries.lately(reader, _failed_since(reader, now), MOST_FAILED),
        holds=[
            HeldNetwork(
                row["provider"],
                row["scope"],
                holds.what(row["scope"]),
                row["reason"],
                row["code"],
                row["since"],
                row["probe_at"],
            )
            for row in holds.list_all(reader)
        ],
        worker=list(health.worker_problems(reader, now)),
        clock_jump=health.clock_jump(reader, now),
        disk=DiskRoom(rt.files.free_bytes(), int(rt.settings.health.disk_floor_bytes)),
        copy=copy,
        copy_reminder=copy.reminder(now, rt.settings.backup.max_age),
    )


def flow(rt: Runtime) -> Flow:
    """What is published next and what was published."""
    reader = rt.reader
    counts = dict(audiences.count_posts(reader))
    # What is due and still waits, as while publishing is paused, comes first.
    since = stamp(rt.now() - rt.settings.publishing.max_lateness)
    drafts_since = stamp(rt.now() - DRAFTS_SINCE)
    published = log_lists.published(reader, MAX_PUBLISHED)
    of_draft_networks = log_lists.published(reader, MAX_PUBLISHED, DRAFT_MODES, drafts_since)
    return Flow(
        pending=post_calendar.pending(reader, MOST),
        pending_count=counts.get("pending", 0),
        upcoming=post_calendar.upcoming(reader, since, MAX_UPCOMING),
        scheduled_count=counts.get("scheduled", 0),
        published=[entry for entry in published if not _is_in_app(entry)],
        in_app=[entry for entry in of_draft_networks if _is_in_app(entry)],
    )


def _is_in_app(entry: LogEntry) -> bool:
    outcome = post_details.owner_outcome(entry.provider, entry.type, entry.mode, entry.provider_post_id)
    return outcome == post_details.IN_APP


def _failed_since(reader: Reader, now: datetime) -> str:
    """A restored installation does not report what its original failed to publish."""
    original_until = appliance_state.get(reader, appliance_state.ORIGINAL_UNTIL)
    return max(stamp(now - FAILED_SINCE), after(original_until, 0.001) if original_until else "")


def _profiles(rt: Runtime, door: Door) -> Iterator[ProfileInNeed]:
    for row in profiles.list_all(rt.reader):
        warning = idle_tokens.warning(row, rt.now(), door)
        if warning is not None:
            needed = row["status"] == "reauthRequired"
            yield ProfileInNeed(
                row["id"], row["name"], row["provider"], needed, row["expires_at"], row["reason"], warning
            )
