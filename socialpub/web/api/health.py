"""`/healthz`, `/readyz` and `/metrics` (contract 1.13).

`ops/health.py` decides whether the appliance is ready. Every response arrives within seconds, even if a check hangs.
Clients do not need a key, so responses never quote a network or an exception.
"""

import asyncio
import hmac
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

from socialpub.core import commands
from socialpub.db.connection import Database
from socialpub.db.models import StoredWaitRow
from socialpub.db.tables import waits
from socialpub.ops import health
from socialpub.ops.health import Readiness
from socialpub.providers import registry
from socialpub.runtime import Runtime
from socialpub.web.http.endpoint import public, unauthorized, wrong_key
from socialpub.web.http.responses import JSONResponse
from socialpub.web.http.state import WebState

_FRESH_SECONDS = 1.0
"""Frequent requests share a check, so that they do not keep the disk busy."""
_NO_STORE = {"cache-control": "no-store"}


@public
async def live(rt: Runtime, request: Request) -> Response:
    """Return the instance id, by which `doctor` recognizes this appliance."""
    return JSONResponse({"status": "ok", "instance": rt.instance_id}, headers=_NO_STORE)


@public
async def ready(rt: Runtime, request: Request) -> Response:
    # Clients do not need a key, so the response must not contain paths of this host.
    with commands.in_public():
        return _render_readiness(await _check_readiness(rt, request.app.state))


def _render_readiness(found: Readiness) -> Response:
    body: dict[str, object] = {"status": "unready" if found.reasons else "paused" if found.paused else "ready"}
    if found.paused:
        body["paused"] = True
    # A network that refuses the app does not make the appliance unready.
    if found.held:
        body["held"] = [_shown_hold(hold) for hold in found.held]
    if found.clock is not None:
        body["clock"] = found.clock
    if found.failing_tasks is not None:
        body["tasks"] = found.failing_tasks
    if found.reasons:
        body["reasons"] = [finding.sentences for finding in found.reasons]
        body["codes"] = [finding.code for finding in found.reasons]
        return JSONResponse(body, 503, {"retry-after": "10", **_NO_STORE})
    return JSONResponse(body, headers=_NO_STORE)


async def _check_readiness(rt: Runtime, state: WebState) -> Readiness:
    """Return the result of a check that started at most one second ago. All callers share a check that hangs."""
    now = rt.clock.monotonic()
    running = state.readiness
    if running is None or (running[1].done() and now - running[0] >= _FRESH_SECONDS):
        running = state.readiness = now, asyncio.create_task(health.check_readiness(rt))
    began_at, check = running
    done, _ = await asyncio.wait({check}, timeout=max(began_at + health.READINESS_SECONDS - now, 0))
    return check.result() if done else health.HANGING


class HoldCode(StrEnum):
    """A stable code for what a network refuses to the app."""

    PUBLISHING = "publishingHeld"
    QUERIES = "queriesHeld"
    STEP = "stepHeld"


_HELD = {
    HoldCode.PUBLISHING: "{network} refuses this app. Deliveries to this network wait.",
    HoldCode.QUERIES: "{network} refuses queries from this app. Publishing continues.",
    HoldCode.STEP: "{network} refuses one step of this app. Deliveries wait at that step.",
}


def _shown_hold(hold: StoredWaitRow) -> dict[str, str]:
    calls = hold.calls
    codes = {waits.PUBLISHING: HoldCode.PUBLISHING, waits.QUESTIONS: HoldCode.QUERIES}
    code = codes.get(calls, HoldCode.STEP)
    where = f"The dashboard and `{commands.line('doctor')}` show the reason."
    reason = f"{_HELD[code].format(network=registry.LABELS[hold.subject])} {where}"
    body = {"provider": hold.subject, "since": hold.since, "code": code, "reason": reason}
    return body if code is HoldCode.PUBLISHING else {**body, "only": calls}


# --- metrics ----------------------------------------------------------------------------------------------------------

_CACHE_FACTOR = 20
"""The metrics are cached for this multiple of the time that reading took. This limits the CPU time of requests without
a key."""


@public
async def metrics(rt: Runtime, request: Request) -> Response:
    expected = rt.settings.metrics.token.get_secret_value()
    if expected:
        header = request.headers.get("authorization")
        if header is None:
            raise unauthorized("Send the token that [metrics] token sets: Authorization: Bearer <TOKEN>.")
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), expected.encode()):
            raise wrong_key(request, "The token is not the one that [metrics] token sets.")
    state: WebState = request.app.state
    clock = rt.clock

    def render(db: Database) -> tuple[bytes, str]:
        from socialpub.web import metrics

        return metrics.render_metrics(state, db)

    async with state.reading_metrics:
        began_at = clock.monotonic()
        if state.metrics is None or began_at >= state.metrics[0]:
            read = await rt.read_in_thread(render)
            ended_at = clock.monotonic()
            state.metrics = ended_at + _CACHE_FACTOR * (ended_at - began_at), read
        text, content_type = state.metrics[1]
    return Response(text, media_type=content_type)
