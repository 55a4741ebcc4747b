"""Every metric as one text. What each means stands with it, in `web/metrics/`."""

import hmac
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from socialpub.db.connection import Reader
from socialpub.runtime import Runtime
from socialpub.web import metric_families
from socialpub.web.http.answer import Answer
from socialpub.web.http.endpoint import endpoint, unauthorized, wrong_key
from socialpub.web.http.request import Request, WebState


class _Metrics(Collector):
    def __init__(self, state: WebState, reader: Reader) -> None:
        self._state = state
        self._reader = reader

    def collect(self) -> Iterable[Metric]:
        return _families(self._state, self._reader)


def render_metrics(state: WebState, reader: Reader) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(state, reader))
    return generate_latest(registry), CONTENT_TYPE_LATEST.encode()


def _families(state: WebState, reader: Reader) -> Iterator[Metric]:
    rt = state.rt
    yield from metric_families.request_families(state.answers)
    yield from metric_families.delivery_families(rt, reader)
    yield from metric_families.account_families(rt, reader)
    yield from metric_families.machine_families(rt, reader)
    yield from metric_families.notification_families(reader)


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
            raise wrong_key(request, "This is not the token of [metrics].")
    async with request.state.reading_metrics:
        text, content_type = await _read(rt, request.state)
    return Answer(200, text, content_type=content_type)


async def _read(rt: Runtime, state: WebState) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""
    began_at = rt.clock.monotonic()
    if state.metrics is not None and began_at < state.metrics[0]:
        return state.metrics[1]
    # prometheus-client costs memory: only an appliance whose metrics are read pays for it.

    read = await rt.read_in_thread(lambda reader: render_metrics(state, reader))
    ended_at = rt.clock.monotonic()
    state.metrics = ended_at + _REST * (ended_at - began_at), read
    return read
