"""Every metric: its name, what it means, and where its numbers are read."""

from collections.abc import Iterable, Iterator
from math import isinf

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from socialpub.accounts import profiles
from socialpub.db import appliance_state, delivery_rows
from socialpub.db.models import OUTCOME_LETTERS, State
from socialpub.db.transaction import Reader
from socialpub.ops import health
from socialpub.publishing import audiences, holds, outcome_counts, sending_delays
from socialpub.runtime import Runtime
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
    rt, now = state.rt, state.rt.now()
    answers = CounterMetricFamily("socialpub_http_answers", "Answers of this web process", labels=["method", "status"])
    for (method, status), count in list(state.answers.items()):
        answers.add_metric([method, str(status)], count)
    yield answers
    yield _gauge("socialpub_posts", "Posts by status", ["status"], audiences.count_posts(reader))
    yield _gauge(
        "socialpub_deliveries_waiting",
        "Deliveries that wait for their time, a retry or a network",
        ["provider"],
        delivery_rows.count_by_provider(reader, State.QUEUED),
    )
    yield _gauge(
        "socialpub_deliveries_running",
        "Deliveries that are being worked on",
        ["provider"],
        delivery_rows.count_by_provider(reader, State.RUNNING),
    )
    yield _deliveries(rt, reader)
    yield _delays(rt, reader)
    yield _gauge("socialpub_profiles", "Connected accounts", ["provider", "status"], profiles.count(reader))
    held = holds.held(reader)
    yield _gauge(
        "socialpub_held",
        "1 while a network refuses the whole app",
        ["provider"],
        [(provider, int(provider in held)) for provider in sorted(rt.providers)],
    )
    paused = appliance_state.paused_at(reader) is not None
    yield GaugeMetricFamily(
        "socialpub_deliveries_overdue",
        "Due for more than two minutes, and neither paused nor held",
        value=health.overdue(reader, now).count,
    )
    yield GaugeMetricFamily("socialpub_paused", "1 while no delivery starts", value=int(paused))
    age = health.heartbeat_age(reader, now)
    if age is not None:
        yield GaugeMetricFamily(
            "socialpub_worker_heartbeat_age_seconds", "Since the worker last showed itself", value=age
        )
    yield GaugeMetricFamily("socialpub_disk_free_bytes", "Room where media is stored", value=rt.files.free_bytes())
    yield GaugeMetricFamily(
        "socialpub_database_bytes", "Size of the database file", value=rt.settings.database_file.stat().st_size
    )


def _deliveries(rt: Runtime, reader: Reader) -> Metric:
    """Those that have their outcome, which is final: a counter that no restart resets."""
    family = CounterMetricFamily(
        "socialpub_deliveries", "Deliveries that have their outcome", labels=["provider", "outcome"]
    )
    counted = outcome_counts.read(reader)
    for provider in sorted(rt.providers):
        for outcome in OUTCOME_LETTERS:
            if outcome != "pending":
                family.add_metric([provider, outcome], counted.get((provider, outcome), 0))
    return family


def _delays(rt: Runtime, reader: Reader) -> Metric:
    family = HistogramMetricFamily(
        "socialpub_sending_delay_seconds",
        "From the time of a published delivery (scheduledAt, or its acceptance) to the call that made it public",
        labels=["provider"],
    )
    for provider in sorted(rt.providers):
        buckets, seconds = sending_delays.read(reader, provider)
        family.add_metric([provider], [(_bound(bound), count) for bound, count in buckets], seconds)
    return family


def _bound(seconds: float) -> str:
    return "+Inf" if isinf(seconds) else str(seconds)


def _gauge(name: str, meaning: str, labels: list[str], rows: Iterable[tuple[str | int, ...]]) -> Metric:
    """One family; of each row the last value is the number, those before are its labels."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for row in rows:
        family.add_metric([str(value) for value in row[:-1]], float(row[-1]))
    return family
