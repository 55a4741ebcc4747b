"""Avatars, which each network has: the first letter of a name, on a colour of its own.

The networks' answers name a PNG, as real ones do: whoever fetches pictures takes no SVG.
"""

import colorsys
import html
import io

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SIDE = 400
KEPT = {"cache-control": "max-age=3600"}


def routes() -> list[Route]:
    return [Route("/avatars/{name}.png", png), Route("/avatars/{name}.svg", svg)]


def png(request: Request) -> Response:
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


async def svg(request: Request) -> Response:
    """For the sandbox's own pages."""
    return drawn(_name(request))


def drawn(name: str) -> Response:
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
