"""The pages of the sandbox: front page, accounts, avatars, media, and the forms that only its own pages may send."""

import colorsys
import html
import io
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from socialpub.sandbox.faults import FaultScript
from socialpub.sandbox.network import OAuthNetwork, SandboxNetwork
from socialpub.sandbox.world import World

# MERGED from sandbox/rendering.py: The pages people look at, from templates; everything that a post brings along i

SOURCES = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load, and that no other page may frame it."""
PAGE_HEADERS = {
    "content-security-policy": f"{SOURCES}; form-action 'self'",
    "cache-control": "no-store",
}
TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_template(template: str, **facts: Any) -> str:
    return _environment().get_template(template).render(**facts)


def page(template: str, status: int = 200, **facts: Any) -> HTMLResponse:
    return HTMLResponse(render_template(template, **facts), status, PAGE_HEADERS)


@cache
def stylesheet() -> bytes:
    return (TEMPLATES / "sandbox.css").read_bytes()


# MERGED from sandbox/own_pages.py: Who may steer: programs on this machine and the sandbox's own pages, never a pa

READING = ("GET", "HEAD")


class OwnPagesOnly:
    """Refuses with 403 what a foreign page may have sent; with `reading` also when it only asks to look.

    A name without a dot is this machine's or its network's, such as `localhost` or a container's: nobody else can give
    it an address. Any other name is foreign, unless it is the one that the sandbox was told to listen on.
    """

    def __init__(self, app: ASGIApp, *, reading: bool) -> None:
        self._app = app
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wrong = ""
        if self._reading or scope["method"] not in READING:
            wrong = _foreign(Headers(scope=scope), scope["app"].state.world.listens_on)
        if wrong:
            await PlainTextResponse(f"{wrong}\n", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


OWN_FORM = Middleware(OwnPagesOnly, reading=False)
"""For pages that anybody may look at, whose form changes something."""
OWN_CONTROL = Middleware(OwnPagesOnly, reading=True)


def _foreign(headers: Headers, listens_on: str) -> str:
    """What is foreign about the request, or nothing."""
    hosts = headers.getlist("host")
    for host in hosts:
        name = _name_in(host)
        if name != listens_on.lower() and not _is_of_this_machine(name):
            return (
                f"Host: {host} is not a name of the sandbox. Use the address that it printed at its start, such as "
                "http://127.0.0.1:8100/."
            )
    own = {f"{scheme}://{host.lower()}" for scheme in ("http", "https") for host in hosts}
    for origin in headers.getlist("origin"):
        if origin.lower() not in own:
            return (
                f"Origin: {origin} is another site, and only the sandbox's own pages may do this. A program leaves "
                "Origin out."
            )
    return ""


def _name_in(host: str) -> str:
    """Lower case, without the port and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_of_this_machine(name: str) -> bool:
    if "." not in name.rstrip(".") and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True


# MERGED from sandbox/fault_form.py: The form on every feed: what the next call of the network meets.

FaultChoices = dict[str, tuple[str, str, Callable[[FaultScript], FaultScript]]]
"""By the form's value: endpoint, words that follow "The next call", what to script."""


def fault_labels(choices: FaultChoices) -> dict[str, str]:
    return {key: words for key, (_, words, _) in choices.items()}


def chosen_fault_label(choices: FaultChoices, request: Request) -> str:
    """What was scripted a moment ago, for the page that the form leads back to."""
    chosen = choices.get(request.query_params.get("scripted", ""))
    return chosen[1] if chosen else ""


async def script_fault(network: SandboxNetwork, choices: FaultChoices, request: Request) -> Response:
    chosen = parse_qs((await request.body()).decode("utf-8", "replace")).get("fault", [""])[0]
    if chosen not in choices:
        return RedirectResponse("../feed", 303)
    endpoint, _, add_fault = choices[chosen]
    add_fault(network.next(endpoint))
    return RedirectResponse(f"../feed?scripted={chosen}", 303)


# MERGED from sandbox/media_response.py: Bytes shown to a browser: only as what it may show, and in ranges, so that

MEDIA_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
}


def media_response(request: Request, data: bytes | None, mime_type: str) -> Response:
    """The bytes, or a part of them; 404 when they are not kept."""
    if data is None:
        return Response(status_code=404)
    headers = dict(MEDIA_HEADERS)
    begin, end = _range(request.headers.get("range", ""), len(data))
    if (begin, end) != (0, len(data)):
        headers["content-range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        return Response(data[begin:end], 206, headers, _shown_as(mime_type))
    return Response(data, 200, headers, _shown_as(mime_type))


def _shown_as(mime_type: str) -> str:
    """Only what a browser shows; anything else is a download."""
    shown = mime_type.split(";", 1)[0].strip().lower()
    return shown if shown.startswith(("image/", "video/")) and "svg" not in shown else "application/octet-stream"


def _range(header: str, size: int) -> tuple[int, int]:
    """The one range of a `Range` header; everything when there is none or it cannot be met."""
    unit, _, asked = header.partition("=")
    first, dash, last = asked.partition("-")
    if unit != "bytes" or not dash or "," in asked or not (first or last):
        return 0, size
    if not (first + last).isdecimal():
        return 0, size
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (begin, end) if begin < end else (0, size)


# MERGED from sandbox/avatars.py: Avatars, which each network has: the first letter of a name, on a colour of its o

SIDE = 400
KEPT = {"cache-control": "max-age=3600"}


def avatar_routes() -> list[Route]:
    return [Route("/avatars/{name}.png", show_avatar_png), Route("/avatars/{name}.svg", show_avatar_svg)]


def show_avatar_png(request: Request) -> Response:
    """For programs. Not on the event loop: it draws."""
    from PIL import Image, ImageDraw, ImageFont

    name = _name(request)
    red, green, blue = (round(part * 255) for part in colorsys.hls_to_rgb(_hue(name) / 360, 0.42, 0.45))
    picture = Image.new("RGB", (SIDE, SIDE), (red, green, blue))
    font, middle = ImageFont.load_default(SIDE / 2), (SIDE / 2, SIDE / 2)
    ImageDraw.Draw(picture).text(middle, _letter(name), "white", font, anchor="mm")
    written = io.BytesIO()
    picture.save(written, "PNG")
    return Response(written.getvalue(), media_type="image/png", headers=KEPT)


async def show_avatar_svg(request: Request) -> Response:
    """For the sandbox's own pages."""
    return drawn_avatar(_name(request))


def drawn_avatar(name: str) -> Response:
    """The avatar of this name, as SVG."""
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48">'
        f'<rect width="48" height="48" fill="hsl({_hue(name)} 45% 42%)"/>'
        '<text x="24" y="32" font-family="sans-serif" font-size="24" fill="#fff" text-anchor="middle">'
        f"{html.escape(_letter(name))}</text></svg>"
    )
    return Response(picture, media_type="image/svg+xml", headers=KEPT)


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name.removesuffix("_normal")


def _hue(name: str) -> int:
    return sum(map(ord, name)) * 47 % 360


def _letter(name: str) -> str:
    return name[:1].upper() or "?"


# MERGED from sandbox/account_pages.py: `/accounts`: the accounts of all networks, and a form that changes each, as

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


def account_routes() -> list[Route]:
    return [
        Route("/accounts", show_accounts),
        Route("/accounts", change_account, methods=["POST"], middleware=[OWN_FORM]),
    ]


async def show_accounts(request: Request) -> Response:
    """Show every account. After a change, `changed` names the account."""
    return _accounts_page(request)


async def change_account(request: Request) -> Response:
    """Change one account; blank texts stay as they are."""
    sent = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    network = _world(request).networks.get(sent.pop("network", ""))
    username = sent.pop("username", "")
    if not isinstance(network, OAuthNetwork):
        return _accounts_page(request, "There is no such network.")
    flags = FLAGS.get(network.name, ())
    changes = {name: value == YES if name in flags else value.strip() for name, value in sent.items() if value.strip()}
    try:
        account = network.change_account(username, **changes)
    except ValueError as error:
        return _accounts_page(request, f"Nothing was changed: {error}.")
    return RedirectResponse(f"accounts?changed={account.username}", 303)


def _accounts_page(request: Request, problem: str = "") -> Response:
    world = _world(request)
    forms = [
        _account_form(network, account)
        for network in world.networks.values()
        if isinstance(network, OAuthNetwork)
        for account in network.accounts.values()
    ]
    known = {form.username for form in forms}
    changed = request.query_params.get("changed", "")
    status = 400 if problem else 200
    return page("accounts.html", status, forms=forms, problem=problem, changed=changed if changed in known else "")


def _account_form(network: OAuthNetwork[Any, Any], account: Any) -> AccountForm:
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


# MERGED from sandbox/pages.py: The pages that belong to no network: the front page and the styles.


def routes() -> list[Route]:
    return [Route("/", front), Route("/sandbox.css", styles), Route("/favicon.ico", icon)]


async def front(request: Request) -> Response:
    world: World = request.app.state.world
    return page(
        "front.html",
        x_posts=sum(post.deleted_at is None for post in world.x.posts),
        tiktok_posts=len(world.tiktok.posts),
        pinterest_pins=sum(pin.deleted_at is None for pin in world.pinterest.pins),
    )


async def icon(request: Request) -> Response:  # noqa: ARG001
    """Browsers ask for it by this name wherever a page names none."""
    return drawn_avatar("Sandbox")


async def styles(request: Request) -> Response:  # noqa: ARG001
    return Response(stylesheet(), media_type="text/css")
