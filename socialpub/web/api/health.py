"""`/healthz` and `/readyz`: alive, and working (contract 1.13).

What makes the appliance ready is `ops/health.py`'s to say; here it becomes an answer.
"""

import orjson

from socialpub.db import appliance_state
from socialpub.db.transaction import Row
from socialpub.ops import health
from socialpub.publishing import holds
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.endpoint import endpoint
from socialpub.web.request import Request

_FRESH_SECONDS = 1.0
"""An answer counts for so long: frequent checks do not keep the disk busy."""


@endpoint(scope=None)
async def live(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """This process answers, and which installation it belongs to: whether an address leads here can be told by that."""
    return Answer(200, b'{"status":"ok","instance":"%s"}' % rt.instance_id.encode())


def _shown_hold(hold: Row) -> dict[str, str]:
    shown = {"provider": hold["provider"], "since": hold["since"], "reason": hold["reason"]}
    return shown if hold["scope"] == holds.PUBLISHING else {**shown, "only": hold["scope"]}


@endpoint(scope=None)
async def ready(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The appliance works, or the reasons why not."""
    state = request.state
    if state.readiness is None or rt.clock.monotonic() - state.readiness[0] >= _FRESH_SECONDS:
        state.readiness = (rt.clock.monotonic(), await health.reasons(rt))
    reasons = state.readiness[1]
    paused = appliance_state.paused_at(rt.reader) is not None
    shown: dict[str, object] = {"status": "unready" if reasons else "paused" if paused else "ready"}
    if paused:
        shown["paused"] = True
    # A network that refuses the app is no fault of this machine: it is shown, and readiness stays.
    held = holds.list_all(rt.reader)
    if held:
        shown["held"] = [_shown_hold(hold) for hold in held]
    jump = health.clock_jump(rt.reader, rt.now())
    if jump is not None:
        shown["clock"] = jump
    if reasons:
        shown["reasons"] = reasons
        return Answer(503, orjson.dumps(shown), ((b"retry-after", b"10"),))
    return Answer(200, orjson.dumps(shown))
