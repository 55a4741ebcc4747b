"""The disk, the lock, the network that never ends its answer: told as what they are, and over when they are over."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeStage
from tests.e2e.processes import until
from tests.e2e.stage import Stage


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


def heartbeat(stage: Stage) -> str:
    with closing(sqlite3.connect(f"file:{stage.data / 'socialpub.db'}?mode=ro", uri=True)) as database:
        row = database.execute("SELECT value FROM appliance WHERE name = 'heartbeat'").fetchone()
    return str(row[0]) if row else ""
