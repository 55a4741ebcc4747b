"""`?wait=`: long polling that needs no thread per caller (contract section 4)."""

import asyncio
from datetime import timedelta

import pytest

from socialpub.accounts import api_keys
from socialpub.db.connection import Database
from socialpub.db.tables import post_rows
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime, build
from socialpub.web.http.app import App
from tests.support.appliance import OWNER, accept


@pytest.fixture
def scheduled(rt: Runtime, profile: str) -> str:
    return accept(rt, profile, at=rt.now() + timedelta(hours=1))


def test_a_wait_for_a_final_post_returns_at_once(client, rt, app, scheduled):
    rt.write(posts.cancel, scheduled, OWNER)
    assert client.send("GET", f"/posts/{scheduled}?wait=60").data["status"] == "canceled"
    assert app.state.long_poll._poller is None


def test_a_wait_returns_when_the_post_becomes_final(client, rt, app, scheduled, profile):
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
        await app.state.long_poll._poller  # the poller ends with the last wait

    accept_later = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    client.run(story())


def test_after_the_wait_the_current_state_is_returned(client, app, scheduled, monkeypatch):
    short = app.state.long_poll.until_final

    async def shortened(post_id: str, seconds: float, key_id: str) -> None:
        assert seconds == 30
        await short(post_id, 0.01, key_id)

    monkeypatch.setattr(app.state.long_poll, "until_final", shortened)
    assert client.send("GET", f"/posts/{scheduled}?wait=30").data["status"] == "scheduled"
    assert app.state.long_poll._waiters == {}


def test_when_the_appliance_stops_every_wait_returns(client, app, scheduled):
    async def story() -> None:
        waiting_one = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60"))
        while app.state.long_poll._poller is None:
            await asyncio.sleep(0)
        app.state.long_poll.stop()
        assert (await waiting_one).data["status"] == "scheduled"
        assert (await client.sending("GET", f"/posts/{scheduled}?wait=60")).data["status"] == "scheduled"

    client.run(story())


def test_many_waits_share_one_query(client, rt, scheduled, monkeypatch):
    asked: list[int] = []
    final_among = post_rows.final_among

    def counting(reader: object, post_ids: list[str]) -> list[str]:
        if len(post_ids) == 1:
            asked.append(len(asked))
        return final_among(reader, post_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(post_rows, "final_among", counting)

    async def story() -> None:
        callers = [asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60")) for _ in range(50)]
        while len(asked) < 51:  # one query per request, and one query of the poller
            await asyncio.sleep(0)
        await rt.write_soon(posts.cancel, scheduled, OWNER)
        await asyncio.gather(*callers)
        assert len(asked) <= 53

    client.run(story())


def waits(app: App) -> bool:
    return app.state.long_poll._poller is not None


def test_a_wait_ends_when_another_process_revokes_its_key(client, rt, app, scheduled):
    other = rt.write(api_keys.create, "other")
    elsewhere = build(rt.settings, clock=rt.clock, role="cli")

    async def story() -> None:
        ending = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60"))
        staying = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60", key=other))
        while len(app.state.long_poll._by_key) < 2:
            await asyncio.sleep(0)
        await asyncio.to_thread(elsewhere.write, api_keys.revoke, client.key.split("_")[1])
        reply = await ending
        assert (reply.status, reply.json()["code"]) == (401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert not staying.done()
        await rt.write_soon(posts.cancel, scheduled, OWNER)
        assert (await staying).data["status"] == "canceled"
        assert app.state.long_poll._by_key == {}

    try:
        client.run(story())
    finally:
        elsewhere.close()


def test_a_wait_ends_when_its_key_expires(client, rt, app, clock, scheduled):
    short = rt.write(api_keys.create, "short", expires_at=rt.now() + timedelta(seconds=30))

    async def story() -> None:
        ending = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60", key=short))
        while not waits(app):
            await asyncio.sleep(0)
        clock.forward(31)
        assert (await ending).status == 401

    client.run(story())


def test_a_wait_does_not_show_a_post_to_a_revoked_key(client, rt, app, scheduled):
    def cancel_and_revoke(rt: Runtime, tx: Database) -> None:
        posts.cancel(rt, tx, scheduled, OWNER)
        api_keys.revoke(rt, tx, client.key.split("_")[1])

    async def story() -> None:
        waiting = asyncio.create_task(client.sending("GET", f"/posts/{scheduled}?wait=60"))
        while not waits(app):
            await asyncio.sleep(0)
        await rt.write_soon(cancel_and_revoke)
        assert (await waiting).status == 401

    client.run(story())
