"""Over a real socket: connections really break, calls really hang, a stop lets go of them."""

import threading
import time

import httpx2
import pytest

from socialpub.sandbox import World

PATIENT = httpx2.Timeout(60)
"""Nothing takes that long unless it is broken."""


@pytest.fixture
def world() -> World:
    return World()


def post(world: World, server: str, text: str, timeout: httpx2.Timeout = PATIENT) -> httpx2.Response:
    token = world.x.grant("demo")["accessToken"]
    with httpx2.Client(timeout=timeout, trust_env=False) as client:
        header = {"authorization": f"Bearer {token}"}
        return client.post(f"{server}/x/2/tweets", json={"text": text}, headers=header)


def test_a_cut_connection_is_really_cut(world: World, server: str) -> None:
    assert post(world, server, "fine").status_code == 201
    world.x.next("create_post").drops_connection_after_effect()
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        post(world, server, "cut")
    assert [made.text for made in world.x.posts] == ["fine", "cut"]


def test_a_hanging_call_ends_by_the_callers_own_deadline(world: World, server: str) -> None:
    world.x.next("create_post").times_out_before_effect()
    with pytest.raises(httpx2.ReadTimeout):
        post(world, server, "lost", httpx2.Timeout(60, read=0.3))
    assert world.x.posts == []
    assert post(world, server, "fine").status_code == 201


def test_a_trickling_answer_begins_and_is_never_whole(world: World, server: str) -> None:
    world.x.next("create_post").trickles()
    token = world.x.grant("demo")["accessToken"]
    with (
        httpx2.Client(timeout=PATIENT, trust_env=False) as client,
        client.stream(
            "POST", f"{server}/x/2/tweets", json={"text": "a"}, headers={"authorization": f"Bearer {token}"}
        ) as answer,
    ):
        assert answer.status_code == 200
        assert next(answer.iter_raw()) == b" "
    assert len(world.x.posts) == 1


def test_a_stop_lets_go_of_a_call_that_hangs(world: World, server: str) -> None:
    world.x.next("create_post").times_out_after_effect()
    token = world.x.grant("demo")["accessToken"]
    failed: list[Exception] = []

    def call() -> None:
        try:
            with httpx2.Client(timeout=PATIENT, trust_env=False) as client:
                header = {"authorization": f"Bearer {token}"}
                client.post(f"{server}/x/2/tweets", json={"text": "a"}, headers=header)
        except httpx2.TransportError as error:
            failed.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    deadline = time.monotonic() + 60
    while not world.x.posts and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    assert world.x.posts
    world.close()
    caller.join(60)
    assert len(failed) == 1
