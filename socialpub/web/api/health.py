"""`/healthz` and `/readyz`: alive, and working (contract 1.13).

What makes the appliance ready is `ops/health.py`'s to say; here it becomes an answer.
"""

import orjson

from socialpub.db import appliance_state
from socialpub.ops import health
from socialpub.publishing import holds
from socialpub.runtime import Runtime
from socialpub.web.endpoint import Answer, Request, endpoint

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
        app.readiness = (rt.clock.monotonic(), await health.reasons(rt))
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
