"""Whether the appliance works: what readiness, the metrics and the doctor all ask."""

from datetime import datetime

from socialpub.core.clock import parse
from socialpub.db import appliance_state
from socialpub.db.database import Reader

HEARTBEAT_SECONDS = 30.0
"""A worker that has not shown itself for so long does not work, whatever its process does."""


def heartbeat_age(reader: Reader, now: datetime) -> float | None:
    """Seconds since the worker last showed itself; None when it never did."""
    shown = appliance_state.get(reader, appliance_state.HEARTBEAT)
    return None if shown is None else (now - parse(shown)).total_seconds()
