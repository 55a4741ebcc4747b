"""The disk, the lock, the network that never ends its answer: told as what they are, and over when they are over."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeStage
from tests.e2e.processes import until
from tests.e2e.stage import Stage
from tests.samples import media


def test_a_database_locked_by_somebody_else_is_told_and_nothing_is_half_written(make_stage: MakeStage) -> None:
    stage = make_stage(settings='[database]\nbusy_timeout = "1s"')
    stage.sandbox()
    stage.start("serve")
    caller = stage.caller()
    create = {"post": {"body": "While it is locked"}, "profiles": [stage.profiles[0]]}
    with closing(sqlite3.connect(stage.data / "socialpub.db", isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        answer = caller.ask("POST", "/api/v1/posts", json=create, headers={"idempotency-key": "locked"})
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unavailable"
        assert int(answer.headers["retry-after"]) > 0
        # Reading goes on all the same.
        assert caller.posts() == []
        shell.execute("ROLLBACK")
    answer = caller.ask("POST", "/api/v1/posts", json=create, headers={"idempotency-key": "locked"})
    assert answer.status_code == 201, answer.text
    assert caller.delivery(answer.json()["data"]["id"])["status"] == "published"
    assert len(caller.posts()) == 1
    assert stage.x.texts() == ["While it is locked"]


def test_a_network_that_trickles_its_answer_stops_neither_the_heart_nor_the_others(
    stage: Stage, caller: Caller
) -> None:
    stage.start("web")
    stage.start("worker")
    stage.x.script("create_post", "trickles")
    slow = caller.publish("Drop by drop", stage.profiles[0])
    until(lambda: stage.x.in_flight() == 1, "the answer trickles")
    first = heartbeat(stage)
    until(lambda: heartbeat(stage) > first, "the heart beats")
    assert stage.x.in_flight() == 1
    quick = caller.publish("Meanwhile", stage.profiles[1])
    assert caller.delivery(quick)["status"] == "published"
    assert caller.ask("GET", "/readyz").status_code == 200
    # The call is cut off by our own deadline, and the account read back.
    delivery = caller.delivery(slow)
    assert delivery["status"] == "published", delivery
    assert sorted(stage.x.texts()) == ["Drop by drop", "Meanwhile"]


def test_a_full_disk_is_told_and_what_was_reserved_is_still_good_when_there_is_room(make_stage: MakeStage) -> None:
    stage = make_stage()
    disk = SmallDisk(stage)
    caller = stage.caller()
    content = media.png(stage.folder / "noise.png", 1200, 900, noise=True).read_bytes()
    reserved = caller.ask(
        "POST", "/api/v1/uploads", json={"fileName": "noise.png", "mimeType": "image/png", "fileSize": len(content)}
    ).json()["data"]

    def put() -> httpx2.Response:
        return httpx2.put(
            reserved["uploadUrl"], content=content, headers=reserved["requiredHeaders"], timeout=30, trust_env=False
        )

    disk.fill(but=len(content) // 2)
    assert_unavailable(put())
    disk.fill(but=0)
    create = {"post": {"body": "Is there room?"}, "profiles": [stage.profiles[0]]}
    accepted = 0
    while (answer := caller.ask("POST", "/api/v1/posts", json=create)).status_code == 201:
        accepted += 1  # the journal of the database had room set aside
        assert accepted < 2000
    assert_unavailable(answer)
    disk.empty()
    assert put().status_code == 200
    done = caller.ask("POST", "/api/v1/uploads/complete", json={"artifactId": reserved["artifactId"]})
    assert done.status_code == 200, done.text
    caller.publish("There is room", stage.profiles[0])
    assert len(caller.posts()) == accepted + 1


def assert_unavailable(answer: httpx2.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "unavailable"
    assert "disk" in answer.json()["detail"].lower()
    assert int(answer.headers["retry-after"]) > 0


class SmallDisk:
    """A web process whose data lie on a disk of a few megabytes, mounted where only it can see it."""

    SIZE = 8 * 1024 * 1024
    MOUNT = 'mount -t tmpfs -o size="$0" tmpfs "$1" && cp -a "$2"/. "$1" && shift 2 && exec "$@"'

    def __init__(self, stage: Stage) -> None:
        try:
            subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("a small disk cannot be mounted here (unshare -rm mount)")
        furniture = stage.data.rename(stage.folder / "furniture")
        stage.data.mkdir()
        web = stage.begin(
            "web", ["unshare", "-rm", "sh", "-c", self.MOUNT, str(self.SIZE), str(stage.data), str(furniture)]
        )
        stage.wait_until_up(web, "web")
        self._filler = Path(f"/proc/{web.pid}/root{stage.data}/filler")

    def fill(self, *, but: int) -> None:
        """Leave so many bytes."""
        self.empty()
        with self._filler.open("wb", buffering=0) as file:
            free = os.statvfs(file.fileno())
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - but))

    def empty(self) -> None:
        self._filler.unlink(missing_ok=True)


def heartbeat(stage: Stage) -> str:
    with closing(sqlite3.connect(f"file:{stage.data / 'socialpub.db'}?mode=ro", uri=True)) as database:
        row = database.execute("SELECT value FROM appliance WHERE name = 'heartbeat'").fetchone()
    return str(row[0]) if row else ""
