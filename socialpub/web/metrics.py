"""The text of `/metrics`.

Labels have a bounded number of values, so callers cannot add series. prometheus-client needs much memory, so only a
process whose metrics are read imports this module.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from math import isinf
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from socialpub.accounts.tokens import RefreshOutcome
from socialpub.accounts.upkeep import SOON
from socialpub.core import machine, version
from socialpub.core.clock import parse, stamp
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.queries import profile_queue as queue_rows
from socialpub.db.states import OUTCOME_LETTERS, READ_BACK, REPEATABLE, State
from socialpub.db.tables import counters, notifications, post_rows, profile_rows, waits
from socialpub.db.tables.counters import Event
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.ops import health, storage
from socialpub.ops.backup import last_backup
from socialpub.ops.health import FindingCode
from socialpub.ops.webhooks import receivers
from socialpub.ops.webhooks.receivers import WebhookHealth
from socialpub.providers.base import Kind
from socialpub.publishing import profile_queue
from socialpub.runtime import Runtime
from socialpub.web.http.state import WebState


class _Metrics(Collector):
    def __init__(self, state: WebState, db: Database) -> None:
        self._state = state
        self._db = db

    def collect(self) -> Iterator[Metric]:
        rt, db = self._state.rt, self._db
        yield from _requests(self._state.responses)
        yield from _deliveries(rt, db)
        yield from _accounts(rt, db)
        yield gauge("socialpub_build_info", "The version of socialpub", ["version"], [(version.VERSION, 1)])
        yield from _health(rt, db)
        yield from _storage(rt)
        yield from _backups(db)
        yield from _processes(db)
        yield from _notifications(db)
        yield from _webhooks(rt, db)


def render_metrics(state: WebState, db: Database) -> tuple[bytes, str]:
    """Return the metrics as text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(state, db))
    return generate_latest(registry), CONTENT_TYPE_LATEST


Rows = Iterable[tuple[str | int | float, ...]]
"""Each row contains the labels, then the number."""
Family = TypeVar("Family", GaugeMetricFamily, CounterMetricFamily)


def gauge(name: str, meaning: str, labels: list[str], rows: Rows) -> GaugeMetricFamily:
    return _fill(GaugeMetricFamily(name, meaning, labels=labels), rows)


def counter(name: str, meaning: str, labels: list[str], rows: Rows) -> CounterMetricFamily:
    return _fill(CounterMetricFamily(name, meaning, labels=labels), rows)


def number(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=value)


def _fill(family: Family, rows: Rows) -> Family:
    for row in rows:
        family.add_metric([str(value) for value in row[:-1]], float(row[-1]))
    return family


def _requests(responses: Counter[tuple[str, str, int]]) -> Iterator[Metric]:
    yield counter(
        "socialpub_http_answers",
        "Responses of this web process. route is the documented path or none. Status 0 means that the client "
        "disconnected",
        ["route", "method", "status"],
        [(route, method, str(status), count) for (route, method, status), count in sorted(responses.items())],
    )


def _accounts(rt: Runtime, db: Database) -> Iterator[Metric]:
    names = sorted(rt.providers)
    counted = {(provider, status): count for provider, status, count in profile_rows.count_by_provider_and_status(db)}
    yield gauge(
        "socialpub_profiles",
        "Connected accounts",
        ["provider", "status"],
        [(*labels, counted.get(labels, 0)) for labels in product(names, ("active", "reauthRequired", "disconnected"))],
    )
    yield gauge(
        "socialpub_profiles_lapsing",
        "Active accounts that the owner must connect again within a week",
        ["provider"],
        _by_network(rt, profile_rows.count_ending_by_provider(db, stamp(rt.now() + SOON))),
    )
    refreshed = {(provider, outcome): count for provider, _, outcome, count in counters.events(db, Event.REFRESH)}
    yield counter(
        "socialpub_token_refreshes",
        "Token refreshes. After a refused refresh, the owner must connect the account again. A failed refresh is "
        "retried",
        ["provider", "outcome"],
        [(*labels, refreshed.get(labels, 0)) for labels in product(names, RefreshOutcome)],
    )
    held = waits.held_networks(db)
    yield gauge(
        "socialpub_held",
        "1 while a network refuses the whole app",
        ["provider"],
        [(provider, int(provider in held)) for provider in names],
    )


def _by_network(rt: Runtime, counted: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Return the count of every network, including 0: an alert cannot compare with a missing series."""
    counts = dict(counted)
    return ((provider, counts.get(provider, 0)) for provider in sorted(rt.providers))


def _deliveries(rt: Runtime, db: Database) -> Iterator[Metric]:
    now, paused = rt.now(), appliance_state.paused_at(db) is not None
    names = sorted(rt.providers)
    yield gauge("socialpub_posts", "Posts by status", ["status"], post_rows.count_by_status(db))
    for name, meaning, counted in (
        (
            "socialpub_deliveries_waiting",
            "Deliveries that wait for their time, a retry or a network",
            queue_rows.count_by_provider(db, State.QUEUED),
        ),
        (
            "socialpub_deliveries_due",
            "Waiting deliveries that are due",
            queue_rows.count_due_by_provider(db, stamp(now)),
        ),
        (
            "socialpub_deliveries_running",
            "Deliveries that are running",
            queue_rows.count_by_provider(db, State.RUNNING),
        ),
    ):
        yield gauge(name, meaning, ["provider"], _by_network(rt, counted))
    yield number(
        "socialpub_deliveries_overdue",
        "Deliveries that are overdue by more than two minutes and neither paused nor held",
        health.find_overdue(db, now).count,
    )
    oldest = profile_queue.NOT_OVERDUE if paused else profile_queue.find_overdue(db, stamp(now), 0.0)
    yield number(
        "socialpub_oldest_due_seconds",
        "Wait of the oldest due delivery that is neither paused nor held; 0 if no delivery waits",
        oldest.seconds,
    )
    yield number("socialpub_paused", "1 while publishing is paused", int(paused))
    yield from _outcomes(db, names)


def _outcomes(db: Database, names: list[str]) -> Iterator[Metric]:
    outcomes = counters.outcomes(db)
    final = [outcome for outcome in OUTCOME_LETTERS if outcome != "pending"]
    yield counter(
        "socialpub_deliveries",
        "Deliveries with a final outcome",
        ["provider", "outcome"],
        [(*labels, outcomes.get(labels, 0)) for labels in product(names, final)],
    )
    attempts = {row[:3]: row[3] for row in counters.events(db, Event.ATTEMPT)}
    yield counter(
        "socialpub_attempts",
        "Delivery attempts by outcome. step_kind is the effect that a second run of the step would have",
        ["provider", "step_kind", "outcome"],
        # A network without a repeatable commit has no series for it.
        [
            (*labels, attempts.get(labels, 0))
            for labels in product(names, (*Kind, READ_BACK), AttemptOutcome)
            if labels[1] != REPEATABLE or labels in attempts
        ],
    )
    delays = HistogramMetricFamily(
        "socialpub_sending_delay_seconds",
        "Time from scheduledAt (or acceptance) of a published delivery to the call that published it",
        labels=["provider"],
    )
    for provider in names:
        buckets, seconds = counters.sending_delays(db, provider)
        delays.add_metric(
            [provider], [("+Inf" if isinf(bound) else str(bound), count) for bound, count in buckets], seconds
        )
    yield delays


def _notifications(db: Database) -> Iterator[Metric]:
    services = notifications.services(db)
    yield counter(
        "socialpub_notifications",
        "Notifications that a service accepted (sent), and failed tries",
        ["service", "outcome"],
        [
            (service.name, outcome, count)
            for service in services
            for outcome, count in (("sent", service.sent), ("failed", service.failed))
        ],
    )
    yield gauge(
        "socialpub_notifications_waiting",
        "Notifications that a service has not accepted yet",
        ["service"],
        [(service.name, service.waiting) for service in services],
    )
    yield gauge(
        "socialpub_notifications_failing",
        "1 while the last try to reach a service failed",
        ["service"],
        [(service.name, int(service.failing_since is not None)) for service in services],
    )


def _webhooks(rt: Runtime, db: Database) -> Iterator[Metric]:
    webhooks = receivers.list_health(db, rt.now())
    yield counter(
        "socialpub_webhook_events",
        "Events that a webhook accepted, failed tries, and events that were too old and left out",
        ["webhook", "address", "outcome"],
        [
            (webhook.row.id, webhook.row.name, outcome, count)
            for webhook in webhooks
            for outcome, count in (
                ("accepted", webhook.row.accepted),
                ("failed", webhook.row.failed),
                ("left_out", webhook.row.left_out),
            )
        ],
    )
    for name, meaning, value in (
        ("lag_seconds", "Age of the oldest event that a webhook has not accepted yet; 0 if no event waits", _lag),
        ("disabled", "1 for a webhook that answered 410", _is_disabled),
    ):
        rows = [(webhook.row.id, webhook.row.name, value(webhook)) for webhook in webhooks]
        yield gauge(f"socialpub_webhook_{name}", meaning, ["webhook", "address"], rows)


def _lag(one: WebhookHealth) -> float:
    return one.lag_seconds


def _is_disabled(one: WebhookHealth) -> float:
    return float(one.row.disabled_at is not None)


def _health(rt: Runtime, db: Database) -> Iterator[Metric]:
    reasons = {finding.code for finding in health.check_without_writing(rt).reasons}
    yield gauge(
        "socialpub_unready",
        "1 for each reason why the appliance is not ready, by the code that /readyz shows",
        ["code"],
        [(code, int(code in reasons)) for code in FindingCode],
    )
    age = health.heartbeat_age(db, rt.now())
    if age is not None:
        yield number("socialpub_worker_heartbeat_age_seconds", "Age of the last worker heartbeat", age)
    jump = clock_jumps.recent_jump(db, rt.now())
    if jump is not None and jump.jumped_at is not None:
        yield number(
            "socialpub_clock_set_timestamp_seconds",
            "The time when the appliance noticed that the system clock was set. Exported for one day",
            parse(jump.jumped_at).timestamp(),
        )


def _storage(rt: Runtime) -> Iterator[Metric]:
    try:
        use = storage.read_use(rt)
    except OSError:  # the media folder is missing, which `socialpub_unready` reports
        return
    database = rt.settings.database_file
    for name, meaning, value in (
        ("socialpub_disk_free_bytes", "Free space on the disk that stores media", use.free_bytes),
        ("socialpub_disk_floor_bytes", "Free space below which nothing is accepted", use.floor_bytes),
        ("socialpub_media_files", "Uploaded files", use.media_files),
        ("socialpub_media_bytes", "Size of the uploaded files", use.media_bytes),
        (
            "socialpub_renditions_bytes",
            "Size of files made from uploads, and of profile pictures",
            use.renditions_bytes,
        ),
        ("socialpub_media_quota_bytes", "Maximum size of all media (storage.quota)", use.quota_bytes),
        ("socialpub_database_bytes", "Size of the database file", storage.size_of(database)),
        (
            "socialpub_database_wal_bytes",
            "Size of the database's write-ahead log (WAL)",
            storage.size_of(database.with_name(database.name + "-wal")),
        ),
    ):
        if value is not None:
            yield number(name, meaning, value)


def _backups(db: Database) -> Iterator[Metric]:
    backup = last_backup.load(db)
    if backup.made_at is not None:
        made_at = parse(backup.made_at).timestamp()
        yield number("socialpub_last_backup_timestamp_seconds", "When the last backup was made", made_at)
    if scheduled := backup.scheduled:
        yield number("socialpub_scheduled_backup_bytes", "Size of the last scheduled backup", scheduled.size_bytes)
        yield number(
            "socialpub_scheduled_backup_new_bytes",
            "Space that the last scheduled backup needs in addition to the data and earlier backups",
            scheduled.new_bytes,
        )
    yield number(
        "socialpub_last_backup_failure_timestamp_seconds",
        "When the last backup failed; 0 if it succeeded",
        0.0 if backup.failed_at is None else parse(backup.failed_at).timestamp(),
    )


def _processes(db: Database) -> Iterator[Metric]:
    running = {"web": machine.read_process_figures()}
    report = health.read_worker_report(db)
    if report is not None:
        running["worker"] = report.figures
    for name, meaning, field in (
        ("resident_memory_bytes", "Memory in use, including shared memory", "memory_bytes"),
        ("threads", "Threads", "threads"),
        ("open_fds", "Open file descriptors", "open_files"),
        ("max_fds", "Maximum number of open file descriptors", "most_files"),
    ):
        rows = [(process, getattr(figures, field)) for process, figures in running.items()]
        yield gauge(f"socialpub_process_{name}", f"{meaning} of each process", ["process"], rows)
    yield counter(
        "socialpub_process_cpu_seconds",
        "CPU time of each process",
        ["process"],
        [(process, figures.cpu_seconds) for process, figures in running.items()],
    )
