"""Rate limits and other waits, stored per profile and endpoint: until when nothing is asked there.

When one delivery has to wait, the others of its profile do not ask for the same answer.
"""

from socialpub.core.clock import after
from socialpub.db.connection import Tx
from socialpub.db.tables import delivery_rows, waits
from socialpub.providers.errors import ProviderError, Throttled
from socialpub.runtime import Runtime

MAX_SECONDS = 86400.0
"""A network that names a longer wait is asked again after a day."""
MAX_PLAUSIBLE_SECONDS = 366 * 86400.0


def plausible_wait(seconds: float | None) -> float | None:
    """Return the wait if it is plausible: not in milliseconds, in the past or decades long. None: it is not."""
    return seconds if seconds is not None and 0 < seconds <= MAX_PLAUSIBLE_SECONDS else None


def named_wait(error: ProviderError) -> float | None:
    """Return the seconds that a rate limit asks to wait. None: it names no plausible time."""
    return plausible_wait(error.retry_after_seconds) if isinstance(error, Throttled) else None


def begin_for(rt: Runtime, tx: Tx, profile_id: str, endpoint: str, seconds: float, reason: str) -> None:
    """Begin a wait from now on, for a day at most, as a write of its own."""
    waits.begin_cooldown(tx, profile_id, endpoint, after(tx.stamp, min(seconds, MAX_SECONDS)), reason)


def end(rt: Runtime, tx: Tx, profile_id: str, endpoint: str) -> None:
    """End a wait for this endpoint, which the network has answered, and for what was refused together with it."""
    until = waits.end_cooldown(tx, profile_id, endpoint)
    if until is not None:
        delivery_rows.wake_postponed(tx, profile_id, until)


def clean(rt: Runtime, tx: Tx) -> int:
    """Delete waits that are over, unless they explain why a queued delivery is late; return how many."""
    return waits.delete_past_cooldowns(tx)
