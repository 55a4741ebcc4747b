"""A full disk, a locked database and an endless response are reported by name and end with their cause."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import httpx2
import pytest

from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.e2e.small_disk import SmallDisk
from tests.samples import media


def test_a_locked_database_is_reported_and_writes_are_whole(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation()
    installation.sandbox()
    installation.start("serve")
    caller = installation.caller()
    create = {"post": {"body": "While it is locked"}, "profiles": [installation.profiles[0]]}
    with closing(sqlite3.connect(installation.data / "socialpub.db", isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        answer = caller.ask("POST", "/api/v1/posts", json=create, headers={"idempotency-key": "locked"})
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unavailable"
        assert int(answer.headers["retry-after"]) > 0
        # Reads still work.
        assert caller.posts() == []
        shell.execute("ROLLBACK")
    answer = caller.ask("POST", "/api/v1/posts", json=create, headers={"idempotency-key": "locked"})
    assert answer.status_code == 201, answer.text
    assert caller.delivery(answer.json()["data"]["id"])["status"] == "published"
    assert len(caller.posts()) == 1
    assert installation.x.texts() == ["While it is locked"]


@pytest.mark.endurance
def test_a_trickling_response_delays_neither_the_heartbeat_nor_other_posts(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation(deadline_seconds=15)
    installation.sandbox()
    installation.start("web")
    installation.start("worker")
    caller = installation.caller()
    installation.x.script("create_post", "trickles")
    slow = caller.publish("Drop by drop", installation.profiles[0])
    until(lambda: installation.x.in_flight() == 1, "the answer trickles")
    first = heartbeat(installation)
    until(lambda: heartbeat(installation) > first, "the heart beats")
    assert installation.x.in_flight() == 1
    quick = caller.publish("Meanwhile", installation.profiles[1])
    assert caller.delivery(quick)["status"] == "published"
    until(lambda: caller.ask("GET", "/readyz").status_code == 200, "the light is green")
    # The call is cut off by our own deadline, and the account read back.
    delivery = caller.delivery(slow)
    assert delivery["status"] == "published", delivery
    assert sorted(installation.x.texts()) == ["Drop by drop", "Meanwhile"]


def test_a_full_disk_is_reported_and_reservations_stay_valid(
    make_installation: MakeInstallation, make_small_disk: Callable[[Installation], SmallDisk]
) -> None:
    installation = make_installation(settings='[health]\ndisk_floor_bytes = "1MB"')
    disk = make_small_disk(installation)
    installation.start("web")
    caller = installation.caller()
    content = media.png(installation.folder / "noise.png", 1200, 900, noise=True).read_bytes()
    reserved = caller.ask(
        "POST", "/api/v1/uploads", json={"fileName": "noise.png", "mimeType": "image/png", "fileSize": len(content)}
    ).json()["data"]

    def put() -> httpx2.Response:
        return httpx2.put(
            reserved["uploadUrl"], content=content, headers=reserved["requiredHeaders"], timeout=90, trust_env=False
        )

    disk.fill(but=len(content) // 2)
    assert_unavailable(put())
    disk.fill(but=0)
    create = {"post": {"body": "Is there room?"}, "profiles": [installation.profiles[0]]}
    accepted = 0
    while (answer := caller.ask("POST", "/api/v1/posts", json=create)).status_code == 201:
        accepted += 1  # the journal of the database had room set aside
        assert accepted < 2000
    assert_unavailable(answer)
    disk.empty()
    assert put().status_code == 200
    done = caller.ask("POST", "/api/v1/uploads/complete", json={"artifactId": reserved["artifactId"]})
    assert done.status_code == 200, done.text
    caller.publish("There is room", installation.profiles[0])
    assert len(caller.posts()) == accepted + 1


def assert_unavailable(answer: httpx2.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "unavailable"
    assert "disk" in answer.json()["detail"].lower()
    assert int(answer.headers["retry-after"]) > 0


def heartbeat(installation: Installation) -> str:
    with closing(sqlite3.connect(f"file:{installation.data / 'socialpub.db'}?mode=ro", uri=True)) as database:
        row = database.execute("SELECT value FROM appliance WHERE name = 'heartbeat'").fetchone()
    return str(row[0]) if row else ""
