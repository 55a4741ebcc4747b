"""The control API, for tests in other processes: `/_control`, JSON in and out.

GET    /_control                    counts of all networks
GET    /_control/{network}          posts, calls, in flight, held by a fault
POST   /_control/{network}/grant    {"username", "scopes"?, "expires_in"?} -> tokens as `import-profile` accepts them
POST   /_control/{network}/accounts {"username", ...} as `add_account`
POST   /_control/{network}/users    {"username", ...} changes one: `handle`, `name`, `picture`; `subscription_type` (X),
                                    `private`, … (TikTok), `account_type` (Pinterest)
POST   /_control/{network}/apps     {"client_id" (TikTok: "client_key"), "client_secret", "redirect_uris"?, ...}
POST   /_control/{network}/tokens   {"username", "end": "expired" | "removed"}: end its access tokens, or its access
POST   /_control/{network}/faults   {"endpoint", "fault", "args"?, "times"?, "skipping"?}
POST   /_control/{network}/chaos    {"seed", "rate"}
DELETE /_control/{network}/faults   end all faults and chaos
POST   /_control/{network}/settings {"list_lag_seconds": 5, "limits": {"POST /2/tweets": 10}}
POST   /_control/{network}/fates    {"fate", "times"?}: what happens to the next shares (TikTok) or videos (Pinterest)
POST   /_control/tiktok/properties  {"prefix", "file_name", "content"}: verify a URL prefix by its file
POST   /_control/tiktok/drafts      {"publish_id", "posts"?}: the user finishes a draft
POST   /_control/pinterest/boards   {"account", "name", ...} as `add_board`
POST   /_control/reset              forget everything
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socialpub.sandbox.faults import FAULTS
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.world import World

ControlBody = dict[str, Any]
ControlAction = Callable[[Any, ControlBody], Any]
"""What a network can be asked to do. It raises for a mistake, and the API responds 400."""


def routes() -> list[Route]:
    return [
        Route("/", overview),
        Route("/reset", reset, methods=["POST"]),
        Route("/{network}", show),
        Route("/{network}/faults", calm, methods=["DELETE"]),
        Route("/{network}/{action}", act, methods=["POST"]),
    ]


async def overview(request: Request) -> Response:
    networks = _world(request).networks
    for network in networks.values():
        await network.before_view()
    return JSONResponse({name: _counts(network) for name, network in networks.items()})


async def show(request: Request) -> Response:
    network = _network(request)
    if network is None:
        return _not_found()
    await network.before_view()
    return JSONResponse(_counts(network) | network.view())


async def calm(request: Request) -> Response:
    network = _network(request)
    if network is None:
        return _not_found()
    network.calm()
    return JSONResponse({})


async def reset(request: Request) -> Response:
    _world(request).reset()
    return JSONResponse({})


async def act(request: Request) -> Response:
    network, action = _network(request), ACTIONS.get(request.path_params["action"])
    if network is None or action is None:
        return _not_found()
    try:
        body = json.loads(await request.body() or b"{}")
        if action in BLOCKING:
            return JSONResponse(await run_in_threadpool(action, network, body))
        return JSONResponse(action(network, body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)


def _counts(network: SandboxNetwork[Any]) -> dict[str, Any]:
    return {
        "calls": dict(network.counts),
        "in_flight": network.in_flight,
        "held": network.held,
        "most_in_flight_of": dict(network.most_in_flight_of),
        **network.totals(),
    }


def _world(request: Request) -> World:
    world: World = request.app.state.world
    return world


def _network(request: Request) -> SandboxNetwork[Any] | None:
    return _world(request).networks.get(request.path_params["network"])


def _not_found() -> Response:
    return JSONResponse({"error": "no such network or action"}, 404)


# --- actions ---------------------------------------------------------------------------------------------------------


def end_tokens(network: SandboxNetwork[Any], body: ControlBody) -> Any:
    match body["end"]:
        case "removed":
            network.remove_access(body["username"])
        case "expired":
            network.tokens.expire(network.existing_account(body["username"]).id)
        case other:
            raise ValueError(f"tokens end as expired or removed, not {other!r}")
    return {}


def add_fault(network: SandboxNetwork[Any], body: ControlBody) -> Any:
    if body["fault"] not in FAULTS:
        raise ValueError(f"no such fault: {body['fault']} (known: {', '.join(FAULTS)})")
    script = network.next(body["endpoint"]).skipping(int(body.get("skipping", 0)))
    getattr(script, body["fault"])(**body.get("args", {})).times(float(body.get("times", 1)))
    return {}


def change_settings(network: SandboxNetwork[Any], body: ControlBody) -> Any:
    for name, value in body.items():
        present = getattr(network, name, None)
        if name.startswith("_") or not isinstance(present, str | int | float | dict | list):
            raise ValueError(f"no such setting: {name}")
        if isinstance(present, dict):
            present.update(value)
        else:
            setattr(network, name, type(present)(value))
    return {}


def verify_property(network: Any, body: ControlBody) -> Any:
    return {"verified": network.verify(**body)}


def _done(action: Callable[[Any, ControlBody], object]) -> ControlAction:
    """Make an action without a result one that returns an empty object."""

    def act(network: Any, body: ControlBody) -> Any:
        action(network, body)
        return {}

    return act


ACTIONS: dict[str, ControlAction] = {
    "grant": lambda network, body: network.grant(body.pop("username"), **body),
    "accounts": lambda network, body: asdict(network.add_account(**body)),
    "apps": _done(lambda network, body: network.add_app(body.pop("client_key", None) or body.pop("client_id"), **body)),
    "faults": add_fault,
    "chaos": _done(lambda network, body: network.chaos(**body)),
    "settings": change_settings,
    "users": lambda network, body: asdict(network.change_account(**body)),
    "tokens": end_tokens,
    "fates": _done(lambda network, body: network.next_fate(body["fate"], int(body.get("times", 1)))),
    "properties": verify_property,
    "drafts": lambda network, body: {"posts": [post.id for post in network.tasks.finish_draft(**body)]},
    "boards": lambda network, body: {"id": network.add_board(**body).id},
}
BLOCKING = frozenset({verify_property})
"""They fetch, so they never run on the event loop."""
