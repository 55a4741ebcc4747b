"""What the control API can do to a network, each action with its JSON body.

A mistake is whatever the network raises; the API answers it with 400.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from socialpub.sandbox.faults import FAULTS
from socialpub.sandbox.oauth import OAuthNetwork
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.network import XSandbox

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
