"""X as its readers see it: the feed, one post, its pictures and videos."""

from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox import pages
from socialpub.sandbox.pages import media_response, page
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.text import links

SHOWN_POSTS = 100
ANYBODY = "i"
"""What stands for the username in links of those who do not know it."""
FAULTS: pages.FaultChoices = {
    "503_after": ("create_post", "answers 503 after posting", lambda up: up.fails_with(503, after_effect=True)),
    "503_before": ("create_post", "answers 503 without posting", lambda up: up.fails_with(503)),
    "timeout_after": ("create_post", "posts, but never answers", lambda up: up.times_out_after_effect()),
    "cut_after": (
        "create_post",
        "posts, then the connection breaks",
        lambda up: up.drops_connection_after_effect(),
    ),
    "limited": ("create_post", "is told to come back in 60 seconds", lambda up: up.rate_limited(60)),
    "unauthorized": ("create_post", "is told that its token has expired", lambda up: up.unauthorized()),
    "no_credits": ("create_post", "is told that the app is out of credits", lambda up: up.credits_depleted()),
}
REPLIES = {
    "following": "Accounts the author follows can reply",
    "mentionedUsers": "Only mentioned accounts can reply",
    "subscribers": "Only subscribers can reply",
    "verified": "Only verified accounts can reply",
}


@dataclass(frozen=True, slots=True)
class XPostView:
    """A post as the templates want it."""

    post: XPost
    author: str
    text: Markup
    labels: tuple[str, ...]
    available: frozenset[str]
    """Ids of the media whose bytes are still kept."""


def routes() -> list[Route]:
    """Below `/x`; the permalink comes last, it would catch others."""
    return [
        Route("/feed", show_feed, name="feed"),
        Route("/feed/faults", script_fault, methods=["POST"], middleware=[pages.OWN_FORM]),
        Route("/media/{id}", show_media),
        Route("/{username}/status/{id}", show_post),
        Route("/{username}", show_account),
    ]


async def show_feed(request: Request) -> Response:
    return _feed(request, None)


async def show_account(request: Request) -> Response:
    """The posts of one account."""
    account = _x(request).account_named(request.path_params["username"])
    return page("x_post.html", 404, shown=None) if account is None else _feed(request, account.username)


def _feed(request: Request, username: str | None) -> Response:
    x = _x(request)
    shown = [post for post in reversed(x.posts[-3 * SHOWN_POSTS :]) if username in (None, post.username)]
    up = [post for post in shown if post.deleted_at is None][:SHOWN_POSTS]
    return page(
        "x_feed.html",
        posts=[_view(x, post) for post in up],
        scripts=pages.fault_labels(FAULTS),
        scripted=pages.chosen_fault_label(FAULTS, request),
    )


async def script_fault(request: Request) -> Response:
    return await pages.script_fault(_x(request), FAULTS, request)


async def show_post(request: Request) -> Response:
    x = _x(request)
    post = x.find_post(request.path_params["id"])
    if post is None or request.path_params["username"].lower() not in (post.username.lower(), ANYBODY):
        return page("x_post.html", 404, shown=None)
    return page("x_post.html", shown=_view(x, post))


async def show_media(request: Request) -> Response:
    x, media_id = _x(request), request.path_params["id"]
    media = x.media.all.get(media_id)
    return media_response(request, x.media.cache.get(media_id) if media else None, media.mime_type if media else "")


def _x(request: Request) -> XSandbox:
    x: XSandbox = request.app.state.world.x
    return x


def _view(x: XSandbox, post: XPost) -> XPostView:
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
    return XPostView(
        post,
        account.name if account else post.username,
        _with_links(post.text),
        tuple(labels),
        frozenset(item.id for item in post.media if x.media.cache.get(item.id) is not None),
    )


def _with_links(text: str) -> Markup:
    pieces, position = [], 0
    for link in links(text):
        pieces.append(Markup.escape(text[position : link.start]))
        pieces.append(Markup('<a href="{}" rel="nofollow noreferrer">{}</a>').format(link.expanded, link.display))
        position = link.end
    pieces.append(Markup.escape(text[position:]))
    return Markup("").join(pieces)
