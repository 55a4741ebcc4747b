"""The control API, for tests in other processes: `/_control`, JSON in and out.

GET    /_control                    counts of all networks
GET    /_control/{network}          posts, calls, in flight, held by a fault
POST   /_control/{network}/grant    {"username", "scopes"?, "expires_in"?} -> tokens as `import-profile` takes them
POST   /_control/{network}/accounts {"username", ...} as `add_account`
POST   /_control/{network}/users    {"username", ...} changes one: `handle`, `name`, `picture`; `subscription_type` (X),
                                    `private`, … (TikTok), `account_type` (Pinterest)
POST   /_control/{network}/apps     {"client_id" (TikTok: "client_key"), "client_secret", "redirect_uris"?, ...}
POST   /_control/{network}/tokens   {"username", "end": "expired" | "removed"}: they run out, or access is taken back
POST   /_control/{network}/faults   {"endpoint", "fault", "args"?, "times"?, "skipping"?}
POST   /_control/{network}/chaos    {"seed", "rate", "kinds"?, "endpoints"?}
DELETE /_control/{network}/faults   no faults and no chaos any more
POST   /_control/{network}/settings {"list_lag_seconds": 5, "limits": {"POST /2/tweets": 10}}
POST   /_control/{network}/fates    {"fate", "times"?}: what becomes of the next shares (TikTok) or videos (Pinterest)
POST   /_control/tiktok/properties  {"prefix", "file_name"?, "content"?}: verify a URL prefix by its file
POST   /_control/tiktok/drafts      {"publish_id", "posts"?}: the user finishes a draft
POST   /_control/pinterest/boards   {"account", "name", ...} as `add_board`
POST   /_control/reset              forget everything
"""

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socialpub.sandbox.control_actions import ACTIONS, BLOCKING
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pinterest.control_view import pinterest_view
from socialpub.sandbox.tiktok.control_view import tiktok_view
from socialpub.sandbox.world import World
from socialpub.sandbox.x.control_view import x_view


def routes() -> list[Route]:
    return [
        Route("/", overview),
        Route("/reset", reset, methods=["POST"]),
        Route("/{network}", show),
        Route("/{network}/faults", calm, methods=["DELETE"]),
        Route("/{network}/{action}", act, methods=["POST"]),
    ]


async def overview(request: Request) -> Response:
    world = _world(request)
    await world.tiktok.intake.pull_all()
    return JSONResponse({name: _counts(network) for name, network in world.networks.items()})


async def show(request: Request) -> Response:
    world = _world(request)
    match request.path_params["network"]:
        case "x":
            return JSONResponse(_counts(world.x) | x_view(world.x))
        case "tiktok":
            await world.tiktok.intake.pull_all()
            return JSONResponse(_counts(world.tiktok) | tiktok_view(world.tiktok))
        case "pinterest":
            return JSONResponse(_counts(world.pinterest) | pinterest_view(world.pinterest))
        case _:
            return _not_found("no such network")


async def calm(request: Request) -> Response:
    network = _world(request).networks.get(request.path_params["network"])
    if network is None:
        return _not_found("no such network")
    network.calm()
    return JSONResponse({})


async def reset(request: Request) -> Response:
    _world(request).reset()
    return JSONResponse({})


async def act(request: Request) -> Response:
    network = _world(request).networks.get(request.path_params["network"])
    action = ACTIONS.get(request.path_params["action"])
    if network is None or action is None:
        return _not_found("no such network or action")
    try:
        body = json.loads(await request.body() or b"{}")
        if action in BLOCKING:
            return JSONResponse(await run_in_threadpool(action, network, body))
        return JSONResponse(action(network, body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)


def _counts(network: SandboxNetwork) -> dict[str, Any]:
    return {
        "calls": dict(network.counts),
        "in_flight": network.in_flight,
        "held": network.held,
        "most_in_flight": network.most_in_flight,
        "most_in_flight_of": dict(network.most_in_flight_of),
        **network.totals(),
    }


def _world(request: Request) -> World:
    world: World = request.app.state.world
    return world


def _not_found(message: str) -> Response:
    return JSONResponse({"error": message}, 404)
