"""The text of `/metrics`: every metric, what it means, and the rows that it is read from.

prometheus-client costs memory: only a process whose metrics are read imports this module.

Labels have few values, whatever callers send: a series lives as long as its store.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from math import isinf

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from socialpub.accounts.tokens import RefreshOutcome
from socialpub.accounts.upkeep import SOON
from socialpub.core import version
from socialpub.core.clock import parse, stamp
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Reader
from socialpub.db.queries import profile_queue as queue_rows
from socialpub.db.states import OUTCOME_LETTERS, READ_BACK, State
from socialpub.db.tables import audience_rows, counters, holds, notifications, profile_rows
from socialpub.db.tables.counters import Event
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.ops import health, storage
from socialpub.ops.backup import last_backup
from socialpub.ops.health import FindingCode
from socialpub.providers.base import Kind
from socialpub.publishing.delivery import profile_queue
from socialpub.runtime import Runtime
from socialpub.web.http.request import WebState


class _Metrics(Collector):
    def __init__(self, state: WebState, reader: Reader) -> None:
        self._state = state
        self._reader = reader

    def collect(self) -> Iterator[Metric]:
        rt, reader = self._state.rt, self._reader
        yield from request_families(self._state.answers)
        yield from delivery_families(rt, reader)
        yield from account_families(rt, reader)
        yield from machine_families(rt, reader)
        yield from notification_families(reader)


def render_metrics(state: WebState, reader: Reader) -> tuple[bytes, bytes]:
    """The metrics as text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(state, reader))
    return generate_latest(registry), CONTENT_TYPE_LATEST.encode()


Rows = Iterable[tuple[str | int | float, ...]]
"""Of each row the last value is the number, those before are its labels."""


def gauge(name: str, meaning: str, labels: list[str], rows: Rows) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    _fill(family, rows)
    return family


def counter(name: str, meaning: str, labels: list[str], rows: Rows) -> CounterMetricFamily:
    family = CounterMetricFamily(name, meaning, labels=labels)
    _fill(family, rows)
    return family


def one(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=value)


def _fill(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> None:
    for row in rows:
        family.add_metric([str(value) for value in row[:-1]], float(row[-1]))


# --- requests --------------------------------------------------------------------------------------------------------


def request_families(answers: Counter[tuple[str, str, int]]) -> Iterator[Metric]:
    yield counter(
        "socialpub_http_answers",
        "Answers of this web process; route is an address as it is documented, or none, and status 0 means that the "
        "caller went away",
        ["route", "method", "status"],
        [(route, method, str(status), count) for (route, method, status), count in sorted(answers.items())],
    )


# --- accounts --------------------------------------------------------------------------------------------------------


def account_families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    names = sorted(rt.providers)
    counted = {
        (provider, status): count for provider, status, count in profile_rows.count_by_provider_and_status(reader)
    }
    yield gauge(
        "socialpub_profiles",
        "Connected accounts",
        ["provider", "status"],
        [
            (provider, status, counted.get((provider, status), 0))
            for provider in names
            for status in ("active", "reauthRequired", "disconnected")
        ],
    )
    lapsing = dict(profile_rows.count_ending_by_provider(reader, stamp(rt.now() + SOON)))
    yield gauge(
        "socialpub_profiles_lapsing",
        "Active accounts that their owner must connect again within a week",
        ["provider"],
        [(provider, lapsing.get(provider, 0)) for provider in names],
    )
    refreshed = {(provider, outcome): count for provider, _, outcome, count in counters.events(reader, Event.REFRESH)}
    yield counter(
        "socialpub_token_refreshes",
        "New tokens that a network was asked for; refused ones cost the account's connection, failed ones are repeated",
        ["provider", "outcome"],
        [(name, outcome, refreshed.get((name, outcome), 0)) for name in names for outcome in RefreshOutcome],
    )
    held = holds.held_networks(reader)
    yield gauge(
        "socialpub_held",
        "1 while a network refuses the whole app",
        ["provider"],
        [(provider, int(provider in held)) for provider in names],
    )


# --- deliveries ------------------------------------------------------------------------------------------------------


def delivery_families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    now, paused = rt.now(), appliance_state.paused_at(reader) is not None
    yield gauge("socialpub_posts", "Posts by status", ["status"], audience_rows.count_posts(reader))
    yield gauge(
        "socialpub_deliveries_waiting",
        "Deliveries that wait for their time, a retry or a network",
        ["provider"],
        _each(rt, queue_rows.count_by_provider(reader, State.QUEUED)),
    )
    yield gauge(
        "socialpub_deliveries_due",
        "Of those, deliveries whose time has come",
        ["provider"],
        _each(rt, queue_rows.count_due_by_provider(reader, stamp(now))),
    )
    yield gauge(
        "socialpub_deliveries_running",
        "Deliveries that are being worked on",
        ["provider"],
        _each(rt, queue_rows.count_by_provider(reader, State.RUNNING)),
    )
    yield one(
        "socialpub_deliveries_overdue",
        "Due for more than two minutes, and neither paused nor held",
        health.find_overdue(reader, now).count,
    )
    oldest = profile_queue.NOT_OVERDUE if paused else profile_queue.find_overdue(reader, stamp(now), 0.0)
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
    counted = counters.outcomes(reader)
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
    counted = {row[:3]: row[3] for row in counters.events(reader, Event.ATTEMPT)}
    every = product(sorted(rt.providers), (*Kind, READ_BACK), AttemptOutcome)
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
        buckets, seconds = counters.sending_delays(reader, provider)
        family.add_metric([provider], [(_bound(bound), count) for bound, count in buckets], seconds)
    return family


def _bound(seconds: float) -> str:
    return "+Inf" if isinf(seconds) else str(seconds)


# --- notifications ---------------------------------------------------------------------------------------------------


def notification_families(reader: Reader) -> Iterator[Metric]:
    services = notifications.services(reader)
    yield counter(
        "socialpub_notifications",
        "Messages to the owner that a service took (sent), and tries that failed",
        ["service", "outcome"],
        [
            (service.name, outcome, count)
            for service in services
            for outcome, count in (("sent", service.sent), ("failed", service.failed))
        ],
    )
    yield gauge(
        "socialpub_notifications_waiting",
        "Messages to the owner that a service has not taken yet",
        ["service"],
        [(service.name, service.waiting) for service in services],
    )
    yield gauge(
        "socialpub_notifications_failing",
        "1 while the last try to reach a service failed",
        ["service"],
        [(service.name, int(service.failing_since is not None)) for service in services],
    )


# --- the machine -----------------------------------------------------------------------------------------------------


def machine_families(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    yield gauge("socialpub_build_info", "Which version answers", ["version"], [(version.current(), 1)])
    yield from _health(rt, reader)
    yield from _storage(rt)
    yield from _copies(reader)
    yield from _processes(reader)


def _health(rt: Runtime, reader: Reader) -> Iterator[Metric]:
    reasons = {finding.code for finding in health.check_without_writing(rt).reasons}
    yield gauge(
        "socialpub_unready",
        "1 for each reason why the appliance does not work, by the code that /readyz shows",
        ["code"],
        [(code, int(code in reasons)) for code in FindingCode],
    )
    age = health.heartbeat_age(reader, rt.now())
    if age is not None:
        yield one("socialpub_worker_heartbeat_age_seconds", "Since the worker last showed itself", age)
    jump = clock_jumps.recent_jump(reader, rt.now())
    if jump is not None and jump.jumped_at is not None:
        yield one(
            "socialpub_clock_set_timestamp_seconds",
            "When it was noticed that somebody set this machine's clock; for a day",
            parse(jump.jumped_at).timestamp(),
        )


def _storage(rt: Runtime) -> Iterator[Metric]:
    try:
        use = storage.read_use(rt)
    except OSError:  # the media folder is gone, which `socialpub_unready` tells
        return
    yield one("socialpub_disk_free_bytes", "Room where media is stored", use.free_bytes)
    yield one("socialpub_disk_floor_bytes", "Below this much room nothing is accepted", use.floor_bytes)
    yield one("socialpub_media_files", "Files of uploads", use.media_files)
    yield one("socialpub_media_bytes", "Size of the uploads' files", use.media_bytes)
    yield one("socialpub_renditions_bytes", "Size of what was made from uploads, and pictures", use.renditions_bytes)
    if use.quota_bytes is not None:
        yield one("socialpub_media_quota_bytes", "How large media may become (storage.quota)", use.quota_bytes)
    database = rt.settings.database_file
    yield one("socialpub_database_bytes", "Size of the database file", storage.size_of(database))
    yield one(
        "socialpub_database_wal_bytes",
        "Size of the database's journal of writes (WAL)",
        storage.size_of(database.with_name(database.name + "-wal")),
    )


def _copies(reader: Reader) -> Iterator[Metric]:
    copy = last_backup.load(reader)
    if copy.made_at is not None:
        made_at = parse(copy.made_at).timestamp()
        yield one("socialpub_last_copy_timestamp_seconds", "The instant of the last backup", made_at)
    if copy.scheduled is not None:
        yield one("socialpub_scheduled_copy_bytes", "Size of the last scheduled backup", copy.scheduled.size_bytes)
        yield one(
            "socialpub_scheduled_copy_new_bytes",
            "What it adds to the room that data and earlier backups take",
            copy.scheduled.new_bytes,
        )
    failed_at = 0.0 if copy.failed_at is None else parse(copy.failed_at).timestamp()
    yield one(
        "socialpub_last_copy_failure_timestamp_seconds",
        "When a backup failed, if none was made since; else 0",
        failed_at,
    )


def _processes(reader: Reader) -> Iterator[Metric]:
    """The worker's are those of its last heartbeat."""
    running = {"web": health.read_process_figures()}
    report = health.read_worker_report(reader)
    if report is not None:
        running["worker"] = report.figures
    for name, meaning, field in (
        ("resident_memory_bytes", "Memory in use, with what is shared", "memory_bytes"),
        ("threads", "Threads", "threads"),
        ("open_fds", "Open file descriptors", "open_files"),
        ("max_fds", "File descriptors that may be open", "most_files"),
    ):
        rows = [(process, getattr(figures, field)) for process, figures in running.items()]
        yield gauge(f"socialpub_process_{name}", f"{meaning}, of each process", ["process"], rows)
    yield counter(
        "socialpub_process_cpu_seconds",
        "Processor time, of each process",
        ["process"],
        [(process, figures.cpu_seconds) for process, figures in running.items()],
    )
