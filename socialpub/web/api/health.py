"""`/healthz`, `/readyz` and `/metrics`: alive, working (contract 1.13), and in numbers.

What makes the appliance ready is `ops/health.py`'s to say; here it becomes an answer, within seconds whatever hangs.
Anyone may ask, so every word is ours: what a network or an exception says is for the owner alone.
"""

import asyncio
import hmac
from enum import StrEnum

import orjson

from socialpub.core import commands
from socialpub.db.connection import Reader
from socialpub.db.models import HoldRow
from socialpub.db.tables import holds
from socialpub.ops import health
from socialpub.ops.health import Readiness
from socialpub.providers import registry
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Answer
from socialpub.web.http.endpoint import endpoint, unauthorized, wrong_key
from socialpub.web.http.request import Request, WebState

_FRESH_SECONDS = 1.0
"""A look counts for so long: frequent checks do not keep the disk busy."""
_NOW = ((b"cache-control", b"no-store"),)
"""No proxy may keep what was true a minute ago."""


@endpoint(scope=None)
async def live(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """This process answers, and which installation it belongs to: whether an address leads here can be told by that."""
    return Answer(200, b'{"status":"ok","instance":"%s"}' % rt.instance_id.encode(), _NOW)


@endpoint(scope=None)
async def ready(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    # Anyone may ask: the machine's paths are none of their business.
    with commands.in_public():
        return _answer(await _look(rt, request.state))


def _answer(found: Readiness) -> Answer:
    shown: dict[str, object] = {"status": "unready" if found.reasons else "paused" if found.paused else "ready"}
    if found.paused:
        shown["paused"] = True
    # A network that refuses the app is no fault of this machine: it is shown, and readiness stays.
    if found.held:
        shown["held"] = [_shown_hold(hold) for hold in found.held]
    if found.clock is not None:
        shown["clock"] = found.clock
    if found.reasons:
        shown["reasons"] = [finding.sentences for finding in found.reasons]
        shown["codes"] = [finding.code for finding in found.reasons]
        return Answer(503, orjson.dumps(shown), ((b"retry-after", b"10"), *_NOW))
    return Answer(200, orjson.dumps(shown), _NOW)


async def _look(rt: Runtime, state: WebState) -> Readiness:
    """What a look finds that is a second old at most. One that hangs is waited for once, not by a thread per caller."""
    now = rt.clock.monotonic()
    known = state.readiness
    if known is None or (known[1].done() and now - known[0] >= _FRESH_SECONDS):
        known = state.readiness = now, asyncio.create_task(health.check_readiness(rt))
    began_at, looking = known
    done, _ = await asyncio.wait({looking}, timeout=max(began_at + health.READINESS_SECONDS - now, 0))
    return looking.result() if done else health.HANGING


class HoldCode(StrEnum):
    """What a network refuses to the app, for programs. A code never changes its meaning."""

    PUBLISHING = "publishingHeld"
    QUERIES = "queriesHeld"
    STEP = "stepHeld"


_HELD = {
    HoldCode.PUBLISHING: "{network} refuses this app. Deliveries to this network wait.",
    HoldCode.QUERIES: "{network} refuses queries from this app. Publishing continues.",
    HoldCode.STEP: "{network} refuses one step of this app. Deliveries wait at that step.",
}


def _shown_hold(hold: HoldRow) -> dict[str, str]:
    scope = hold.scope
    codes = {holds.PUBLISHING: HoldCode.PUBLISHING, holds.QUESTIONS: HoldCode.QUERIES}
    code = codes.get(scope, HoldCode.STEP)
    where = f"The dashboard and `{commands.line('doctor')}` show the reason."
    reason = f"{_HELD[code].format(network=registry.LABELS[hold.provider])} {where}"
    shown = {"provider": hold.provider, "since": hold.since, "code": code, "reason": reason}
    return shown if code is HoldCode.PUBLISHING else {**shown, "only": scope}


# --- metrics ----------------------------------------------------------------------------------------------------------

_REST = 20
"""The numbers are kept for this many times the time that reading them took. Callers need no key, and this limits the
share of a processor that they can use."""


@endpoint(scope=None)
async def metrics(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The metrics, for those who have their token if one is set."""
    expected = rt.settings.metrics.token.get_secret_value()
    if expected:
        header = request.headers.get(b"authorization")
        if header is None:
            raise unauthorized("Send the token that [metrics] token sets: Authorization: Bearer <TOKEN>.")
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), expected.encode()):
            raise wrong_key(request, "The token is not the one that [metrics] token sets.")
    async with request.state.reading_metrics:
        text, content_type = await _read_metrics(rt, request.state)
    return Answer(200, text, content_type=content_type)


async def _read_metrics(rt: Runtime, state: WebState) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""

    def render(reader: Reader) -> tuple[bytes, bytes]:
        from socialpub.web import metrics

        return metrics.render_metrics(state, reader)

    began_at = rt.clock.monotonic()
    if state.metrics is not None and began_at < state.metrics[0]:
        return state.metrics[1]
    read = await rt.read_in_thread(render)
    ended_at = rt.clock.monotonic()
    state.metrics = ended_at + _REST * (ended_at - began_at), read
    return read
