"""`/healthz` and `/readyz`: alive, and working (contract 1.13).

Ready means working: readiness looks at whether the database takes a write, the disk has room, the worker's heartbeat is
fresh and no delivery is overdue, not only at whether this process answers.
"""

import asyncio

import orjson

from socialpub.core.clock import stamp
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state
from socialpub.db.database import Tx
from socialpub.ops import health
from socialpub.publishing import holds, scheduling
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.endpoint import endpoint
from socialpub.web.request import Request

OVERDUE_SECONDS = 120.0
_WRITE_TIMEOUT_SECONDS = 6.0
_FRESH_SECONDS = 1.0
"""An answer counts for so long: frequent checks do not keep the disk busy."""


@endpoint(scope=None)
async def live(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """This process answers."""
    return Answer(200, b'{"status":"ok"}')


@endpoint(scope=None)
async def ready(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The appliance works, or the reasons why not."""
    state = request.state
    if state.readiness is None or rt.clock.monotonic() - state.readiness[0] >= _FRESH_SECONDS:
        state.readiness = (rt.clock.monotonic(), await _reasons(rt))
    reasons = state.readiness[1]
    paused = appliance_state.paused_at(rt.reader) is not None
    shown: dict[str, object] = {"status": "unready" if reasons else "paused" if paused else "ready"}
    if paused:
        shown["paused"] = True
    # A network that refuses the app is no fault of this machine: it is shown, and readiness stays.
    held = holds.list_all(rt.reader)
    if held:
        shown["held"] = [
            {"provider": hold["provider"], "since": hold["since"], "reason": hold["reason"]} for hold in held
        ]
    if reasons:
        shown["reasons"] = reasons
        return Answer(503, orjson.dumps(shown), ((b"retry-after", b"10"),))
    return Answer(200, orjson.dumps(shown))


async def _reasons(rt: Runtime) -> list[str]:
    """Why the appliance does not work, as sentences; empty when it does."""
    reasons = []
    now = rt.now()
    try:
        await asyncio.wait_for(rt.write_soon(_write_probe), _WRITE_TIMEOUT_SECONDS)
    except (Unavailable, TimeoutError) as error:
        reasons.append(f"The database cannot be written: {getattr(error, 'detail', 'it does not answer')}")
    floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
    if free < floor:
        reasons.append(f"The disk has {free // 1_000_000} MB left, which is below health.disk_floor_bytes.")
    age = health.heartbeat_age(rt.reader, now)
    if age is None:
        reasons.append(
            "The worker has never run. Start it: `socialpub serve` runs web and worker, `socialpub worker` the worker "
            "alone."
        )
    elif age > health.HEARTBEAT_SECONDS:
        reasons.append(f"The worker has not shown itself for {age:.0f} seconds. Look at its log and start it.")
    overdue = 0 if appliance_state.paused_at(rt.reader) else scheduling.overdue(rt.reader, stamp(now), OVERDUE_SECONDS)
    if overdue:
        reasons.append(f"{overdue} deliveries are overdue by more than two minutes. The worker's log says why.")
    return reasons


def _write_probe(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.READINESS, tx.stamp)
