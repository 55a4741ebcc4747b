"""`/healthz` and `/readyz` (contract 1.13)."""

import errno
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core import commands
from socialpub.core.clock import stamp
from socialpub.core.errors import Unavailable
from socialpub.db.tables import waits
from socialpub.media.decoder import client as decoder_client
from socialpub.ops import health
from socialpub.ops.health import Finding
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from socialpub.worker.reconciler import Reconciler
from tests.support.appliance import accept, open_appliance
from tests.support.queue_threads import background_tasks


def beat(rt: Runtime) -> None:
    rt.db.write(
        lambda tx: (
            tx.execute_sql("INSERT OR REPLACE INTO appliance VALUES ('heartbeat', ?)", (stamp(rt.now()),)).rowcount
        )
    )


def test_healthz_returns_ok_and_the_instance(client, rt):
    assert client.send("GET", "/healthz", key=None).json() == {"status": "ok", "instance": rt.instance_id}


def test_an_installation_keeps_its_unique_id(tmp_path, clock):
    ids = []
    for folder in ("one", "one", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        rt = open_appliance(tmp_path / folder, clock)
        ids.append(rt.instance_id)
        rt.close()
    assert ids[0] == ids[1] != ids[2]


def test_an_appliance_with_a_recent_heartbeat_is_ready(client, rt, clock):
    beat(rt)
    clock.forward(30)
    assert (client.send("GET", "/readyz", key=None).status) == 200
    clock.forward(1)
    reply = client.send("GET", "/readyz", key=None)
    assert reply.status == 503
    assert "worker" in reply.json()["reasons"][0]
    assert reply.headers["retry-after"]


def test_a_delivery_overdue_by_two_minutes_makes_the_appliance_unready(client, rt, profile, clock):
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


def test_while_paused_overdue_posts_do_not_count(client, rt, profile, clock):
    accept(rt, profile)
    rt.write(resume.pause)
    clock.forward(3600)
    beat(rt)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "paused")


def test_a_network_that_refuses_the_app_is_reported_and_the_appliance_stays_ready(client, rt, profile, clock):
    beat(rt)
    assert "held" not in client.send("GET", "/readyz", key=None).json()
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "The app has no credits left.", "402"))
    accept(rt, profile)
    clock.forward(3600)
    beat(rt)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "ready")
    assert reply.json()["held"] == [
        {
            "provider": "x",
            "since": "2026-10-12T09:00:00.000Z",
            "code": "publishingHeld",
            "reason": "X refuses this app. Deliveries to this network wait. The dashboard and `socialpub doctor` show "
            "the reason.",
        }
    ]


def test_readyz_names_the_command_of_this_host_but_no_paths(client, rt, monkeypatch):
    monkeypatch.setattr(commands.sys, "executable", "/home/ada/socialpub/.venv/bin/python")
    commands.repeat_config(Path("/home/ada/config.toml"))
    assert commands.line("serve") == "/home/ada/socialpub/.venv/bin/socialpub --config /home/ada/config.toml serve"
    shown = client.send("GET", "/readyz", key=None)
    assert shown.status == 503
    assert "Start `socialpub serve`." in str(shown.json()["reasons"])
    assert "ada" not in str(shown.json())
    monkeypatch.setattr(commands, "manager", lambda: "systemctl")
    rt.clock.forward(2)  # type: ignore[attr-defined]  # an answer counts for a second
    shown = client.send("GET", "/readyz", key=None)
    assert "Run `sudo systemctl start socialpub-worker`." in str(shown.json()["reasons"])


def test_a_network_that_refuses_queries_is_reported_with_its_scope(client, rt):
    beat(rt)
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.QUESTIONS, "The plan is used up.", "429"))
    (held,) = client.send("GET", "/readyz", key=None).json()["held"]
    assert (held["provider"], held["only"], held["code"]) == ("x", "questions", "queriesHeld")


def test_a_disk_below_its_floor_is_reported(client, rt, monkeypatch):
    beat(rt)
    monkeypatch.setattr(type(rt.files), "free_bytes", lambda _self: 499_999_999)
    assert "disk_floor" in client.send("GET", "/readyz", key=None).json()["reasons"][0]


def test_a_read_only_database_is_reported(client, rt, monkeypatch):
    beat(rt)

    def breaks(*_: object) -> None:
        raise Unavailable("The disk is full.")

    monkeypatch.setattr("socialpub.ops.health.appliance_state.put", breaks)
    told = client.send("GET", "/readyz", key=None).json()
    assert told["reasons"][0].startswith("Nothing can be stored: The disk is full. ")
    assert told["codes"] == ["databaseUnavailable"]


def test_a_missing_or_read_only_media_folder_is_reported_without_its_path(client, rt, clock, monkeypatch):
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
    assert reason.startswith("Files cannot be created in the media folder (EROFS).")
    assert "private" not in reason


@pytest.mark.decoder_child
def test_a_failing_decoder_is_reported_until_one_starts(client, rt, clock, monkeypatch):
    beat(rt)
    with monkeypatch.context() as broken:
        broken.setattr(decoder_client, "_COMMAND", (sys.executable, "-c", "import sys; sys.exit('no memory here')"))
        decoder_client.try_starting()
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["decoderFailing"]
    assert "exited with code 1 before it was ready" in told["reasons"][0]
    with monkeypatch.context() as broken:
        broken.setattr(decoder_client, "_COMMAND", ("/no/such/program",))
        decoder_client.retry_starting()
    clock.forward(1)
    (reason,) = client.send("GET", "/readyz", key=None).json()["reasons"]
    assert "cannot be started (ENOENT)" in reason
    assert "/no/such" not in reason
    decoder_client.retry_starting()
    clock.forward(1)
    assert client.send("GET", "/readyz", key=None).status == 200


def test_failing_tasks_are_information(client, rt):
    rt.task_failures["token renewal"] = 5
    rt.running_tasks["cleanup"] = rt.clock.monotonic() - 3600
    rt.write(health.record_heartbeat)
    reply = client.send("GET", "/readyz", key=None)
    assert (reply.status, reply.json()["status"]) == (200, "ready")
    assert "or hang: cleanup, token renewal." in reply.json()["tasks"]


def test_problems_reported_by_the_worker_count(client, rt, clock):
    decoder_client.last_start.failure = "its process was ended."
    rt.write(health.record_heartbeat)
    decoder_client.last_start.failure = None
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["decoderFailing"]
    rt.write(health.record_heartbeat)
    clock.forward(1)
    assert client.send("GET", "/readyz", key=None).status == 200


def test_a_database_that_cannot_be_read_is_reported(client, rt, monkeypatch):
    beat(rt)

    def breaks(*_: object) -> None:
        sqlite3.connect(":memory:").execute("SELECT 'hush' FROM no_such_table")

    monkeypatch.setattr("socialpub.ops.health.worker_problems", breaks)
    told = client.send("GET", "/readyz", key=None).json()
    assert told["codes"] == ["databaseUnavailable"]
    assert "The database cannot be read (SQLITE_ERROR)." in told["reasons"][0]
    assert "no_such_table" not in str(told)


def test_a_check_that_hangs_gets_a_response_and_is_not_repeated(client, rt, clock, monkeypatch):
    """Frequent requests must not fill the process with waiting threads."""
    beat(rt)
    monkeypatch.setattr(health, "READINESS_SECONDS", 0.05)
    answers, looks = threading.Event(), []

    def hangs(*_: object) -> Iterator[Finding]:
        looks.append(1)
        answers.wait(30)
        return iter(())

    monkeypatch.setattr(health, "_storage_problems", hangs)
    for _ in range(3):
        told = client.send("GET", "/readyz", key=None)
        assert (told.status, told.json()["codes"]) == (503, ["databaseUnavailable"])
        assert "has not answered for 5 seconds" in told.json()["reasons"][0]
        clock.forward(2)
    assert client.send("GET", "/healthz", key=None).status == 200, "the rest goes on"
    answers.set()
    monkeypatch.setattr(health, "READINESS_SECONDS", 30.0)
    assert client.send("GET", "/readyz", key=None).status == 200
    assert len(looks) == 1


def test_proxies_may_not_store_health_responses(client):
    for path in ("/healthz", "/readyz"):
        assert client.send("GET", path, key=None).headers["cache-control"] == "no-store"


def test_frequent_readiness_requests_share_one_write(client, rt, clock):
    beat(rt)
    client.send("GET", "/readyz", key=None)
    version = rt.db.data_version
    for _ in range(5):
        client.send("GET", "/readyz", key=None)
    assert rt.db.data_version == version
    clock.forward(1)
    client.send("GET", "/readyz", key=None)
    assert rt.db.data_version != version


def test_a_worker_whose_reconciler_fails_is_late(client, rt, clock, monkeypatch):
    """The worker is alive, but it would wake no delivery."""
    with background_tasks(rt) as tasks:
        reconciler = Reconciler(rt, tasks)
        reconciler.once()
        assert client.send("GET", "/readyz", key=None).status == 200

        def breaks(*_: object) -> None:
            raise sqlite3.OperationalError("no such column")

        monkeypatch.setattr("socialpub.publishing.delivery.engine.list_due_queues", breaks)
        for _ in range(4):
            clock.forward(10)
            with pytest.raises(sqlite3.OperationalError):
                reconciler.once()
        assert client.send("GET", "/readyz", key=None).json()["codes"] == ["workerLate"]
