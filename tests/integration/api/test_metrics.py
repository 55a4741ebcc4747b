"""`/metrics`: values, counters that survive a restart, and names that follow the rules of Prometheus."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from socialpub.accounts import tokens
from socialpub.accounts.tokens import NotRenewed
from socialpub.core import version
from socialpub.core.settings.schema import MetricsSection
from socialpub.db.backup_format import BackupSummary
from socialpub.db.tables import waits
from socialpub.ops import health
from socialpub.ops.backup import last_backup
from socialpub.providers.base import Published, Refused
from socialpub.providers.responses import NoAnswer, Rejected
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from socialpub.web import metrics
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all

Samples = dict[tuple[str | tuple[str, str], ...], float]


def beat(rt: Runtime) -> None:
    rt.write(health.record_heartbeat)


def samples(text: bytes) -> Samples:
    """Return each value by name and sorted labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def scrape(client: Client, clock: HandClock | None = None) -> Samples:
    if clock is not None:
        clock.forward(60)  # the cache expires
    return samples(client.send("GET", "/metrics", key=None).body)


def test_metrics_are_in_the_prometheus_text_format(client, rt, profile):
    beat(rt)
    accept(rt, profile)
    client.send("GET", "/posts")
    reply = client.send("GET", "/metrics", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain")
    found = samples(reply.body)
    assert found["socialpub_posts", ("status", "pending")] == 1
    assert found["socialpub_build_info", ("version", version.VERSION)] == 1
    assert found["socialpub_deliveries_waiting", ("provider", "x")] == 1
    assert found["socialpub_http_answers_total", ("method", "GET"), ("route", "/api/v1/posts"), ("status", "200")] == 1
    assert found["socialpub_profiles", ("provider", "x"), ("status", "active")] == 1
    assert found["socialpub_worker_heartbeat_age_seconds",] == 0
    assert found["socialpub_paused",] == 0
    assert [found["socialpub_held", ("provider", name)] for name in ("x", "tiktok", "pinterest")] == [0, 0, 0]
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "The app has no credits left.", "402"))
    told = client.send("GET", "/metrics", key=None).body.decode()
    assert 'socialpub_held{provider="x"} 1.0' in told
    assert 'socialpub_held{provider="tiktok"} 0.0' in told


def test_metrics_count_deliveries_by_outcome_and_delay(client, rt, profile, clock, three_networks):
    accept(rt, profile)
    accept(rt, profile, body="Later", at=rt.now() + timedelta(hours=1))
    three_networks["x"].results["create_post"] = [Published("1", None), Refused("no")]
    clock.forward(2)
    drain(rt)
    clock.forward(3600)
    drain(rt)
    lines = client.send("GET", "/metrics", key=None).body.decode().splitlines()
    for line in (
        'socialpub_deliveries_total{outcome="published",provider="x"} 1.0',
        'socialpub_deliveries_total{outcome="failed",provider="x"} 1.0',
        'socialpub_deliveries_total{outcome="unknown",provider="x"} 0.0',
        'socialpub_deliveries_total{outcome="canceled",provider="pinterest"} 0.0',
        'socialpub_sending_delay_seconds_bucket{le="1.0",provider="x"} 0.0',
        'socialpub_sending_delay_seconds_bucket{le="2.5",provider="x"} 1.0',
        'socialpub_sending_delay_seconds_bucket{le="+Inf",provider="x"} 1.0',
        'socialpub_sending_delay_seconds_count{provider="x"} 1.0',
        'socialpub_sending_delay_seconds_sum{provider="x"} 2.0',
        'socialpub_sending_delay_seconds_count{provider="tiktok"} 0.0',
    ):
        assert line in lines, line


def test_frequent_requests_share_cached_metrics(client, clock, monkeypatch):
    """Requests need no key, and reading a large database takes time."""
    reads = 0

    def read_for_a_while(*_: object) -> tuple[bytes, str]:
        nonlocal reads
        reads += 1
        clock.forward(0.125)
        return b"socialpub_reads %d" % reads, "text/plain"

    monkeypatch.setattr(metrics, "render_metrics", read_for_a_while)

    def ask() -> bytes:
        return client.send("GET", "/metrics", key=None).body

    assert {ask() for _ in range(10)} == {b"socialpub_reads 1"}
    clock.forward(20 * 0.125)
    assert {ask() for _ in range(10)} == {b"socialpub_reads 2"}


@pytest.fixture
def guarded(tmp_path: Path, clock: HandClock) -> Iterator[Client]:
    rt = open_appliance(
        tmp_path, clock, providers={"x": ScriptedNetwork()}, metrics=MetricsSection(token=SecretStr("m3trics"))
    )
    with Client(create_app(rt), "none") as client:
        yield client
    rt.close()


def test_metrics_require_a_configured_token(guarded):
    for wrong in ({"key": None}, {"key": "x"}, {"key": None, "authorization": "Basic m3trics"}):
        reply = guarded.send("GET", "/metrics", **wrong)  # type: ignore[arg-type]
        assert (reply.status, reply.json()["code"]) == (401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert guarded.send("GET", "/metrics", key="m3trics").status == 200


def test_requests_are_counted_by_documented_path(client):
    """A label with arbitrary values would fill the memory of the Prometheus server."""
    for path in ("/posts/018f0000-0000-7000-8000-000000000000", "/posts/018f0000-0000-7000-8000-000000000001"):
        client.send("GET", path)
    client.run(client.asking("GET", "/storage/media/any/thing.jpg", b"", {}))
    client.run(client.asking("GET", "/nowhere/at/all", b"", {}))
    client.run(client.asking("BREW", "/healthz", b"", {}))
    found = {
        sample[1:]: count for sample, count in scrape(client).items() if sample[0] == "socialpub_http_answers_total"
    }
    assert found == {
        (("method", "GET"), ("route", "/api/v1/posts/{postId}"), ("status", "404")): 2,
        (("method", "GET"), ("route", "/storage/media/{key}"), ("status", "403")): 1,
        (("method", "GET"), ("route", "none"), ("status", "404")): 1,
        (("method", "other"), ("route", "/healthz"), ("status", "405")): 1,
    }


def test_attempts_are_counted_by_network_step_kind_and_outcome(client, rt, profile, clock, three_networks):
    three_networks["x"].results["create_post"] = [NoAnswer("Too late."), Published("1", None)]
    accept(rt, profile)
    drain(rt, clock)
    found = scrape(client, clock)
    counted = {
        (dict(sample[1:])["step_kind"], dict(sample[1:])["outcome"]): count  # type: ignore[arg-type]
        for sample, count in found.items()
        if sample[0] == "socialpub_attempts_total" and ("provider", "x") in sample and count
    }
    rows = {
        (row[0], row[1]): row[2]
        for row in select_all(rt.db, "SELECT step, outcome, count(*) FROM attempt GROUP BY 1, 2")
    }
    assert counted["commit", "unknown"] == rows["create_post", "unknown"] == 1
    assert sum(count for (kind, _), count in counted.items() if kind == "read_back") >= 1
    assert found["socialpub_attempts_total", ("outcome", "held"), ("provider", "tiktok"), ("step_kind", "poll")] == 0


def test_token_refreshes_are_counted_by_outcome(client, rt, clock, three_networks):
    auth = three_networks["x"].auth
    profile = add_profile(rt)
    tokens.renew(rt, profile)

    down = NoAnswer("The network is down.")
    auth.answers = [
        down,
        down,
        Rejected("The grant was withdrawn.", reauth=True),
    ]  # a call without a response is repeated
    for error in (NotRenewed, Rejected):
        with pytest.raises(error):
            tokens.renew(rt, profile)
    found = scrape(client, clock)
    for outcome in ("renewed", "failed", "refused"):
        assert found["socialpub_token_refreshes_total", ("outcome", outcome), ("provider", "x")] == 1
        assert found["socialpub_token_refreshes_total", ("outcome", outcome), ("provider", "tiktok")] == 0
    assert found["socialpub_profiles", ("provider", "x"), ("status", "reauthRequired")] == 1


def test_the_wait_of_the_oldest_due_delivery_is_reported(client, rt, profile, clock):
    accept(rt, profile, body="Tomorrow", at=rt.now() + timedelta(days=1))
    found = scrape(client, clock)
    assert found["socialpub_deliveries_waiting", ("provider", "x")] == 1
    assert found["socialpub_deliveries_due", ("provider", "x")] == found["socialpub_oldest_due_seconds",] == 0
    accept(rt, profile)
    found = scrape(client, clock)
    assert found["socialpub_deliveries_due", ("provider", "x")] == 1
    assert found["socialpub_oldest_due_seconds",] == 60
    assert found["socialpub_deliveries_overdue",] == found["socialpub_unready", ("code", "overdue")] == 0
    found = scrape(client, clock)
    clock.forward(1)
    found = scrape(client, clock)
    assert found["socialpub_oldest_due_seconds",] == 181
    assert found["socialpub_deliveries_overdue",] == found["socialpub_unready", ("code", "overdue")] == 1
    rt.write(resume.pause)
    assert scrape(client, clock)["socialpub_oldest_due_seconds",] == 0


def test_storage_backups_and_processes_are_reported(client, rt, clock):
    found = scrape(client)
    assert ("socialpub_last_backup_timestamp_seconds",) not in found
    assert ("socialpub_process_threads", ("process", "worker")) not in found, "it has never run"
    rt.write(last_backup.record_backup, BackupSummary(rt.stamp(), False, 0, 0, 0))
    made_at = rt.now().timestamp()
    beat(rt)
    found = scrape(client, clock)
    assert found["socialpub_last_backup_timestamp_seconds",] == made_at
    assert found["socialpub_last_backup_failure_timestamp_seconds",] == 0
    for name in ("resident_memory_bytes", "threads", "open_fds", "max_fds", "cpu_seconds_total"):
        for process in ("web", "worker"):
            assert found[f"socialpub_process_{name}", ("process", process)] > 0
    for name in ("disk_free", "disk_floor", "database", "database_wal"):
        assert found[f"socialpub_{name}_bytes",] > 0
    rt.write(last_backup.record_failure, "The disk is full.")
    found = scrape(client, clock)
    assert found["socialpub_last_backup_failure_timestamp_seconds",] == made_at + 60
    assert found["socialpub_last_backup_timestamp_seconds",] == made_at


def test_every_reason_against_readiness_has_a_metric(client, rt, clock):
    found = scrape(client)
    assert found["socialpub_unready", ("code", "workerNeverRan")] == 1
    assert found["socialpub_unready", ("code", "diskFull")] == 0
    beat(rt)
    moved = rt.files.root.rename(rt.files.root.with_name("elsewhere"))
    found = scrape(client, clock)
    assert found["socialpub_unready", ("code", "mediaUnwritable")] == 1
    assert ("socialpub_disk_free_bytes",) not in found
    moved.rename(rt.files.root)
