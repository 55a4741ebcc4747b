"""Green means working (contract 1.13)."""

import errno
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from socialpub.core.clock import stamp
from socialpub.core.errors import Unavailable
from socialpub.core.settings.sections import MetricsSection
from socialpub.media import decoder_client, decoder_starts
from socialpub.ops import health, worker_report
from socialpub.ops.finding import Finding
from socialpub.providers.outcomes import Published, Refused
from socialpub.publishing import deliveries, holds
from socialpub.runtime import Runtime
from socialpub.web.api import metric_families
from socialpub.web.app import create_app
from tests.integration.api.client import Client
from tests.support.appliance import accept, open_appliance
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


def beat(rt: Runtime) -> None:
    rt.db.write(
        lambda tx: tx.execute("INSERT OR REPLACE INTO appliance VALUES ('heartbeat', ?)", (stamp(rt.now()),)).rowcount
    )


def test_alive_means_only_that_it_answers(client: Client, rt: Runtime) -> None:
    assert client.send("GET", "/healthz", key=None).json() == {"status": "ok", "instance": rt.instance_id}


def test_an_installation_keeps_its_id_and_no_other_has_it(tmp_path: Path, clock: HandClock) -> None:
    ids = []
    for folder in ("one", "one", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        rt = open_appliance(tmp_path / folder, clock)
        ids.append(rt.instance_id)
        rt.close()
    assert ids[0] == ids[1] != ids[2]


def test_an_appliance_whose_worker_shows_itself_is_ready(client: Client, rt: Runtime, clock: HandClock) -> None:
    beat(rt)
    clock.forward(30)
    assert (client.send("GET", "/readyz", key=None).status) == 200
    clock.forward(1)
    reply = client.send("GET", "/readyz", key=None)
    assert reply.status == 503
    assert "worker" in reply.json()["reasons"][0]
    assert reply.headers["retry-after"]


def test_a_worker_that_never_ran_is_missed(client: Client) -> None:
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (503, "unready")
    assert "never run" in reply.json()["reasons"][0]


def test_what_is_left_lying_for_two_minutes_is_no_green(
    client: Client, rt: Runtime, profile: str, clock: HandClock
) -> None:
    accept(rt, profile)
    clock.forward(120)
    beat(rt)
    assert client.send("GET", "/readyz", key=None).status == 200
    clock.forward(1)
    told = client.send("GET", "/readyz", key=None).json()
    assert told["reasons"][0].startswith("1 delivery is overdue by more than two minutes: to X, by 2 minutes.")
    assert told["codes"] == ["overdue"]
    accept(rt, profile, body="Another")
    clock.forward(600)
    beat(rt)
    (reason,) = client.send("GET", "/readyz", key=None).json()["reasons"]
    assert reason.startswith("2 deliveries are overdue by more than two minutes: the oldest, to X, by 12 minutes.")
    assert profile not in reason


def test_while_paused_overdue_posts_do_not_count_and_it_says_so(
    client: Client, rt: Runtime, profile: str, clock: HandClock
) -> None:
    accept(rt, profile)
    rt.write(deliveries.pause)
    clock.forward(3600)
    beat(rt)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "paused")


def test_a_network_that_refuses_the_app_is_told_and_the_light_stays_green(
    client: Client, rt: Runtime, profile: str, clock: HandClock
) -> None:
    beat(rt)
    assert "held" not in client.send("GET", "/readyz", key=None).json()
    rt.db.write(lambda tx: holds.begin(tx, "x", holds.PUBLISHING, "The app has no credits left.", "402"))
    accept(rt, profile)
    clock.forward(3600)
    beat(rt)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "ready")
    assert reply.json()["held"] == [
        {"provider": "x", "since": "2026-10-12T09:00:00.000Z", "reason": "The app has no credits left."}
    ]


def test_a_network_that_refuses_questions_says_that_only_they_are_held(client: Client, rt: Runtime) -> None:
    beat(rt)
    rt.db.write(lambda tx: holds.begin(tx, "x", holds.QUESTIONS, "The plan is used up.", "429"))
    (held,) = client.send("GET", "/readyz", key=None).json()["held"]
    assert (held["provider"], held["only"]) == ("x", "questions")


@pytest.mark.parametrize(("jump", "told"), [(7 * 86_400, "forward by 168.0 hours"), (-90, "back by 90 seconds")])
def test_a_clock_that_was_set_is_told_and_the_light_stays_green(
    client: Client, rt: Runtime, clock: HandClock, jump: float, told: str
) -> None:
    beat(rt)
    assert "clock" not in client.send("GET", "/readyz", key=None).json()
    clock.jump(jump)
    clock.forward(2)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "ready")
    assert f"The clock was set {told}" in reply.json()["clock"]


def test_a_disk_below_its_floor_is_told(client: Client, rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(rt)
    monkeypatch.setattr(type(rt.files), "free_bytes", lambda _self: 499_999_999)
    assert "disk_floor" in client.send("GET", "/readyz", key=None).json()["reasons"][0]


def test_a_database_that_takes_no_write_is_told(client: Client, rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(rt)

    def breaks(*_: object) -> None:
        raise Unavailable("The disk is full.")

    monkeypatch.setattr("socialpub.ops.health._touch", breaks)
    told = client.send("GET", "/readyz", key=None).json()
    assert told["reasons"][0].startswith("Nothing can be stored: The disk is full. ")
    assert told["codes"] == ["databaseUnavailable"]


def test_a_media_folder_that_is_gone_or_takes_no_file_is_told_without_its_path(
    client: Client, rt: Runtime, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat(rt)
    moved = rt.files.root.rename(rt.files.root.with_name("elsewhere"))
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["mediaUnwritable"]
    assert str(rt.settings.data_dir) not in str(told)
    moved.rename(rt.files.root)
    clock.forward(1)
    assert client.send("GET", "/readyz", key=None).status == 200

    def is_read_only(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/somewhere/private")

    monkeypatch.setattr("socialpub.media.files.os.open", is_read_only)
    clock.forward(1)
    (reason,) = client.send("GET", "/readyz", key=None).json()["reasons"]
    assert reason.startswith("No file can be made in the media folder: Read-only file system.")
    assert "private" not in reason


def test_a_decoder_that_cannot_begin_is_told_until_one_can(
    client: Client, rt: Runtime, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads would be refused one after the other while all else works."""
    beat(rt)
    with monkeypatch.context() as broken:
        broken.setattr(decoder_client, "_COMMAND", (sys.executable, "-c", "import sys; sys.exit('no memory here')"))
        decoder_client.try_starting()
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["decoderFailing"]
    assert "ended with 1 before it could begin" in told["reasons"][0]
    with monkeypatch.context() as broken:
        broken.setattr(decoder_client, "_COMMAND", ("/no/such/program",))
        decoder_client.try_again()
    clock.forward(1)
    (reason,) = client.send("GET", "/readyz", key=None).json()["reasons"]
    assert "cannot be started (No such file or directory)" in reason
    assert "/no/such" not in reason
    decoder_client.try_again()
    clock.forward(1)
    assert client.send("GET", "/readyz", key=None).status == 200


def test_what_a_living_worker_says_of_itself_counts(client: Client, rt: Runtime, clock: HandClock) -> None:
    worker_report.note_round(rt)
    clock.forward(3600)
    rt.write(worker_report.beat)
    assert client.send("GET", "/readyz", key=None).status == 200
    clock.forward(3600)
    decoder_starts.note_failure("its process was ended.")
    rt.write(worker_report.beat)
    decoder_starts.note_success()
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["housekeepingLate", "decoderFailing"]
    assert "has not come round for 2.0 hours" in told["reasons"][0]
    worker_report.note_round(rt)
    rt.write(worker_report.beat)
    clock.forward(1)
    assert client.send("GET", "/readyz", key=None).status == 200


def test_a_database_that_cannot_be_read_is_told(client: Client, rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(rt)

    def breaks(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr("socialpub.ops.health.worker_problems", breaks)
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["databaseUnavailable"]
    assert "cannot be read: database disk image is malformed." in told["reasons"][0]


def test_a_look_that_hangs_is_answered_and_not_repeated(
    client: Client, rt: Runtime, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who asks every few seconds must not fill the process with threads that wait for a disk."""
    beat(rt)
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.05)
    answers, looks = threading.Event(), []

    def hangs(*_: object) -> Iterator[Finding]:
        looks.append(1)
        answers.wait(30)
        return iter(())

    monkeypatch.setattr(health, "storage_problems", hangs)
    for _ in range(3):
        told = client.send("GET", "/readyz", key=None)
        assert (told.status, told.json()["codes"]) == (503, ["databaseUnavailable"])
        assert "has not answered for 5 seconds" in told.json()["reasons"][0]
        clock.forward(2)
    assert client.send("GET", "/healthz", key=None).status == 200, "the rest goes on"
    answers.set()
    monkeypatch.setattr(health, "LOOK_SECONDS", 30.0)
    assert client.send("GET", "/readyz", key=None).status == 200
    assert len(looks) == 1


def test_no_proxy_keeps_an_answer(client: Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert client.send("GET", path, key=None).headers["cache-control"] == "no-store"


def test_asking_often_does_not_write_often(client: Client, rt: Runtime, clock: HandClock) -> None:
    beat(rt)
    client.send("GET", "/readyz", key=None)
    version = rt.reader.data_version()
    for _ in range(5):
        client.send("GET", "/readyz", key=None)
    assert rt.reader.data_version() == version
    clock.forward(1)
    client.send("GET", "/readyz", key=None)
    assert rt.reader.data_version() != version


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_are_text_that_prometheus_reads(client: Client, rt: Runtime, profile: str) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    beat(rt)
    accept(rt, profile)
    client.send("GET", "/posts")
    reply = client.send("GET", "/metrics", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }
    assert found["socialpub_posts", ("status", "pending")] == 1
    assert found["socialpub_deliveries_waiting", ("provider", "x")] == 1
    assert found["socialpub_http_answers_total", ("method", "GET"), ("status", "200")] == 1
    assert found["socialpub_profiles", ("provider", "x"), ("status", "active")] == 1
    assert found["socialpub_worker_heartbeat_age_seconds",] == 0
    assert found["socialpub_paused",] == 0
    assert [found["socialpub_held", ("provider", name)] for name in ("x", "tiktok", "pinterest")] == [0, 0, 0]
    rt.db.write(lambda tx: holds.begin(tx, "x", holds.PUBLISHING, "The app has no credits left.", "402"))
    told = client.send("GET", "/metrics", key=None).body.decode()
    assert 'socialpub_held{provider="x"} 1.0' in told
    assert 'socialpub_held{provider="tiktok"} 0.0' in told


def test_metrics_count_deliveries_by_their_outcome_and_how_long_after_their_time_they_were_sent(
    client: Client, rt: Runtime, profile: str, clock: HandClock, three_networks: dict[str, ScriptedNetwork]
) -> None:
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
    # Another process finds the same numbers: they are read from rows.
    again = open_appliance(rt.settings.data_dir.parent, clock, providers=three_networks)
    with Client(create_app(again), "none") as other:
        assert 'socialpub_sending_delay_seconds_sum{provider="x"} 2.0' in other.send("GET", "/metrics").body.decode()
    again.close()


def test_asking_for_the_metrics_all_the_time_takes_a_small_part_of_the_time(
    client: Client, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no key, and the numbers of a large database take their time."""
    reads = 0

    def read_for_a_while(*_: object) -> tuple[bytes, bytes]:
        nonlocal reads
        reads += 1
        clock.forward(0.125)
        return b"socialpub_reads %d" % reads, b"text/plain"

    monkeypatch.setattr(metric_families, "render", read_for_a_while)

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


def test_metrics_may_ask_for_a_token(guarded: Client) -> None:
    for wrong in ({"key": None}, {"key": "x"}, {"key": None, "authorization": "Basic m3trics"}):
        reply = guarded.send("GET", "/metrics", **wrong)  # type: ignore[arg-type]
        assert (reply.status, reply.json()["code"]) == (401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert guarded.send("GET", "/metrics", key="m3trics").status == 200
