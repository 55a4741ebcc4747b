"""What the dashboard's overview shows besides alerts: what is published next and what was published."""

from dataclasses import dataclass
from datetime import timedelta

from socialpub.core.clock import stamp
from socialpub.db.queries import calendar, log_list
from socialpub.db.queries.calendar import CalendarPost
from socialpub.db.queries.log_list import LogEntry
from socialpub.db.tables import audience_rows
from socialpub.providers.registry import DRAFT_MODES
from socialpub.publishing.posts import details
from socialpub.runtime import Runtime

MAX_PENDING = 10
MAX_UPCOMING = 60
"""A series is shown as one entry, so more are read than are shown."""
MAX_PUBLISHED = 100
"""One post may have been published to a hundred profiles."""
DRAFTS_SINCE = timedelta(days=7)


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


def flow(rt: Runtime) -> Flow:
    """What is published next and what was published."""
    reader = rt.reader
    counts = dict(audience_rows.count_posts(reader))
    # What is due and still waits, as while publishing is paused, comes first.
    since = stamp(rt.now() - rt.settings.publishing.max_lateness)
    drafts_since = stamp(rt.now() - DRAFTS_SINCE)
    published = log_list.published(reader, MAX_PUBLISHED)
    of_draft_networks = log_list.published(reader, MAX_PUBLISHED, DRAFT_MODES, drafts_since)
    return Flow(
        pending=calendar.pending(reader, MAX_PENDING),
        pending_count=counts.get("pending", 0),
        upcoming=calendar.upcoming(reader, since, MAX_UPCOMING),
        scheduled_count=counts.get("scheduled", 0),
        published=[entry for entry in published if not _is_in_app(entry)],
        in_app=[entry for entry in of_draft_networks if _is_in_app(entry)],
    )


def _is_in_app(entry: LogEntry) -> bool:
    outcome = details.owner_outcome(entry.provider, entry.type, entry.mode, entry.provider_post_id)
    return outcome == details.IN_APP
