"""`/metrics`: Prometheus text (contract 1.13). Numbers are read when they are asked for; nothing is counted twice."""

import hmac

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.authentication import unauthorized, wrong
from socialpub.web.endpoint import endpoint
from socialpub.web.request import Request
from socialpub.web.state import WebState

_REST = 20
"""How many times as long as reading the numbers took they count: whoever asks all the time, which needs no key, keeps
no more than that part of a processor busy."""


@endpoint(scope=None)
async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The metrics, for those who have their token if one is set."""
    expected = rt.settings.metrics.token.get_secret_value()
    if expected:
        header = request.headers.get(b"authorization")
        if header is None:
            raise unauthorized("Send the token of [metrics]: Authorization: Bearer <TOKEN>.")
        scheme, _, token = header.partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), expected.encode()):
            raise wrong(request, "This is not the token of [metrics].")
    async with request.state.reading_metrics:
        text, content_type = await _read(rt, request.state)
    return Answer(200, text, content_type=content_type)


async def _read(rt: Runtime, state: WebState) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""
    began_at = rt.clock.monotonic()
    if state.metrics is not None and began_at < state.metrics[0]:
        return state.metrics[1]
    # prometheus-client costs memory: only an appliance whose metrics are read pays for it.
    from socialpub.web.api import metric_families

    read = await rt.read_aside(lambda reader: metric_families.render(state, reader))
    ended_at = rt.clock.monotonic()
    state.metrics = ended_at + _REST * (ended_at - began_at), read
    return read
