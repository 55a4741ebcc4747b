"""`?wait=`: a script needs no polling loop, and whoever waits costs nothing (contract section 4)."""

import asyncio
from datetime import timedelta

import pytest

from socialpub.db import post_rows
from socialpub.publishing import posts
from socialpub.runtime import Runtime
from socialpub.web.app import App
from tests.integration.api.client import Client
from tests.support.appliance import OWNER, accept


@pytest.fixture
def scheduled(rt: Runtime, profile: str) -> str:
    return accept(rt, profile, at=rt.now() + timedelta(hours=1))


@pytest.mark.parametrize("wait", ["0", "61", "", "null", "x", "-1", "1.5"])
def test_one_to_sixty_seconds(client: Client, scheduled: str, wait: str) -> None:
    assert client.send("GET", f"/posts/{scheduled}?wait={wait}").paths() == [["wait"]]


def test_an_unknown_post_is_not_waited_for(client: Client) -> None:
    assert client.send("GET", "/posts/019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01?wait=60").status == 404
    assert client.send("GET", "/posts/019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01?wait=x").status == 404


def test_a_final_post_is_answered_at_once(client: Client, rt: Runtime, app: App, scheduled: str) -> None:
    rt.write(posts.cancel, scheduled, OWNER)
    assert client.send("GET", f"/posts/{scheduled}?wait=60").data["status"] == "canceled"
    assert app.state.long_poll._poller is None


def test_who_waits_is_answered_when_the_post_becomes_final(
    client: Client, rt: Runtime, app: App, scheduled: str, profile: str
) -> None:
    async def story() -> None:
        waiting_for_both = [
            asyncio.create_task(client.sending("GET", f"/posts/{post}?wait=60"))
            for post in (scheduled, scheduled, accept_later)
        ]
        while app.state.long_poll._poller is None:
            await asyncio.sleep(0)
        await rt.write_soon(posts.cancel, scheduled, OWNER)
        first, second = await asyncio.gather(*waiting_for_both[:2])
        assert first.data["status"] == second.data["status"] == "canceled"
        assert not waiting_for_both[2].done()
        await rt.write_soon(posts.cancel, accept_later, OWNER)
        assert (await waiting_for_both[2]).data["status"] == "canceled"
        assert app.state.long_poll._waiters == {}
        await app.state.long_poll._poller  # it ends with the last one who waits

    accept_later = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    client.run(story())


def test_after_that_time_what_is_true_is_told(
    client: Client, app: App, scheduled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = app.state.long_poll.until_final

    async def shortened(post_id: str, seconds: float) -> None:
        assert seconds == 30
        await short(post_id, 0.01)

    monkeypatch.setattr(app.state.long_poll, "until_final", shortened)
    assert client.send("GET", f"/posts/{scheduled}?wait=30").data["status"] == "scheduled"
    assert app.state.long_poll._waiters == {}


def test_when_the_appliance_stops_everybody_is_answered_at_once(client: Client, app: App, scheduled: str) -> None:
    async def story() -> None:
        waiting_one = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60"))
        while app.state.long_poll._poller is None:
            await asyncio.sleep(0)
        app.state.long_poll.stop()
        assert (await waiting_one).data["status"] == "scheduled"
        assert (await client.sending("GET", f"/posts/{scheduled}?wait=60")).data["status"] == "scheduled"

    client.run(story())


def test_many_who_wait_are_one_question(
    client: Client, rt: Runtime, scheduled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    final_among = post_rows.final_among

    def counting(reader: object, post_ids: list[str]) -> list[str]:
        if len(post_ids) == 1:
            asked.append(len(asked))
        return final_among(reader, post_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(post_rows, "final_among", counting)

    async def story() -> None:
        callers = [asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60")) for _ in range(50)]
        while len(asked) < 51:  # each asks once when it comes, and the poller once for all
            await asyncio.sleep(0)
        await rt.write_soon(posts.cancel, scheduled, OWNER)
        await asyncio.gather(*callers)
        assert len(asked) <= 53

    client.run(story())
