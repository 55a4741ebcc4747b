"""The public pages of X: a feed, the posts of an account, and a page for each post."""

import re
from typing import Any, ClassVar

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox.feeds import SHOWN_POSTS, FaultChoices, NetworkPages
from socialpub.sandbox.pages import page
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox

CREATE = "create_post"
LINK = re.compile(r"(https?://[^\s\"'<>]+)")
ANY_USERNAME = "i"
"""The name in links from callers that do not know the username."""
REPLIES = {
    "following": "Accounts the author follows can reply",
    "mentionedUsers": "Only mentioned accounts can reply",
    "subscribers": "Only subscribers can reply",
    "verified": "Only verified accounts can reply",
}


class XPages(NetworkPages[XSandbox]):
    name = "x"
    faults: ClassVar[FaultChoices] = {
        "503_after": (CREATE, "posts, then responds with 503", "fails_with", {"status": 503, "after_effect": True}),
        "503_before": (CREATE, "does not post and responds with 503", "fails_with", {"status": 503}),
        "timeout_after": (CREATE, "posts, but never responds", "times_out_after_effect", {}),
        "cut_after": (CREATE, "posts, then the connection breaks", "drops_connection_after_effect", {}),
        "limited": (CREATE, "is rate-limited for 60 seconds", "rate_limited", {"seconds": 60}),
        "unauthorized": (CREATE, "is refused: the token has expired", "unauthorized", {}),
        "no_credits": (CREATE, "is refused: the app has no credits left", "credits_depleted", {}),
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
        "available": x.cache,
    }


def _with_links(text: str) -> Markup:
    pieces = []
    for piece in LINK.split(text):
        link = Markup('<a href="{0}" rel="nofollow noreferrer">{0}</a>').format(piece)
        pieces.append(link if LINK.fullmatch(piece) else Markup.escape(piece))
    return Markup("").join(pieces)
