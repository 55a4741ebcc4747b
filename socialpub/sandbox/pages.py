"""The sandbox's own pages (the front page and the accounts), and the functions that render every page.

Templates escape everything that a post contains.
"""

import colorsys
import io
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image, ImageDraw, ImageFont
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

SOURCES = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The sources that a page may load. Other pages cannot embed it in a frame."""
PAGE_HEADERS = {"content-security-policy": f"{SOURCES}; form-action 'self'", "cache-control": "no-store"}
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


async def read_form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace")))


def avatar(name: str, side: int = 400) -> bytes:
    """Draw the first letter of a name on a color of that name, as a PNG. Do not call this on the event loop."""
    hue = sum(map(ord, name)) * 47 % 360 / 360
    red, green, blue = (round(part * 255) for part in colorsys.hls_to_rgb(hue, 0.42, 0.45))
    image = Image.new("RGB", (side, side), (red, green, blue))
    font, middle = ImageFont.load_default(side / 2), (side / 2, side / 2)
    ImageDraw.Draw(image).text(middle, name[:1].upper() or "?", "white", font, anchor="mm")
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


def avatar_response(name: str, side: int = 400) -> Response:
    return Response(avatar(name, side), media_type="image/png", headers={"cache-control": "max-age=3600"})


# --- the front page --------------------------------------------------------------------------------------------------


def routes() -> list[Route]:
    return [
        Route("/", show_front),
        Route("/sandbox.css", show_styles),
        Route("/favicon.ico", show_icon),
        Route("/accounts", show_accounts),
        Route("/accounts", change_account, methods=["POST"]),
    ]


async def show_front(request: Request) -> Response:
    return page("front.html", networks=request.app.state.world.shown_networks)


def show_icon(request: Request) -> Response:
    """Return the icon that browsers request if a page does not link to an icon."""
    return avatar_response("Sandbox", 48)


async def show_styles(request: Request) -> Response:
    return FileResponse(TEMPLATES / "sandbox.css", media_type="text/css")


# --- accounts --------------------------------------------------------------------------------------------------------

WORDS = {False: "no", True: "yes"}


async def change_account(request: Request) -> Response:
    """Change one account. A blank text field does not change the value."""
    sent = await read_form(request)
    network = request.app.state.world.networks.get(sent.pop("network", ""))
    username = sent.pop("username", "")
    if network is None:
        return await show_accounts(request, "There is no such network.")
    changes: dict[str, Any] = {name: value.strip() for name, value in sent.items() if value.strip()}
    for name, form in network.account_fields.items():
        if name in changes and isinstance(form, tuple):
            changes[name] = next((value for value in form if WORDS.get(value, value) == changes[name]), changes[name])
    try:
        account = network.change_account(username, **changes)
    except ValueError as error:
        return await show_accounts(request, f"Nothing was changed: {error}.")
    return RedirectResponse(f"accounts?changed={account.username}", 303)


async def show_accounts(request: Request, problem: str = "") -> Response:
    """Show every account, with a form that changes it as its user would on the network.

    After a change, `changed` names the account.
    """
    networks = request.app.state.world.shown_networks
    forms = [_account_form(network, account) for network in networks for account in network.accounts.values()]
    changed = request.query_params.get("changed", "")
    if changed not in {form["account"].username for form in forms}:
        changed = ""
    return page("accounts.html", 400 if problem else 200, forms=forms, problem=problem, changed=changed)


def _account_form(network: Any, account: Any) -> dict[str, Any]:
    """Return the form's fields: texts, and choices with their options."""
    picture = account.picture or account.username
    return {
        "network": network,
        "account": account,
        "picture": picture,
        "texts": {"handle": account.username, "name": getattr(account, network.name_field), "picture": picture},
        "choices": {
            name: [(WORDS.get(value, value), value == getattr(account, name)) for value in form]
            for name, form in network.account_fields.items()
            if isinstance(form, tuple)
        },
    }
