"""Metrics of posts and deliveries: what waits, what runs, what became of it, and how late it went out."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import isinf

from prometheus_client.core import HistogramMetricFamily, Metric

from socialpub.core.clock import stamp
from socialpub.db import appliance_state, event_counts, waiting_deliveries
from socialpub.db.event_counts import Event
from socialpub.db.models import OUTCOME_LETTERS, State
from socialpub.db.transaction import Reader
from socialpub.ops import health
from socialpub.publishing import audiences, outcome_counts, scheduling, sending_delays
from socialpub.publishing.attempts import STEP_KINDS, AttemptOutcome
from socialpub.runtime import Runtime
from socialpub.web.metrics.shapes import counter, gauge, one


def families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    now, paused = rt.now(), appliance_state.paused_at(reader) is not None
    yield gauge("socialpub_posts", "Posts by status", ["status"], audiences.count_posts(reader))
    yield gauge(
        "socialpub_deliveries_waiting",
        "Deliveries that wait for their time, a retry or a network",
        ["provider"],
        _each(rt, waiting_deliveries.count_by_provider(reader, State.QUEUED)),
    )
    yield gauge(
        "socialpub_deliveries_due",
        "Of those, deliveries whose time has come",
        ["provider"],
        _each(rt, waiting_deliveries.count_due_by_provider(reader, stamp(now))),
    )
    yield gauge(
        "socialpub_deliveries_running",
        "Deliveries that are being worked on",
        ["provider"],
        _each(rt, waiting_deliveries.count_by_provider(reader, State.RUNNING)),
    )
    yield one(
        "socialpub_deliveries_overdue",
        "Due for more than two minutes, and neither paused nor held",
        health.overdue(reader, now).count,
    )
    oldest = scheduling.NOT_OVERDUE if paused else scheduling.overdue(reader, stamp(now), 0.0)
    yield one(
        "socialpub_oldest_due_seconds",
        "How long the oldest due delivery that is neither paused nor held has waited to be taken up; 0 when none waits",
        oldest.seconds,
    )
    yield one("socialpub_paused", "1 while no delivery starts", int(paused))
    yield _ended(rt, reader)
    yield _attempts(rt, reader)
    yield _delays(rt, reader)


def _each(rt: Runtime, counted: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Every network has its line, from the first scrape on: an alert cannot compare with nothing."""
    found = dict(counted)
    return ((provider, found.get(provider, 0)) for provider in sorted(rt.providers))


def _ended(rt: Runtime, reader: Reader) -> Metric:
    """Those that have their outcome, which is final: a counter that no restart resets."""
    counted = outcome_counts.read(reader)
    return counter(
        "socialpub_deliveries",
        "Deliveries that have their outcome",
        ["provider", "outcome"],
        [
            (provider, outcome, counted.get((provider, outcome), 0))
            for provider in sorted(rt.providers)
            for outcome in OUTCOME_LETTERS
            if outcome != "pending"
        ],
    )


def _attempts(rt: Runtime, reader: Reader) -> Metric:
    counted = {row[:3]: row[3] for row in event_counts.read(reader, Event.ATTEMPT)}
    every = product(sorted(rt.providers), STEP_KINDS, AttemptOutcome)
    return counter(
        "socialpub_attempts",
        "Runs of a delivery's steps by what came of them; step_kind says what running one twice would do",
        ["provider", "step_kind", "outcome"],
        [(*labels, counted.get(labels, 0)) for labels in every],
    )


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
