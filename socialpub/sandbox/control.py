"""The control API, for programs: `/_control`, JSON in and out. The manual's page `callers` lists what it can do."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socialpub.sandbox.faults import FAULTS
from socialpub.sandbox.network import SandboxNetwork

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
    networks = request.app.state.world.shown_networks
    return JSONResponse({network.name: await _counts(network) for network in networks})


async def show(request: Request) -> Response:
    network = _network(request)
    return JSONResponse(await _counts(network) | network.view())


async def calm(request: Request) -> Response:
    _network(request).calm()
    return JSONResponse({})


async def reset(request: Request) -> Response:
    request.app.state.world.reset()
    return JSONResponse({})


async def act(request: Request) -> Response:
    network, actions = _network(request), ACTIONS | request.app.state.world.actions
    action = actions.get(request.path_params["action"])
    if action is None:
        raise HTTPException(404, "no such action")
    try:
        result = action(network, json.loads(await request.body() or b"{}"))
        return JSONResponse({} if result is None else result)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)


async def _counts(network: SandboxNetwork) -> dict[str, Any]:
    await network.prepare("")
    return {
        "calls": dict(network.counts),
        "in_flight": network.in_flight,
        "held": network.held,
        **network.totals(),
    }


def _network(request: Request) -> SandboxNetwork:
    network: SandboxNetwork | None = request.app.state.world.networks.get(request.path_params["network"])
    if network is None:
        raise HTTPException(404, "no such network")
    return network


# --- actions ---------------------------------------------------------------------------------------------------------


def end_tokens(network: SandboxNetwork, body: ControlBody) -> None:
    match body["end"]:
        case "removed":
            network.remove_access(body["username"])
        case "expired":
            network.tokens.expire(network.existing_account(body["username"]).id)
        case other:
            raise ValueError(f"tokens end as expired or removed, not {other!r}")


def add_fault(network: SandboxNetwork, body: ControlBody) -> None:
    if body["fault"] not in FAULTS:
        raise ValueError(f"no such fault: {body['fault']} (known: {', '.join(FAULTS)})")
    script = network.next(body["endpoint"]).skipping(int(body.get("skipping", 0)))
    getattr(script, body["fault"])(**body.get("args", {})).times(float(body.get("times", 1)))


def change_settings(network: SandboxNetwork, body: ControlBody) -> None:
    for name, value in body.items():
        present = getattr(network, name, None)
        if name.startswith("_") or not isinstance(present, str | int | float | dict | list):
            raise ValueError(f"no such setting: {name}")
        if isinstance(present, dict):
            present.update(value)
        else:
            setattr(network, name, type(present)(value))


ACTIONS: dict[str, ControlAction] = {
    "grant": lambda network, body: network.grant(body.pop("username"), **body),
    "accounts": lambda network, body: asdict(network.add_account(**body)),
    "users": lambda network, body: asdict(network.change_account(**body)),
    "tokens": end_tokens,
    "faults": add_fault,
    "settings": change_settings,
}
