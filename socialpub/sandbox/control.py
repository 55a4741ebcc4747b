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
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socialpub.sandbox.faults import FAULTS
from socialpub.sandbox.memory import json_facts
from socialpub.sandbox.network import OAuthNetwork, SandboxNetwork
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.world import World
from socialpub.sandbox.x.network import XSandbox


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


# MERGED from sandbox/control_actions.py: What the control API can do to a network, each action with its JSON body.

ControlBody = dict[str, Any]
ControlAction = Callable[[Any, ControlBody], Any]


def grant(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    return network.grant(body.pop("username"), **body)


def add_account(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    return asdict(network.add_account(**body))


def change_account(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    return asdict(network.change_account(**body))


def add_app(network: Any, body: ControlBody) -> Any:
    network.add_app(**body)
    return {}


def end_tokens(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    match body["end"]:
        case "removed":
            network.remove_access(body["username"])
        case "expired":
            network.tokens.expire(network.existing_account(body["username"]).id)
        case other:
            raise ValueError(f"tokens end as expired or removed, not {other!r}")
    return {}


def add_fault(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    if body["fault"] not in FAULTS:
        raise ValueError(f"no such fault: {body['fault']} (known: {', '.join(FAULTS)})")
    script = network.next(body["endpoint"]).skipping(int(body.get("skipping", 0)))
    getattr(script, body["fault"])(**body.get("args", {})).times(float(body.get("times", 1)))
    return {}


def begin_chaos(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    network.chaos(**body)
    return {}


def change_settings(network: OAuthNetwork[Any, Any], body: ControlBody) -> Any:
    for name, value in body.items():
        present = getattr(network, name, None)
        if name.startswith("_") or not isinstance(present, str | int | float | dict | list):
            raise ValueError(f"no such setting: {name}")
        if isinstance(present, dict):
            present.update(value)
        else:
            setattr(network, name, type(present)(value))
    return {}


def add_fate(network: Any, body: ControlBody) -> Any:
    if isinstance(network, XSandbox):
        raise ValueError("the fate of x's uploads is the setting `processing`")
    network.next_fate(body["fate"], int(body.get("times", 1)))
    return {}


def verify_property(network: Any, body: ControlBody) -> Any:
    if not isinstance(network, TikTokSandbox):
        raise ValueError(f"{network.name} has no URL properties")
    claim = network.properties.get(body["prefix"]) if len(body) == 1 else None
    claim = claim or network.add_property(**body)
    network.verify(claim.prefix)
    return asdict(claim)


def finish_draft(network: Any, body: ControlBody) -> Any:
    if not isinstance(network, TikTokSandbox):
        raise ValueError(f"{network.name} has no drafts")
    return {"posts": [post.id for post in network.tasks.finish_draft(**body)]}


def add_board(network: Any, body: ControlBody) -> Any:
    if not isinstance(network, PinterestSandbox):
        raise ValueError(f"{network.name} has no boards")
    return {"id": network.add_board(**body).id}


ACTIONS: dict[str, ControlAction] = {
    "grant": grant,
    "accounts": add_account,
    "apps": add_app,
    "faults": add_fault,
    "chaos": begin_chaos,
    "settings": change_settings,
    "users": change_account,
    "tokens": end_tokens,
    "fates": add_fate,
    "properties": verify_property,
    "drafts": finish_draft,
    "boards": add_board,
}
BLOCKING = frozenset({verify_property})
"""They fetch, so they never run on the event loop."""


# MERGED from sandbox/x/control_view.py: What the control API shows of X.

X_POST = (
    "id", "account_id", "username", "text", "created_at", "received_at", "received_monotonic", "deleted_at",
    "client_id", "options",
)  # fmt: skip
X_MEDIA = ("id", "category", "mime_type", "size", "sha256", "alt_text")


def x_view(x: XSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in x.accounts.values()],
        "posts": [
            json_facts(post, X_POST) | {"media": [json_facts(item, X_MEDIA) for item in post.media]} for post in x.posts
        ],
    }


# MERGED from sandbox/tiktok/control_view.py: What the control API shows of TikTok.

TIKTOK_POST = (
    "id", "publish_id", "open_id", "username", "kind", "title", "description", "privacy", "created_at", "options",
    "client_key", "media",
)  # fmt: skip
TIKTOK_TASK = (
    "publish_id", "kind", "direct", "source", "username", "created_at", "received_at", "received_monotonic", "status",
    "fail_reason", "post_info", "size", "chunk_size", "chunk_count", "received", "puts", "media",
)  # fmt: skip


def tiktok_view(tiktok: TikTokSandbox) -> dict[str, Any]:
    return {
        "users": [asdict(account) for account in tiktok.accounts.values()],
        "posts": [json_facts(post, TIKTOK_POST) for post in tiktok.posts],
        "tasks": [
            json_facts(task, TIKTOK_TASK) | {"posts": [post.id for post in task.posts]}
            for task in tiktok.tasks.all.values()
        ],
        "properties": [asdict(claim) for claim in tiktok.properties.values()],
    }


# MERGED from sandbox/pinterest/control_view.py: What the control API shows of Pinterest.

PINTEREST_BOARD = ("id", "name", "owner_id", "privacy", "sandbox", "sections")
PINTEREST_PIN = (
    "id", "account_id", "username", "board_id", "section_id", "kind", "title", "description", "alt_text", "link",
    "dominant_color", "ai_disclosures", "pictures", "key_frame_seconds", "created_at", "sandbox", "client_id",
    "received_at", "received_monotonic", "deleted_at",
)  # fmt: skip
PINTEREST_MEDIA = (
    "id",
    "owner_id",
    "sandbox",
    "status",
    "mime_type",
    "size",
    "sha256",
    "uploads",
    "looks",
    "pinned_in",
)


def pinterest_view(pinterest: PinterestSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in pinterest.accounts.values()],
        "boards": [json_facts(board, PINTEREST_BOARD) for board in pinterest.boards.values()],
        "pins": [_pin(pinterest, pin) for pin in pinterest.pins],
        "media": [json_facts(media, PINTEREST_MEDIA) for media in pinterest.media.values()],
        "categories": dict(pinterest.category_counts),
    }


def _pin(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    video = pinterest.media.get(pin.film_id or "")
    return json_facts(pin, PINTEREST_PIN) | {"film": json_facts(video, PINTEREST_MEDIA) if video else None}
