"""The control API, for programs: `/_control`, JSON in and out.

GET    /_control                    counts of all networks
GET    /_control/{network}          posts, calls, in flight, held by a fault
POST   /_control/{network}/grant    {"username", "scopes"?, "expires_in"?} -> tokens as `import-profile` accepts them
POST   /_control/{network}/accounts {"username", ...} as `add_account`
POST   /_control/{network}/users    {"username", ...} changes one: `handle`, `name`, `picture`; `subscription_type` (X),
                                    `private`, … (TikTok), `account_type` (Pinterest), `status` (Bluesky)
POST   /_control/{network}/apps     {"client_id" (TikTok: "client_key"), "client_secret", "redirect_uris"?, ...}
POST   /_control/{network}/tokens   {"username", "end": "expired" | "removed"}: end its access tokens, or its access
POST   /_control/{network}/faults   {"endpoint", "fault", "args"?, "times"?, "skipping"?}
DELETE /_control/{network}/faults   end all faults
POST   /_control/{network}/settings {"list_lag_seconds": 5, "limits": {"POST /2/tweets": 10}}
POST   /_control/tiktok/properties  {"prefix", "file_name", "content"}: verify a URL prefix by its file
POST   /_control/tiktok/drafts      {"publish_id", "posts"?}: the user finishes a draft
POST   /_control/pinterest/boards   {"account", "name", ...} as `add_board`
POST   /_control/bluesky/passwords  {"username", "name"?, "revoked"?}: create an app password, or revoke it
POST   /_control/reset              forget everything
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socialpub.sandbox.bluesky.network import FIRST_APP_PASSWORD
from socialpub.sandbox.faults import FAULTS
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.world import current_world

ControlBody = dict[str, Any]
ControlAction = Callable[[Any, ControlBody], Any]
"""What a network can be asked to do. It raises for a mistake, and the API responds 400. None: an empty object."""


def routes() -> list[Route]:
    return [
        Route("/", overview),
        Route("/reset", reset, methods=["POST"]),
        Route("/{network}", show),
        Route("/{network}/faults", calm, methods=["DELETE"]),
        Route("/{network}/{action}", act, methods=["POST"]),
    ]


async def overview(request: Request) -> Response:
    networks = current_world(request).shown_networks
    for network in networks:
        await network.before_view()
    return JSONResponse({network.name: _counts(network) for network in networks})


async def show(request: Request) -> Response:
    network = _network(request)
    await network.before_view()
    return JSONResponse(_counts(network) | network.view())


async def calm(request: Request) -> Response:
    _network(request).calm()
    return JSONResponse({})


async def reset(request: Request) -> Response:
    current_world(request).reset()
    return JSONResponse({})


async def act(request: Request) -> Response:
    network, actions = _network(request), ACTIONS | current_world(request).actions
    action = actions.get(request.path_params["action"])
    if action is None:
        raise HTTPException(404, "no such action")
    try:
        body = json.loads(await request.body() or b"{}")
        blocks = action is verify_property
        result = await run_in_threadpool(action, network, body) if blocks else action(network, body)
        return JSONResponse({} if result is None else result)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)


def _counts(network: SandboxNetwork[Any]) -> dict[str, Any]:
    return {
        "calls": dict(network.counts),
        "in_flight": network.in_flight,
        "held": network.held,
        **network.totals(),
    }


def _network(request: Request) -> SandboxNetwork[Any]:
    network = current_world(request).networks.get(request.path_params["network"])
    if network is None:
        raise HTTPException(404, "no such network")
    return network


# --- actions ---------------------------------------------------------------------------------------------------------


def end_tokens(network: SandboxNetwork[Any], body: ControlBody) -> None:
    match body["end"]:
        case "removed":
            network.remove_access(body["username"])
        case "expired":
            network.tokens.expire(network.existing_account(body["username"]).id)
        case other:
            raise ValueError(f"tokens end as expired or removed, not {other!r}")


def add_fault(network: SandboxNetwork[Any], body: ControlBody) -> None:
    if body["fault"] not in FAULTS:
        raise ValueError(f"no such fault: {body['fault']} (known: {', '.join(FAULTS)})")
    script = network.next(body["endpoint"]).skipping(int(body.get("skipping", 0)))
    getattr(script, body["fault"])(**body.get("args", {})).times(float(body.get("times", 1)))


def change_settings(network: SandboxNetwork[Any], body: ControlBody) -> None:
    for name, value in body.items():
        present = getattr(network, name, None)
        if name.startswith("_") or not isinstance(present, str | int | float | dict | list):
            raise ValueError(f"no such setting: {name}")
        if isinstance(present, dict):
            present.update(value)
        else:
            setattr(network, name, type(present)(value))


def change_app_password(network: Any, body: ControlBody) -> Any:
    name = body.get("name", FIRST_APP_PASSWORD)
    if body.get("revoked"):
        network.revoke_app_password(body["username"], name)
        return None
    return {"name": name, "password": network.add_app_password(body["username"], name)}


def verify_property(network: Any, body: ControlBody) -> Any:
    """Fetch the file. Not on the event loop."""
    return {"verified": network.verify(**body)}


ACTIONS: dict[str, ControlAction] = {
    "grant": lambda network, body: network.grant(body.pop("username"), **body),
    "accounts": lambda network, body: asdict(network.add_account(**body)),
    "apps": lambda network, body: network.add_app(body.pop("client_key", None) or body.pop("client_id"), **body),
    "faults": add_fault,
    "settings": change_settings,
    "users": lambda network, body: asdict(network.change_account(**body)),
    "tokens": end_tokens,
    "properties": verify_property,
    "drafts": lambda network, body: {"posts": [post.id for post in network.tasks.finish_draft(**body)]},
    "boards": lambda network, body: {"id": network.add_board(**body).id},
    "passwords": change_app_password,
}
