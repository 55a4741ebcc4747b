"""Scripted faults: before the effect or after it, and chaos that a seed repeats."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, Hang, World
from socialpub.sandbox.faults import FaultScript
from tests.sandbox.x_caller import Caller
from tests.support.hand_clock import HandClock


def script(upcoming: FaultScript, fault: str, how: dict[str, Any]) -> None:
    getattr(upcoming, fault)(**how)


@pytest.mark.parametrize(
    ("fault", "how", "status", "posts"),
    [
        ("fails_with", {"status": 503}, 503, 0),
        ("fails_with", {"status": 503, "after_effect": True}, 503, 1),
        ("fails_after_effect", {"status": 500}, 500, 1),
        ("answers_garbage", {}, 200, 1),
        ("answers_garbage", {"after_effect": False}, 200, 0),
        ("rate_limited", {"seconds": 60}, 429, 0),
        ("credits_depleted", {"shape": 2}, 402, 0),
        ("unauthorized", {}, 401, 0),
    ],
)
def test_an_answer_can_be_spoiled_with_or_without_its_effect(
    world: World, demo: Caller, fault: str, how: dict[str, Any], status: int, posts: int
) -> None:
    script(world.x.next("create_post"), fault, how)
    assert demo.post("first").status_code == status
    assert len(world.x.posts) == posts
    assert demo.post("second").status_code == 201, "only the next call"
    assert world.x.statuses("create_post") == [status, 201]


@pytest.mark.parametrize(
    ("fault", "error", "posts"),
    [
        ("times_out_before_effect", Hang, 0),
        ("times_out_after_effect", Hang, 1),
        ("trickles", Hang, 1),
        ("drops_connection_before_effect", ConnectionCut, 0),
        ("drops_connection_after_effect", ConnectionCut, 1),
    ],
)
def test_an_answer_can_be_lost_without_anybody_waiting(
    world: World, demo: Caller, fault: str, error: type[Exception], posts: int
) -> None:
    script(world.x.next("create_post"), fault, {})
    with pytest.raises(error):
        demo.post("first")
    assert len(world.x.posts) == posts
    assert world.x.statuses("create_post") == [0]
    assert world.x.in_flight == 0


def test_a_garbled_success_is_no_json(world: World, demo: Caller) -> None:
    world.x.next("create_post").answers_garbage()
    with pytest.raises(ValueError, match=r".*"):
        demo.post("a").json()


def test_faults_wait_their_turn(world: World, demo: Caller) -> None:
    world.x.next("create_post").skipping(1).fails_with(500).times(2)
    world.x.next("create_post").fails_with(502)
    assert [demo.post(f"n{number}").status_code for number in range(5)] == [201, 500, 500, 502, 201]


def test_bodies_of_every_shape_can_be_scripted(world: World, demo: Caller) -> None:
    upcoming = world.x.next
    upcoming("create_post").fails_with(502, html=True)
    upcoming("create_post").fails_with(500, body={"errors": ["internal server error"]})
    upcoming("create_post").fails_with(431, body=b"")
    upcoming("create_post").fails_with(403, body={"detail": "no"}, headers={"retry-after": "7"})
    assert demo.post("a").headers["content-type"].startswith("text/html")
    assert demo.post("a").json() == {"errors": ["internal server error"]}
    assert demo.post("a").content == b""
    assert demo.post("a").headers["retry-after"] == "7"


def test_a_scripted_429_says_when_to_return_in_the_place_asked_for(
    world: World, demo: Caller, clock: HandClock
) -> None:
    then = str(int(clock.now().timestamp()) + 90)
    for place in ("window", "day", "retry-after", "nothing"):
        world.x.next("create_post").rate_limited(90, told_in=place)
    window, day, plain, nothing = (demo.post("a").headers for _ in range(4))
    assert (window["x-rate-limit-remaining"], window["x-rate-limit-reset"]) == ("0", then)
    assert (day["x-user-limit-24hour-remaining"], day["x-user-limit-24hour-reset"]) == ("0", then)
    assert plain["retry-after"] == "90"
    assert "x-rate-limit-reset" not in nothing


class Gate:
    """An event that tells when somebody has begun to wait for it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        self.opened.wait(10)


def test_a_call_can_be_held_until_the_test_lets_go(world: World, demo: Caller) -> None:
    gate = Gate()
    world.x.next("create_post").blocks_until(gate, after_effect=True)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(demo.post, "held")
        assert gate.reached.wait(10)
        assert (world.x.in_flight, len(world.x.posts)) == (1, 1)
        assert demo.call("GET", "/2/users/me").status_code == 200, "others are answered meanwhile"
        gate.opened.set()
        assert held.result(10).status_code == 201
    assert world.x.most_in_flight_of == {demo.account.id: 2}


def test_an_unknown_endpoint_is_named_with_the_known_ones(world: World) -> None:
    with pytest.raises(ValueError, match=r"create_tweet.*create_post"):
        world.x.next("create_tweet")


def test_every_endpoint_can_fail(world: World, demo: Caller, web: TestClient) -> None:
    paths = {
        "me": ("GET", "/2/users/me"),
        "upload_one_shot": ("POST", "/2/media/upload"),
        "upload_initialize": ("POST", "/2/media/upload/initialize"),
        "upload_append": ("POST", "/2/media/upload/1/append"),
        "upload_finalize": ("POST", "/2/media/upload/1/finalize"),
        "upload_status": ("GET", "/2/media/upload"),
        "metadata": ("POST", "/2/media/metadata"),
        "create_post": ("POST", "/2/tweets"),
        "read_post": ("GET", "/2/tweets/1"),
        "list_posts": ("GET", "/2/users/1/tweets"),
        "delete_post": ("DELETE", "/2/tweets/1"),
        "token": ("POST", "/2/oauth2/token"),
        "revoke": ("POST", "/2/oauth2/revoke"),
        "authorize": ("GET", "/i/oauth2/authorize"),
    }
    assert set(paths) == set(world.x.endpoints)
    for endpoint, (method, path) in paths.items():
        world.x.next(endpoint).fails_with(503)
        assert demo.call(method, path).status_code == 503, endpoint


def test_chaos_repeats_itself_for_a_seed(clock: HandClock) -> None:
    def run(seed: int) -> list[str]:
        from socialpub.sandbox import create_app

        world = World(clock)
        world.instant_faults = True
        world.x.chaos(seed, 0.5)
        outcomes = []
        with TestClient(create_app(world)) as web:
            caller = Caller(web, world, "demo")
            for number in range(40):
                try:
                    outcomes.append(str(caller.post(f"n{number}").status_code))
                except (Hang, ConnectionCut) as error:
                    outcomes.append(type(error).__name__)
        return [*outcomes, str(len(world.x.posts))]

    first = run(7)
    assert first == run(7)
    assert first != run(8)
    assert len(set(first)) > 4


def test_calm_ends_chaos_and_scripts(world: World, demo: Caller) -> None:
    world.x.chaos(1, 1.0, kinds=["unavailable"], endpoints=["create_post"])
    world.x.next("create_post").fails_with(500)
    world.x.calm()
    assert demo.post("a").status_code == 201


def test_a_path_that_no_endpoint_has_is_not_counted(world: World, web: TestClient) -> None:
    web.get("/x/2/nothing")
    assert not world.x.counts
