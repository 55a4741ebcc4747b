"""The pages a reader would see: the front page, the feed of X, one post, its pictures and films."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox import page
from socialpub.sandbox.faults import Upcoming
from socialpub.sandbox.served import serve
from socialpub.sandbox.world import World
from socialpub.sandbox.x.network import X
from socialpub.sandbox.x.posts import Post
from socialpub.sandbox.x.text import links

SHOWN_POSTS = 100
SCRIPTS: dict[str, tuple[str, Callable[[Upcoming], Upcoming]]] = {
    "503_after": ("answers 503 after posting", lambda up: up.fails_with(503, after_effect=True)),
    "503_before": ("answers 503 without posting", lambda up: up.fails_with(503)),
    "timeout_after": ("posts, but never answers", lambda up: up.times_out_after_effect()),
    "cut_after": ("posts, then the connection breaks", lambda up: up.drops_connection_after_effect()),
    "limited": ("is told to come back in 60 seconds", lambda up: up.rate_limited(60)),
    "unauthorized": ("is told that its token has expired", lambda up: up.unauthorized()),
    "no_credits": ("is told that the app is out of credits", lambda up: up.credits_depleted()),
}
REPLIES = {
    "following": "Accounts the author follows can reply",
    "mentionedUsers": "Only mentioned accounts can reply",
    "subscribers": "Only subscribers can reply",
    "verified": "Only verified accounts can reply",
}


def routes() -> list[Route]:
    """Below `/x`; the permalink comes last, it would catch others."""
    return [
        Route("/feed", show_feed, name="feed"),
        Route("/feed/faults", script_fault, methods=["POST"]),
        Route("/media/{id}", show_media),
        avatar_route(),
        Route("/{username}/status/{id}", show_post),
    ]


def front_routes() -> list[Route]:
    return [Route("/", front), Route("/sandbox.css", styles)]


def avatar_route() -> Route:
    return Route("/avatars/{name}.svg", avatar)


@dataclass(frozen=True, slots=True)
class Shown:
    """A post as the templates want it."""

    post: Post
    author: str
    text: Markup
    labels: tuple[str, ...]
    available: frozenset[str]
    """Ids of the media whose bytes are still kept."""


async def front(request: Request) -> Response:
    world: World = request.app.state.world
    return _page(
        "front.html",
        x_posts=sum(post.deleted_at is None for post in world.x.posts),
        tiktok_posts=len(world.tiktok.posts),
        pinterest_pins=sum(pin.deleted_at is None for pin in world.pinterest.pins),
    )


async def show_feed(request: Request) -> Response:
    x: X = request.app.state.world.x
    up = [post for post in reversed(x.posts[-3 * SHOWN_POSTS :]) if post.deleted_at is None][:SHOWN_POSTS]
    return _page(
        "x_feed.html",
        posts=[_show(x, post) for post in up],
        scripts={key: words for key, (words, _) in SCRIPTS.items()},
        scripted=SCRIPTS[request.query_params["scripted"]][0]
        if request.query_params.get("scripted") in SCRIPTS
        else "",
    )


async def script_fault(request: Request) -> Response:
    x: X = request.app.state.world.x
    chosen = parse_qs((await request.body()).decode("utf-8", "replace")).get("fault", [""])[0]
    if chosen in SCRIPTS:
        SCRIPTS[chosen][1](x.next("create_post"))
        return RedirectResponse(f"../feed?scripted={chosen}", 303)
    return RedirectResponse("../feed", 303)


async def show_post(request: Request) -> Response:
    x: X = request.app.state.world.x
    post = x.find_post(request.path_params["id"])
    if post is None or post.username.lower() != request.path_params["username"].lower():
        return _page("x_post.html", 404, shown=None)
    return _page("x_post.html", shown=_show(x, post))


async def show_media(request: Request) -> Response:
    x: X = request.app.state.world.x
    media = x.media.all.get(request.path_params["id"])
    return serve(
        request, x.media.shelf.get(request.path_params["id"]) if media else None, media.mime_type if media else ""
    )


async def avatar(request: Request) -> Response:
    name = request.path_params["name"].removesuffix("_normal")
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
    return Response(page.stylesheet(), media_type="text/css")


def _page(template: str, status: int = 200, **facts: Any) -> Response:
    return HTMLResponse(page.render(template, **facts), status, page.HEADERS)


def _show(x: X, post: Post) -> Shown:
    account = x.accounts.get(post.account_id)
    labels = []
    if post.made_with_ai:
        labels.append("Made with AI")
    if post.paid_partnership:
        labels.append("Paid partnership")
    if post.reply_settings in REPLIES:
        labels.append(REPLIES[post.reply_settings])
    if post.in_reply_to:
        labels.append("Reply")
    return Shown(
        post,
        account.name if account else post.username,
        _with_links(post.text),
        tuple(labels),
        frozenset(item.id for item in post.media if x.media.shelf.get(item.id) is not None),
    )


def _with_links(text: str) -> Markup:
    pieces, position = [], 0
    for link in links(text):
        pieces.append(Markup.escape(text[position : link.start]))
        pieces.append(Markup('<a href="{}" rel="nofollow noreferrer">{}</a>').format(link.expanded, link.display))
        position = link.end
    pieces.append(Markup.escape(text[position:]))
    return Markup("").join(pieces)
