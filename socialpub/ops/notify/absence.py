"""A worker that was away: it tells so itself once it is back, since nobody else could while it was not.

A worker that ended because it was told to, and missed nothing, is not worth a message: machines are switched off.
"""

import json
from datetime import timedelta

from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import parse
from socialpub.db import appliance_state, told_causes
from socialpub.db.transaction import Tx
from socialpub.ops import health
from socialpub.ops.causes import Cause
from socialpub.ops.finding import FindingCode
from socialpub.runtime import Runtime

LONG = timedelta(minutes=10)
"""A restart, or an upgrade, is shorter."""
SHOWN = timedelta(days=1)
SILENCE = f"worker:{FindingCode.WORKER_LATE}:"
"""The cause that somebody else may have told meanwhile; its end says the same."""


def note_start(rt: Runtime, tx: Tx) -> None:
    """A worker begins, and has not reported yet."""
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    ended = appliance_state.get(tx, appliance_state.WORKER_ENDED_AT)
    appliance_state.remove(tx, appliance_state.WORKER_ENDED_AT)
    if reported is None or tx.now - parse(reported) < LONG:
        return
    late = health.overdue(tx.reader, tx.now).count
    known = told_causes.read(tx).get(SILENCE)
    if (ended is None or late) and (known is None or known.told_at is None):
        away = {"since": reported, "until": tx.stamp, "late": late}
        appliance_state.put(tx, appliance_state.WORKER_AWAY, json.dumps(away))


def note_end(rt: Runtime, tx: Tx) -> None:
    """A worker ends because it was told to."""
    appliance_state.put(tx, appliance_state.WORKER_ENDED_AT, tx.stamp)


def find(rt: Runtime) -> Cause | None:
    """That the worker was away, while that is news."""
    written = appliance_state.get(rt.reader, appliance_state.WORKER_AWAY)
    if written is None:
        return None
    away = json.loads(written)
    if rt.now() - parse(away["until"]) > SHOWN:
        return None
    span = (parse(away["until"]) - parse(away["since"])).total_seconds()
    sentence = f"The worker did not run for {_in_words(span)}, until {away['until'][:16].replace('T', ' ')} UTC"
    if away["late"]:
        were = "1 delivery was" if away["late"] == 1 else f"{away['late']:,} deliveries were"
        sentence += f"; {were} overdue when it came back"
    return Cause(
        CauseKind.WORKER,
        f"worker:away:{away['since']}",
        f"{sentence}.",
        "It works again. Its log, or that of the machine, says what ended it.",
        "/system",
        passes=True,
    )


def _in_words(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 7200 else f"{seconds / 60:.0f} minutes"
