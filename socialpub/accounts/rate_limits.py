"""Rate limits and other waits, remembered per profile and endpoint: until when nothing is asked there.

One delivery that has to wait spares the others of its profile the same answer.
"""

from socialpub.core.clock import after
from socialpub.db.connection import Tx
from socialpub.db.tables import delivery_rows, waits
from socialpub.providers.errors import ProviderError, Throttled
from socialpub.runtime import Runtime

MAX_SECONDS = 86400.0
"""Whoever asks for more is asked again after a day."""
MAX_PLAUSIBLE_SECONDS = 366 * 86400.0


def plausible_wait(seconds: float | None) -> float | None:
    """A wait that a network can have meant: not one in milliseconds, from the past or decades long. None: no such."""
    return seconds if seconds is not None and 0 < seconds <= MAX_PLAUSIBLE_SECONDS else None


def named_wait(error: ProviderError) -> float | None:
    """The seconds that a network which has had too many calls asks for. None: it names no sensible time."""
    return plausible_wait(error.retry_after_seconds) if isinstance(error, Throttled) else None


def begin_for(rt: Runtime, tx: Tx, profile_id: str, endpoint: str, seconds: float, reason: str) -> None:
    """The same from now on, for a day at most, as a write of its own."""
    waits.begin_cooldown(tx, profile_id, endpoint, after(tx.stamp, min(seconds, MAX_SECONDS)), reason)


def end(rt: Runtime, tx: Tx, profile_id: str, endpoint: str) -> None:
    """The network has answered a question to this endpoint: a wait for it ends, also for what it refused together."""
    row = tx.one("SELECT until FROM not_before WHERE profile_id = ? AND endpoint = ?", (profile_id, endpoint))
    if row is not None:
        # It has ended now, and still explains why the posts behind it are late.
        ended = "UPDATE not_before SET until = min(until, ?) WHERE profile_id = ? AND until = ?"
        tx.execute(ended, (tx.stamp, profile_id, row.until))
        delivery_rows.wake_postponed(tx, profile_id, row.until)


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget waits that are over, unless they still explain why a queued delivery is late; how many."""
    return tx.execute(
        """DELETE FROM not_before WHERE until <= ? AND NOT EXISTS (SELECT 1 FROM delivery d
            WHERE d.profile_id = not_before.profile_id AND d.state = 'queued' AND d.due_at < not_before.until)""",
        (tx.stamp,),
    ).rowcount
