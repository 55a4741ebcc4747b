"""Every metric as one text. What each means stands with it, in `web/metrics/`."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from socialpub.db.transaction import Reader
from socialpub.web.metrics import accounts, deliveries, machine, notifications, requests
from socialpub.web.state import WebState


class _Metrics(Collector):
    def __init__(self, state: WebState, reader: Reader) -> None:
        self._state = state
        self._reader = reader

    def collect(self) -> Iterable[Metric]:
        return _families(self._state, self._reader)


def render(state: WebState, reader: Reader) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(state, reader))
    return generate_latest(registry), CONTENT_TYPE_LATEST.encode()


def _families(state: WebState, reader: Reader) -> Iterator[Metric]:
    rt = state.rt
    yield from requests.families(state.answers)
    yield from deliveries.families(rt, reader)
    yield from accounts.families(rt, reader)
    yield from machine.families(rt, reader)
    yield from notifications.families(reader)
