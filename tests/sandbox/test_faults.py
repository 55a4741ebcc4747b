"""Scripted faults: before the effect or after it, and chaos that a seed repeats."""

import re
from typing import Any

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, Hang, create_app
from socialpub.sandbox.endpoint import SandboxEndpoint
from socialpub.sandbox.faults import FaultScript
from tests.sandbox.clients import XClient
from tests.stand_ins import World


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
