"""X as its readers see it: the feed, an account, one post."""

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox.pages import NetworkPages, page
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.text import links

SHOWN_POSTS = 100
ANY_USERNAME = "i"
"""In links of callers that do not know the username."""
REPLIES = {
    "following": "Accounts the author follows can reply",
    "mentionedUsers": "Only mentioned accounts can reply",
    "subscribers": "Only subscribers can reply",
    "verified": "Only verified accounts can reply",
}


class XPages(NetworkPages[XSandbox]):
    name = "x"
    faults = {  # noqa: RUF012  # read only
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

    def own_routes(self) -> list[Route]:
        return [Route("/{username}/status/{id}", self.show_post), Route("/{username}", self.show_account)]

    async def show_feed(self, request: Request) -> Response:
        return self._feed(request, self.network(request).posts)

    async def show_account(self, request: Request) -> Response:
        account = self.network(request).account_named(request.path_params["username"])
        if account is None:
            return page("x_post.html", 404, shown=None)
        return self._feed(request, self.network(request).posts_of(account))

    def _feed(self, request: Request, posts: list[XPost]) -> Response:
        shown = [_view(self.network(request), post) for post in posts[: -SHOWN_POSTS - 1 : -1]]
        return page("x_feed.html", posts=shown, **self.fault_form(request))

    async def show_post(self, request: Request) -> Response:
        post = self.network(request).find_post(request.path_params["id"])
        if post is None or request.path_params["username"].lower() not in (post.username.lower(), ANY_USERNAME):
            return page("x_post.html", 404, shown=None)
        return page("x_post.html", shown=_view(self.network(request), post))

    def media(self, network: XSandbox, media_id: str) -> tuple[bytes | None, str]:
        media = network.media.all.get(media_id)
        return (network.media.cache.get(media_id), media.mime_type) if media else (None, "")


def _view(x: XSandbox, post: XPost) -> dict[str, Any]:
    labels = {
        "Made with AI": post.made_with_ai,
        "Paid partnership": post.paid_partnership,
        REPLIES.get(post.reply_settings, ""): post.reply_settings in REPLIES,
        "Reply": post.in_reply_to,
    }
    return {
        "post": post,
        "author": x.accounts[post.account_id].name,
        "text": _with_links(post.text),
        "labels": [label for label, applies in labels.items() if applies],
        "available": {item.id for item in post.media if x.media.cache.get(item.id) is not None},
    }


def _with_links(text: str) -> Markup:
    pieces, position = [], 0
    for link in links(text):
        pieces.append(Markup.escape(text[position : link.start]))
        pieces.append(Markup('<a href="{}" rel="nofollow noreferrer">{}</a>').format(link.expanded, link.display))
        position = link.end
    pieces.append(Markup.escape(text[position:]))
    return Markup("").join(pieces)
