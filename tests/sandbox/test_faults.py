"""Scripted faults: before the effect or after it, and chaos that a seed repeats."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, Hang, create_app
from socialpub.sandbox.endpoint import SandboxEndpoint
from socialpub.sandbox.faults import FaultScript
from tests.sandbox.clients import BlueskyClient, PinterestClient, TikTokClient, XClient
from tests.stand_ins import World
from tests.support.hand_clock import HandClock


def script(upcoming: FaultScript, fault: str, how: dict[str, Any]) -> None:
    getattr(upcoming, fault)(**how)


@pytest.mark.parametrize(
    ("fault", "how", "status", "posts"),
    [
        ("fails_with", {"status": 503}, 503, 0),
        ("fails_with", {"status": 503, "after_effect": True}, 503, 1),
        ("answers_garbage", {}, 200, 1),
        ("answers_garbage", {"after_effect": False}, 200, 0),
        ("rate_limited", {"seconds": 60}, 429, 0),
        ("credits_depleted", {"shape": 2}, 402, 0),
        ("unauthorized", {}, 401, 0),
    ],
)
def test_an_answer_can_be_spoiled_with_or_without_its_effect(
    world: World, x: XClient, fault: str, how: dict[str, Any], status: int, posts: int
) -> None:
    script(world.x.next("create_post"), fault, how)
    assert x.post("first").status_code == status
    assert len(world.x.posts) == posts
    assert x.post("second").status_code == 201, "only the next call"
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
    world: World, x: XClient, fault: str, error: type[Exception], posts: int
) -> None:
    script(world.x.next("create_post"), fault, {})
    with pytest.raises(error):
        x.post("first")
    assert len(world.x.posts) == posts
    assert world.x.statuses("create_post") == [0]
    assert world.x.in_flight == 0


def test_faults_wait_their_turn(world: World, x: XClient) -> None:
    world.x.next("create_post").skipping(1).fails_with(500).times(2)
    world.x.next("create_post").fails_with(502)
    assert [x.post(f"n{number}").status_code for number in range(5)] == [201, 500, 500, 502, 201]


def test_bodies_of_every_shape_can_be_scripted(world: World, x: XClient) -> None:
    upcoming = world.x.next
    upcoming("create_post").fails_with(502, html=True)
    upcoming("create_post").fails_with(500, body={"errors": ["internal server error"]})
    upcoming("create_post").fails_with(431, body=b"")
    upcoming("create_post").fails_with(403, body={"detail": "no"}, headers={"retry-after": "7"})
    assert x.post("a").headers["content-type"].startswith("text/html")
    assert x.post("a").json() == {"errors": ["internal server error"]}
    assert x.post("a").content == b""
    assert x.post("a").headers["retry-after"] == "7"


def test_a_scripted_429_says_when_to_return_in_the_place_asked_for(world: World, x: XClient, clock: HandClock) -> None:
    then = str(int(clock.now().timestamp()) + 90)
    for place in ("window", "day", "retry-after", "nothing", "date", "milliseconds"):
        world.x.next("create_post").rate_limited(90, told_in=place)
    window, day, plain, nothing, dated, absurd = (x.post("a").headers for _ in range(6))
    assert (window["x-rate-limit-remaining"], window["x-rate-limit-reset"]) == ("0", then)
    assert (day["x-user-limit-24hour-remaining"], day["x-user-limit-24hour-reset"]) == ("0", then)
    assert plain["retry-after"] == "90"
    assert "x-rate-limit-reset" not in nothing
    assert int(parsedate_to_datetime(dated["retry-after"]).timestamp()) == int(then)
    assert int(absurd["x-rate-limit-reset"]) == int(then) * 1000


class HeldEvent:
    """An event that reports when a thread begins to wait for it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        self.opened.wait(60)


def test_a_call_is_held_until_the_test_releases_it(world: World, x: XClient) -> None:
    gate = HeldEvent()
    world.x.next("create_post").blocks_until(gate, after_effect=True)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(x.post, "held")
        assert gate.reached.wait(60)
        assert (world.x.in_flight, len(world.x.posts)) == (1, 1)
        assert x.call("GET", "/2/users/me").status_code == 200, "others are answered meanwhile"
        gate.opened.set()
        assert held.result(60).status_code == 201
    assert world.x.most_in_flight_of == {x.account.id: 2}


def test_an_unknown_endpoint_is_named_with_the_known_ones(world: World) -> None:
    with pytest.raises(ValueError, match=r"create_tweet.*create_post"):
        world.x.next("create_tweet")


def calls(world: World, name: str) -> dict[str, tuple[str, str]]:
    """Method and path by endpoint of a network."""
    (mount,) = (route for route in create_app(world).routes if isinstance(route, Mount) and route.path == f"/{name}")
    return {
        route.endpoint.call.name: (max(route.methods - {"HEAD"}), name + re.sub(r"{\w+}", "1", route.path))
        for route in mount.routes
        if isinstance(route, Route) and route.methods and isinstance(route.endpoint, SandboxEndpoint)
    }


@pytest.mark.parametrize("name", ["x", "tiktok", "pinterest", "bluesky"])
def test_every_endpoint_takes_every_kind_of_fault(world: World, web: TestClient, name: str) -> None:
    network, paths = world.networks[name], calls(world, name)
    assert set(paths) == set(network.endpoints)
    for endpoint, (method, path) in paths.items():
        network.next(endpoint).fails_with(503)
        assert web.request(method, f"/{path}").status_code == 503, endpoint
        network.next(endpoint).rate_limited(60, "retry-after")
        assert web.request(method, f"/{path}").headers["retry-after"] == "60"
        network.next(endpoint).times_out_after_effect()
        with pytest.raises(Hang):
            web.request(method, f"/{path}")
        assert network.statuses(endpoint) == [503, 429, 0]


@pytest.mark.parametrize("name", ["x", "tiktok", "pinterest", "bluesky"])
def test_chaos_repeats_itself_for_a_seed(clock: HandClock, name: str) -> None:
    def run(seed: int) -> list[str]:
        world = World(clock)
        world.instant_faults = True
        world.tiktok.limits["video_init"] = world.tiktok.posts_per_day = 10**6
        outcomes = []
        with TestClient(create_app(world)) as web:
            x, tiktok, pinterest = XClient(web, world), TikTokClient(web, world), PinterestClient(web, world)
            bluesky = BlueskyClient(web, world)
            network = world.networks[name]
            network.chaos(seed, 0.5)
            for number in range(40):
                try:
                    match name:
                        case "x":
                            answer = x.post(f"n{number}")
                        case "tiktok":
                            answer = tiktok.begin()
                        case "bluesky":
                            answer = bluesky.post()
                        case _:
                            answer = pinterest.pin()
                    outcomes.append(str(answer.status_code))
                except (Hang, ConnectionCut) as error:
                    outcomes.append(type(error).__name__)
        return [*outcomes, str(network.totals())]

    first = run(7)
    assert first == run(7)
    assert first != run(8)
    assert len(set(first)) > 4


def test_calm_ends_chaos_and_scripts(world: World, x: XClient) -> None:
    world.x.chaos(1, 1.0)
    world.x.next("create_post").fails_with(500)
    world.x.calm()
    assert x.post("a").status_code == 201
