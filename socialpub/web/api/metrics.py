"""`/metrics`: Prometheus text (contract 1.13). Numbers are read when they are asked for; nothing is counted twice."""

import hmac
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from socialpub.core.errors import Unauthorized
from socialpub.db import appliance_state
from socialpub.db.database import Reader
from socialpub.ops import health
from socialpub.publishing import holds
from socialpub.runtime import Runtime
from socialpub.web.endpoint import Answer, Request, endpoint

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from socialpub.web.app import App


@endpoint(scope=None)
async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """What there is to count."""
    wanted = rt.settings.metrics.token.get_secret_value()
    if wanted:
        scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), wanted.encode()):
            raise Unauthorized(
                "Send the token of [metrics]: Authorization: Bearer <TOKEN>.", headers=(("www-authenticate", "Bearer"),)
            )
    text, content_type = await rt.read_aside(lambda reader: _text(request.app, reader))
    return Answer(200, text, content_type=content_type)


def _text(app: "App", reader: Reader) -> tuple[bytes, bytes]:
    # Only those who ask for metrics pay for the library.
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import Collector

    class Now(Collector):
        def collect(self) -> Iterable["Metric"]:
            return _collect(app, reader)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Now())
    return generate_latest(registry), CONTENT_TYPE_LATEST.encode()


def _collect(app: "App", reader: Reader) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    rt = app.rt
    answers = CounterMetricFamily("socialpub_http_answers", "Answers of this web process", labels=["method", "status"])
    for (method, status), count in list(app.answered.items()):
        answers.add_metric([method, str(status)], count)
    yield answers

    for name, said, labels, sql in _COUNTED:
        family = GaugeMetricFamily(name, said, labels=labels)
        for row in reader.all(sql):
            family.add_metric([str(value) for value in row[:-1]], row[-1])
        yield family

    held = GaugeMetricFamily("socialpub_held", "1 while a network refuses the whole app", labels=["provider"])
    refusing = {hold["provider"] for hold in holds.list_all(reader)}
    for provider in sorted(rt.providers):
        held.add_metric([provider], provider in refusing)
    yield held

    now = rt.now()
    yield GaugeMetricFamily(
        "socialpub_deliveries_overdue",
        "Due for more than two minutes, and neither paused nor held",
        value=health.overdue(reader, now),
    )
    yield GaugeMetricFamily(
        "socialpub_paused", "1 while no delivery starts", value=0 if appliance_state.paused_at(reader) is None else 1
    )
    age = health.heartbeat_age(reader, now)
    if age is not None:
        yield GaugeMetricFamily(
            "socialpub_worker_heartbeat_age_seconds", "Since the worker last showed itself", value=age
        )
    yield GaugeMetricFamily("socialpub_disk_free_bytes", "Room where media is stored", value=rt.files.free_bytes())
    yield GaugeMetricFamily(
        "socialpub_database_bytes", "Size of the database file", value=rt.settings.database_file.stat().st_size
    )


_COUNTED = (
    (
        "socialpub_posts",
        "Posts by status",
        ["status"],
        "SELECT status, sum(posts) FROM audience_count GROUP BY status ORDER BY status",
    ),
    (
        "socialpub_deliveries_waiting",
        "Deliveries that wait for their time, a retry or a network",
        ["provider"],
        "SELECT provider, count(*) FROM delivery WHERE state = 'queued' GROUP BY provider ORDER BY provider",
    ),
    (
        "socialpub_deliveries_running",
        "Deliveries that are being worked on",
        ["provider"],
        "SELECT provider, count(*) FROM delivery WHERE state = 'running' GROUP BY provider ORDER BY provider",
    ),
    (
        "socialpub_profiles",
        "Connected accounts",
        ["provider", "status"],
        "SELECT provider, status, count(*) FROM profile GROUP BY provider, status ORDER BY provider, status",
    ),
)
