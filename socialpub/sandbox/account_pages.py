"""`/accounts`: the accounts of all networks, and a form that changes each, as its owner would at the network.

What an app knows of an account goes stale that way: its handle, name and picture, and what it may post.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox import own_pages
from socialpub.sandbox.oauth import OAuthNetwork
from socialpub.sandbox.rendering import page
from socialpub.sandbox.world import World

LABELS = {"x": "X", "tiktok": "TikTok", "pinterest": "Pinterest"}
FIELD_LABELS = {"handle": "Handle", "name": "Name", "picture": "Picture (drawn from this word)"}
CHOICE_LABELS = {"subscription_type": "Subscription", "account_type": "Account type", "private": "Private account"}
FLAGS = {"tiktok": ("private",)}
"""Settings that are on or off, by network."""
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class AccountForm:
    network: str
    label: str
    username: str
    picture: str
    texts: list[tuple[str, str, str]]
    """Field, label and value."""
    choices: list[tuple[str, str, str, tuple[str, ...]]]
    """The same, with the values to choose from."""


def routes() -> list[Route]:
    return [
        Route("/accounts", show),
        Route("/accounts", change, methods=["POST"], middleware=[own_pages.FORM]),
    ]


async def show(request: Request) -> Response:
    """Show every account. After a change, `changed` names the account."""
    return _page(request)


async def change(request: Request) -> Response:
    """Change one account; blank texts stay as they are."""
    sent = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    network = _world(request).networks.get(sent.pop("network", ""))
    username = sent.pop("username", "")
    if not isinstance(network, OAuthNetwork):
        return _page(request, "There is no such network.")
    flags = FLAGS.get(network.name, ())
    changes = {name: value == YES if name in flags else value.strip() for name, value in sent.items() if value.strip()}
    try:
        account = network.change_account(username, **changes)
    except ValueError as error:
        return _page(request, f"Nothing was changed: {error}.")
    return RedirectResponse(f"accounts?changed={account.username}", 303)


def _page(request: Request, problem: str = "") -> Response:
    world = _world(request)
    forms = [
        _form(network, account)
        for network in world.networks.values()
        if isinstance(network, OAuthNetwork)
        for account in network.accounts.values()
    ]
    known = {form.username for form in forms}
    changed = request.query_params.get("changed", "")
    status = 400 if problem else 200
    return page("accounts.html", status, forms=forms, problem=problem, changed=changed if changed in known else "")


def _form(network: OAuthNetwork[Any, Any], account: Any) -> AccountForm:
    picture = account.picture or account.username
    values = {"handle": account.username, "name": getattr(account, network.name_field), "picture": picture}
    flags = [(name, (NO, YES), YES if getattr(account, name) else NO) for name in FLAGS.get(network.name, ())]
    chosen = [(name, values, getattr(account, name)) for name, values in network.account_choices.items()]
    return AccountForm(
        network.name,
        LABELS[network.name],
        account.username,
        picture,
        [(name, FIELD_LABELS[name], value) for name, value in values.items()],
        [(name, CHOICE_LABELS[name], value, offered) for name, offered, value in (*chosen, *flags)],
    )


def _world(request: Request) -> World:
    world: World = request.app.state.world
    return world
