"""The control room over HTTP, for tests in other processes: `/_control`, JSON in and out.

GET    /_control                    counts of all networks
GET    /_control/{network}          posts, calls, in flight, held by a fault
POST   /_control/{network}/grant    {"username", "scopes"?, "expires_in"?} -> tokens as `import-profile` takes them
POST   /_control/{network}/accounts {"username", ...} as `add_account` (X, Pinterest) or `add_user` (TikTok)
POST   /_control/{network}/users    {"username", ...} changes one: `private`, … (TikTok), `account_type` (Pinterest)
POST   /_control/{network}/apps     {"client_id" (TikTok: "client_key"), "client_secret", "redirect_uris"?, ...}
POST   /_control/{network}/tokens   {"username", "end": "expired" | "removed"}: they run out, or access is taken back
POST   /_control/{network}/faults   {"endpoint", "fault", "args"?, "times"?, "skipping"?}
POST   /_control/{network}/chaos    {"seed", "rate", "kinds"?, "endpoints"?}
DELETE /_control/{network}/faults   no faults and no chaos any more
POST   /_control/{network}/settings {"list_lag_seconds": 5, "limits": {"POST /2/tweets": 10}}
POST   /_control/{network}/fates    {"fate", "times"?}: what becomes of the next shares (TikTok) or films (Pinterest)
POST   /_control/tiktok/properties  {"prefix", "file_name"?, "content"?}: verify a URL prefix by its file
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
from socialpub.sandbox.network import Network
from socialpub.sandbox.pinterest.network import Pinterest
from socialpub.sandbox.tiktok.network import TikTok
from socialpub.sandbox.tokens import TokenBook
from socialpub.sandbox.world import World
from socialpub.sandbox.x.network import X
from socialpub.sandbox.x.posts import Post

Act = Callable[[Network, dict[str, Any]], Any]


def routes() -> list[Route]:
    return [
        Route("/", overview),
        Route("/reset", reset, methods=["POST"]),
        Route("/{network}", show),
        Route("/{network}/faults", calm, methods=["DELETE"]),
        Route("/{network}/{action}", act, methods=["POST"]),
    ]


async def overview(request: Request) -> Response:
    world: World = request.app.state.world
    await world.tiktok.tasks.pull_all()
    return JSONResponse({name: _counts(network) for name, network in world.networks.items()})


async def show(request: Request) -> Response:
    network = _network(request)
    if network is None:
        return JSONResponse({"error": "no such network"}, 404)
    if isinstance(network, TikTok):
        await network.tasks.pull_all()
    shown = _counts(network) | network.shown()
    if isinstance(network, X):
        shown["accounts"] = [asdict(account) for account in network.accounts.values()]
        shown["posts"] = [_show_post(post) for post in network.posts]
    return JSONResponse(shown)


async def calm(request: Request) -> Response:
    network = _network(request)
    if network is None:
        return JSONResponse({"error": "no such network"}, 404)
    network.calm()
    return JSONResponse({})


async def reset(request: Request) -> Response:
    request.app.state.world.reset()
    return JSONResponse({})


async def act(request: Request) -> Response:
    network, action = _network(request), ACTIONS.get(request.path_params["action"])
    if network is None or action is None:
        return JSONResponse({"error": "no such network or action"}, 404)
    try:
        body = json.loads(await request.body() or b"{}")
        if action is _verify_property:
            return JSONResponse(await run_in_threadpool(action, network, body))
        return JSONResponse(action(network, body))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)


def _grant(network: Any, body: dict[str, Any]) -> Any:
    return network.grant(body.pop("username"), **body)


def _add_account(network: Any, body: dict[str, Any]) -> Any:
    add = network.add_user if hasattr(network, "add_user") else network.add_account
    return asdict(add(**body))


def _add_app(network: Any, body: dict[str, Any]) -> Any:
    network.add_app(**body)
    return {}


def _add_fault(network: Network, body: dict[str, Any]) -> Any:
    if body["fault"] not in FAULTS:
        raise ValueError(f"no such fault: {body['fault']} (known: {', '.join(FAULTS)})")
    upcoming = network.next(body["endpoint"]).skipping(int(body.get("skipping", 0)))
    getattr(upcoming, body["fault"])(**body.get("args", {})).times(float(body.get("times", 1)))
    return {}


def _chaos(network: Network, body: dict[str, Any]) -> Any:
    network.chaos(**body)
    return {}


def _settings(network: Network, body: dict[str, Any]) -> Any:
    for name, value in body.items():
        present = getattr(network, name, None)
        if (
            name.startswith("_")
            or isinstance(present, TokenBook)
            or not isinstance(present, str | int | float | dict | list)
        ):
            raise ValueError(f"no such setting: {name}")
        if isinstance(present, dict):
            present.update(value)
        else:
            setattr(network, name, type(present)(value))
    return {}


def _change_user(network: Any, body: dict[str, Any]) -> Any:
    return asdict(network.change_user(**body))


def _end_tokens(network: Any, body: dict[str, Any]) -> Any:
    match body["end"]:
        case "removed":
            network.remove_access(body["username"])
        case "expired":
            network.tokens.expire(_account_id(network, body["username"]))
        case other:
            raise ValueError(f"tokens end as expired or removed, not {other!r}")
    return {}


def _account_id(network: Any, username: str) -> str:
    if isinstance(network, TikTok):
        user = network.user_named(username)
        found = user.open_id if user else ""
    else:
        account = network.account_named(username)
        found = account.id if account else ""
    if not found:
        raise ValueError(f"no such account: {username}")
    return str(found)


def _add_fate(network: Any, body: dict[str, Any]) -> Any:
    fates = network.tasks if isinstance(network, TikTok) else network
    fates.next_fate(body["fate"], int(body.get("times", 1)))
    return {}


def _verify_property(network: Network, body: dict[str, Any]) -> Any:
    if not isinstance(network, TikTok):
        raise ValueError(f"{network.name} has no URL properties")
    claim = network.properties.get(body["prefix"]) if len(body) == 1 else None
    claim = claim or network.add_property(**body)
    network.verify(claim.prefix)
    return asdict(claim)


def _finish_draft(network: Network, body: dict[str, Any]) -> Any:
    if not isinstance(network, TikTok):
        raise ValueError(f"{network.name} has no drafts")
    return {"posts": [post.id for post in network.tasks.finish_draft(**body)]}


def _add_board(network: Network, body: dict[str, Any]) -> Any:
    if not isinstance(network, Pinterest):
        raise ValueError(f"{network.name} has no boards")
    return {"id": network.add_board(**body).id}


ACTIONS: dict[str, Act] = {
    "grant": _grant,
    "accounts": _add_account,
    "apps": _add_app,
    "faults": _add_fault,
    "chaos": _chaos,
    "settings": _settings,
    "users": _change_user,
    "tokens": _end_tokens,
    "fates": _add_fate,
    "properties": _verify_property,
    "drafts": _finish_draft,
    "boards": _add_board,
}


def _network(request: Request) -> Network | None:
    world: World = request.app.state.world
    return world.networks.get(request.path_params["network"])


def _counts(network: Network) -> dict[str, Any]:
    return {
        "calls": dict(network.counts),
        "in_flight": network.in_flight,
        "held": network.held,
        "most_in_flight": network.most_in_flight,
        "most_in_flight_of": dict(network.most_in_flight_of),
        **({"post_count": len(network.posts)} if isinstance(network, X) else network.effects()),
    }


def _show_post(post: Post) -> dict[str, Any]:
    return {
        "id": post.id,
        "account_id": post.account_id,
        "username": post.username,
        "text": post.text,
        "created_at": post.created_at.isoformat(),
        "received_at": post.received_at.isoformat() if post.received_at else None,
        "received_monotonic": post.received_monotonic,
        "deleted_at": post.deleted_at.isoformat() if post.deleted_at else None,
        "client_id": post.client_id,
        "options": post.options,
        "media": [
            {
                "id": item.id,
                "category": item.category,
                "mime_type": item.mime_type,
                "size": item.size,
                "sha256": item.sha256,
                "alt_text": item.alt_text,
            }
            for item in post.media
        ],
    }
