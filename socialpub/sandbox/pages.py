"""The pages that belong to no network: the front page and the styles."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox import avatars
from socialpub.sandbox.rendering import page, stylesheet
from socialpub.sandbox.world import World


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
    return avatars.drawn("Sandbox")


async def styles(request: Request) -> Response:  # noqa: ARG001
    return Response(stylesheet(), media_type="text/css")
