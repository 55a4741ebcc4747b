"""`/healthz` and `/readyz`: alive, and working (contract 1.13).

Green means working: readiness asks whether the database takes a write, the disk has room, the worker shows itself and
nothing is left lying, not only whether this process answers.
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
from socialpub.web.endpoint import Answer, Request, endpoint

OVERDUE_SECONDS = 120.0
_PATIENCE_SECONDS = 6.0
_FRESH_SECONDS = 1.0
"""An answer counts for so long: whoever asks often does not keep the disk busy."""


@endpoint(scope=None)
async def live(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """This process answers."""
    return Answer(200, b'{"status":"ok"}')


@endpoint(scope=None)
async def ready(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The appliance works, or the reasons why not."""
    app = request.app
    if app.readiness is None or rt.clock.monotonic() - app.readiness[0] >= _FRESH_SECONDS:
        app.readiness = (rt.clock.monotonic(), await reasons(rt))
    found = app.readiness[1]
    paused = appliance_state.paused_at(rt.reader) is not None
    told: dict[str, object] = {"status": "unready" if found else "paused" if paused else "ready"}
    if paused:
        told["paused"] = True
    # A network that refuses the app is no fault of this machine: it is told, and the light stays green.
    held = holds.list_all(rt.reader)
    if held:
        told["held"] = [
            {"provider": hold["provider"], "since": hold["since"], "reason": hold["reason"]} for hold in held
        ]
    if found:
        told["reasons"] = found
        return Answer(503, orjson.dumps(told), ((b"retry-after", b"10"),))
    return Answer(200, orjson.dumps(told))


async def reasons(rt: Runtime) -> list[str]:
    """Why the appliance does not work, as sentences; empty when it does."""
    found = []
    now = rt.now()
    try:
        await asyncio.wait_for(rt.write_soon(_touch), _PATIENCE_SECONDS)
    except (Unavailable, TimeoutError) as error:
        found.append(f"The database cannot be written: {getattr(error, 'detail', 'it does not answer')}")
    floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
    if free < floor:
        found.append(f"The disk has {free // 1_000_000} MB left, which is below health.disk_floor_bytes.")
    heartbeat = health.heartbeat_age(rt.reader, now)
    if heartbeat is None:
        found.append("The worker has never run. Start it: `socialpub serve` runs both, `socialpub worker` it alone.")
    elif heartbeat > health.HEARTBEAT_SECONDS:
        found.append(f"The worker has not shown itself for {heartbeat:.0f} seconds. Look at its log and start it.")
    late = 0 if appliance_state.paused_at(rt.reader) else scheduling.overdue(rt.reader, stamp(now), OVERDUE_SECONDS)
    if late:
        found.append(f"{late} deliveries are overdue by more than two minutes. The worker's log says why.")
    return found


def _touch(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.READINESS, tx.stamp)
