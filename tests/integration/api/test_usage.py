"""Usage of keys and networks: counted in memory, written every minute, read by day."""

from collections.abc import Callable
from typing import Any

import pytest

from socialpub.accounts import api_keys, usage
from socialpub.core.errors import Unavailable
from socialpub.db.tables import counters
from socialpub.db.tables.counters import DayUsage
from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.sandbox_http import connect_x
from tests.support.select import select_all

DAY = 86400


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


def today(rt: Runtime) -> DayUsage:
    return counters.usage_by_day(rt.db, rt.now())[0]


def test_requests_are_counted_by_key_and_written_periodically(client, rt):
    other = rt.write(api_keys.create, "other")
    for key in (client.key, client.key, other):
        assert client.send("GET", "/posts", key=key).status == 200
    assert client.send("GET", "/posts", key="spk_abc_wrong").status == 401
    assert today(rt).requests == {}
    client.run(client.app.flush())
    assert today(rt).requests == {client.key.split("_")[1]: 2, other.split("_")[1]: 1}
    client.send("GET", "/profiles")
    client.run(client.app.flush())
    assert today(rt).requests[client.key.split("_")[1]] == 3


def test_counts_that_could_not_be_written_are_written_later(client, rt, world, monkeypatch):
    accept(rt, connect_x(rt, world))
    drain(rt)
    client.send("GET", "/posts")
    made = len(select_all(rt.db, "SELECT 1 FROM attempt"))

    def full(_write: Callable[..., Any], *_: Any) -> Any:
        raise Unavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(rt.db, "write", full)
        patched.setattr(rt.db, "write_soon", full)
        client.run(client.app.flush())
        with pytest.raises(Unavailable):
            usage.write_calls(rt)
    assert (today(rt).requests, today(rt).calls) == ({}, {})
    client.run(client.app.flush())
    assert today(rt).requests == {client.key.split("_")[1]: 1}
    assert today(rt).calls["x"] >= made > 0


def test_calls_and_outcomes_are_counted_by_network_and_day(rt, world, transport, clock):
    profile = connect_x(rt, world)
    accept(rt, profile)
    drain(rt, clock)
    usage.write_calls(rt)
    first, calls = today(rt), len(transport.called)
    assert first.calls == {"x": calls}
    assert calls > 0
    assert first.ended == {("x", "published"): 1}
    clock.forward(DAY)
    world.x.next("create_post").fails_with(400)
    accept(rt, profile, body="Another")
    drain(rt, clock)
    usage.write_calls(rt)
    usage.write_calls(rt)
    days = counters.usage_by_day(rt.db, rt.now(), 3)
    assert [day.day for day in days] == ["2026-10-13", "2026-10-12", "2026-10-11"]
    assert days[0].calls == {"x": len(transport.called) - calls}
    assert days[0].ended == {("x", "failed"): 1}
    assert days[1] == first
    assert days[2] == DayUsage("2026-10-11")


def test_usage_older_than_a_year_is_removed(rt, clock):
    rt.db.write(lambda tx: counters.add_usage(tx, counters.CALLS, {"x": 1}))
    clock.forward(400 * DAY)
    assert rt.write(usage.clean) == 0
    clock.forward(DAY)
    assert rt.write(usage.clean) == 1
