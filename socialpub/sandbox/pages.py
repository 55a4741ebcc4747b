"""The pages that belong to no network: the front page, the styles, and avatars, which each network has."""

import html

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox.rendering import page, stylesheet
from socialpub.sandbox.world import World


def routes() -> list[Route]:
    return [Route("/", front), Route("/sandbox.css", styles), Route("/favicon.ico", icon)]


def avatar_route() -> Route:
    return Route("/avatars/{name}.svg", avatar)


async def front(request: Request) -> Response:
    world: World = request.app.state.world
    return page(
        "front.html",
        x_posts=sum(post.deleted_at is None for post in world.x.posts),
        tiktok_posts=len(world.tiktok.posts),
        pinterest_pins=sum(pin.deleted_at is None for pin in world.pinterest.pins),
    )


async def avatar(request: Request) -> Response:
    return _letter(request.path_params["name"].removesuffix("_normal"))


async def icon(request: Request) -> Response:  # noqa: ARG001
    """Browsers ask for it by this name wherever a page names none."""
    return _letter("Sandbox")


def _letter(name: str) -> Response:
    """The first letter of a name, on a color of its own."""
    hue = sum(map(ord, name)) * 47 % 360
    letter = html.escape(name[:1].upper() or "?")
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48">'
        f'<rect width="48" height="48" fill="hsl({hue} 45% 42%)"/>'
        '<text x="24" y="32" font-family="sans-serif" font-size="24" fill="#fff" text-anchor="middle">'
        f"{letter}</text></svg>"
    )
    return Response(picture, media_type="image/svg+xml", headers={"cache-control": "max-age=3600"})


async def styles(request: Request) -> Response:  # noqa: ARG001
    return Response(stylesheet(), media_type="text/css")
