"""Bluesky's records have the date of the wall clock."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.clock import parse
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.sandbox.bluesky.models import key_seconds
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import connect_bluesky, providers_of_the_sandbox

HOUR = 3600.0
DAY = 24 * HOUR
JUMPS = [44 * DAY, -44 * DAY, -5 * HOUR, 365 * DAY]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return {**sandbox_options, "networks": providers_of_the_sandbox(bluesky=True)}


@pytest.fixture
def appliance_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    folder.mkdir()
    return folder


def set_clock(rt: Runtime, clock: HandClock, seconds: float) -> None:
    clock.jump(seconds)
    rt.db.follow_clock()


def texts(world: World) -> list[str]:
    return [post.text for post in world.bluesky.posts]


# --- dates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
def test_a_record_has_the_date_of_the_wall_clock_although_the_clock_was_once_set(
    rt: Runtime, world: World, clock: HandClock, jump: float
) -> None:
    set_clock(rt, clock, jump)
    clock.forward(40 * DAY)
    accept(rt, connect_bluesky(rt, world), options={"bluesky": {"replyControl": "nobody"}})
    drain(rt)
    records = [record for record in world.bluesky.records.values() if "createdAt" in record.value]
    assert len(records) == 2, "the post and its gate"
    for record in records:
        assert abs(parse(record.value["createdAt"]) - clock.now()) < timedelta(minutes=1)
        assert abs(key_seconds(record.rkey) - clock.now().timestamp()) < 60
