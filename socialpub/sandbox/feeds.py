"""The public pages of the networks: a feed with a form that scripts the next fault, and a page for each post."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.endpoint import OWN_FORM
from socialpub.sandbox.faults import FaultScript
from socialpub.sandbox.media import sniff
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import avatar, page, read_form
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.tiktok.models import FOLLOWERS, FRIENDS, IN_INBOX, ONLY_ME, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.models import XPost
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.text import links

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork[Any])

SHOWN_POSTS = 100
MEDIA_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
}

FaultChoices = Mapping[str, tuple[str, str, Callable[[FaultScript], FaultScript]]]
"""By the form's value: endpoint, words that follow "The next call", what to script."""


class NetworkPages(ABC, Generic[NetworkT]):
    """A feed with a form that scripts the next fault, the media of its posts, and a page for each post."""

    name: ClassVar[str]
    faults: ClassVar[FaultChoices]

    def routes(self) -> list[Route]:
        """Return the routes below the network's path. Its own come last, since they would match others."""
        return [
            Route("/feed", self.show_feed),
            Route("/feed/faults", self.script_fault, methods=["POST"], middleware=[OWN_FORM]),
            Route("/media/{id}", self.show_media),
            Route("/avatars/{name}.png", show_avatar),
            *self.own_routes(),
        ]

    @abstractmethod
    def own_routes(self) -> list[Route]: ...

    @abstractmethod
    async def show_feed(self, request: Request) -> Response: ...

    def network(self, request: Request) -> NetworkT:
        network: NetworkT = request.app.state.world.networks[self.name]
        return network

    def fault_form(self, request: Request) -> dict[str, Any]:
        """Return the data of the form. `scripted` is the fault that was just scripted."""
        chosen = self.faults.get(request.query_params.get("scripted", ""))
        return {
            "scripts": {key: words for key, (_, words, _) in self.faults.items()},
            "scripted": chosen[1] if chosen else "",
        }

    async def script_fault(self, request: Request) -> Response:
        chosen = (await read_form(request)).get("fault", "")
        if chosen not in self.faults:
            return RedirectResponse("../feed", 303)
        endpoint, _, add_fault = self.faults[chosen]
        add_fault(self.network(request).next(endpoint))
        return RedirectResponse(f"../feed?scripted={chosen}", 303)

    async def show_media(self, request: Request) -> Response:
        """Return the bytes, or the range that was requested. Only images and videos have a type."""
        data = self.network(request).cache.get(request.path_params["id"])
        if data is None:
            return Response(status_code=404)
        begin, end = _range(request.headers.get("range", ""), len(data))
        kind = sniff(data) or "application/octet-stream"
        if (begin, end) == (0, len(data)):
            return Response(data, 200, MEDIA_HEADERS, kind)
        headers = {**MEDIA_HEADERS, "content-range": f"bytes {begin}-{end - 1}/{len(data)}"}
        return Response(data[begin:end], 206, headers, kind)


def _range(header: str, size: int) -> tuple[int, int]:
    """Return the one range of a `Range` header, or everything if there is none or it does not fit."""
    unit, _, asked = header.partition("=")
    first, dash, last = asked.partition("-")
    if unit != "bytes" or not dash or not (first + last).isdecimal():
        return 0, size
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (begin, end) if begin < end else (0, size)


def show_avatar(request: Request) -> Response:
    return avatar(request.path_params["name"].removesuffix("_normal"))


# --- X ----------------------------------------------------------------------------------------------------------------

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
    faults = {  # noqa: RUF012  # read only
        "503_after": ("create_post", "posts, then responds with 503", lambda up: up.fails_with(503, after_effect=True)),
        "503_before": ("create_post", "does not post and responds with 503", lambda up: up.fails_with(503)),
        "timeout_after": ("create_post", "posts, but never responds", lambda up: up.times_out_after_effect()),
        "cut_after": (
            "create_post",
            "posts, then the connection breaks",
            lambda up: up.drops_connection_after_effect(),
        ),
        "limited": ("create_post", "is rate-limited for 60 seconds", lambda up: up.rate_limited(60)),
        "unauthorized": ("create_post", "is refused: the token has expired", lambda up: up.unauthorized()),
        "no_credits": ("create_post", "is refused: the app has no credits left", lambda up: up.credits_depleted()),
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
        shown = [_x_view(self.network(request), post) for post in posts[: -SHOWN_POSTS - 1 : -1]]
        return page("x_feed.html", posts=shown, **self.fault_form(request))

    async def show_post(self, request: Request) -> Response:
        post = self.network(request).find_post(request.path_params["id"])
        if post is None or request.path_params["username"].lower() not in (post.username.lower(), ANY_USERNAME):
            return page("x_post.html", 404, shown=None)
        return page("x_post.html", shown=_x_view(self.network(request), post))


def _x_view(x: XSandbox, post: XPost) -> dict[str, Any]:
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
    pieces, position = [], 0
    for link in links(text):
        pieces.append(Markup.escape(text[position : link.start]))
        pieces.append(Markup('<a href="{}" rel="nofollow noreferrer">{}</a>').format(link.expanded, link.display))
        position = link.end
    pieces.append(Markup.escape(text[position:]))
    return Markup("").join(pieces)


# --- TikTok -----------------------------------------------------------------------------------------------------------

AUDIENCES = {ONLY_ME: "Only me", FRIENDS: "Friends", FOLLOWERS: "Followers"}
LABELS = {
    "is_aigc": "Creator labeled as AI-generated",
    "brand_content_toggle": "Paid partnership",
    "brand_organic_toggle": "Promotional content",
    "disable_comment": "Comments off",
}


class TikTokPages(NetworkPages[TikTokSandbox]):
    name = "tiktok"
    faults = {  # noqa: RUF012  # read only
        "init_timeout": ("video_init", "starts a video, but never answers", lambda up: up.times_out_after_effect()),
        "chunk_502": ("upload_chunk", "with a chunk of a video gets a 502", lambda up: up.fails_with(502)),
        "chunk_cut": (
            "upload_chunk",
            "takes a chunk, then the connection breaks",
            lambda up: up.drops_connection_after_effect(),
        ),
        "status_401": ("status_fetch", "for the status finds its token expired", lambda up: up.unauthorized()),
        "capped": (
            "creator_info",
            "for the creator reports a daily cap",
            lambda up: up.refuses("spam_risk_too_many_posts"),
        ),
        "limited": ("video_init", "to start a video is one too many", lambda up: up.rate_limited(60)),
    }

    def own_routes(self) -> list[Route]:
        return [
            Route("/feed/drafts", self.finish_draft, methods=["POST"], middleware=[OWN_FORM]),
            Route("/@{username}", self.show_profile),
            Route("/@{username}/{kind}/{id}", self.show_post),
        ]

    async def show_feed(self, request: Request) -> Response:
        return await self._feed(request, "")

    async def show_profile(self, request: Request) -> Response:
        return await self._feed(request, request.path_params["username"])

    async def _feed(self, request: Request, username: str) -> Response:
        tiktok = self.network(request)
        await tiktok.before_view()
        posts = [post for post in reversed(tiktok.posts) if username in ("", post.username)]
        tasks = [task for task in reversed(tiktok.tasks.all.values()) if username in ("", task.username)]
        drafts = [(task, task.post_info.get("title", "")) for task in tasks if task.status == IN_INBOX]
        return page(
            "tiktok_feed.html",
            username=username,
            posts=[_tiktok_view(tiktok, post) for post in posts[:SHOWN_POSTS]],
            drafts=drafts[:SHOWN_POSTS],
            under_way=sum(task.is_open for task in tasks),
            up="../",
            **self.fault_form(request),
        )

    async def finish_draft(self, request: Request) -> Response:
        tiktok, chosen = self.network(request), (await read_form(request)).get("publish_id", "")
        task = tiktok.tasks.all.get(chosen)
        if task is not None and task.status == IN_INBOX:
            tiktok.tasks.finish_draft(chosen)
        return RedirectResponse("../feed", 303)

    async def show_post(self, request: Request) -> Response:
        tiktok, wanted = self.network(request), request.path_params
        found = next((post for post in tiktok.posts if post.id == wanted["id"]), None)
        if found is None or found.username != wanted["username"] or wanted["kind"] not in ("video", "photo"):
            return page("tiktok_post.html", 404, shown=None, up="../../../")
        return page("tiktok_post.html", shown=_tiktok_view(tiktok, found), up="../../../")


def _tiktok_view(tiktok: TikTokSandbox, post: TikTokPost) -> dict[str, Any]:
    labels = [AUDIENCES[post.privacy]] if post.privacy in AUDIENCES else []
    return {
        "post": post,
        "author": tiktok.accounts[post.open_id].display_name,
        "labels": labels + [label for name, label in LABELS.items() if post.options.get(name)],
        "available": tiktok.cache,
    }


# --- Pinterest --------------------------------------------------------------------------------------------------------

SHOWN_PINS, SHOWN_EMPTY_BOARDS = 200, 20


class PinterestPages(NetworkPages[PinterestSandbox]):
    name = "pinterest"
    faults = {  # noqa: RUF012  # read only
        "2787": (
            "create_pin",
            "creates the pin, but responds with 400 code 2787",
            lambda up: up.refuses("2787", after_effect=True),
        ),
        "timeout_after": ("create_pin", "creates the pin, but never responds", lambda up: up.times_out_after_effect()),
        "timeout_before": ("create_pin", "creates no pin and never responds", lambda up: up.times_out_before_effect()),
        "conflict": (
            "create_pin",
            "conflicts with another write to the board (409)",
            lambda up: up.refuses("conflict"),
        ),
        "spam": ("create_pin", "is blocked as spam", lambda up: up.refuses("spam")),
        "limited": ("create_pin", "is rate-limited for 60 seconds", lambda up: up.rate_limited(60)),
        "trial": ("create_pin", "is refused: a trial app cannot create pins here", lambda up: up.refuses("trial")),
    }

    def own_routes(self) -> list[Route]:
        return [
            Route("/pin/{id}/", self.show_pin),
            Route("/pin/{id}", self.show_pin),
            Route("/{username}/", self.show_account),
        ]

    async def show_feed(self, request: Request) -> Response:
        pinterest = self.network(request)
        by_board: dict[str, list[dict[str, Any]]] = {}
        for pin in pinterest.pins[: -SHOWN_PINS - 1 : -1]:
            by_board.setdefault(pin.board_id, []).append(_pin_view(pinterest, pin))
        empty = [board for board in pinterest.boards.values() if not pinterest.pins_on(board)]
        return page(
            "pinterest_feed.html",
            boards=[
                (pins[0]["board"], pinterest.accounts[pins[0]["board"].owner_id], pins) for pins in by_board.values()
            ],
            empty=[(board, pinterest.accounts[board.owner_id]) for board in empty[:SHOWN_EMPTY_BOARDS]],
            up="../",
            **self.fault_form(request),
        )

    async def show_account(self, request: Request) -> Response:
        """Redirect to the feed: it shows the boards of all accounts."""
        found = self.network(request).account_named(request.path_params["username"])
        return RedirectResponse("../feed", 303) if found else page("pinterest_pin.html", 404, shown=None, up="../../")

    async def show_pin(self, request: Request) -> Response:
        pin = self.network(request).find_pin(request.path_params["id"])
        up = "../../../" if request.url.path.endswith("/") else "../../"
        shown = _pin_view(self.network(request), pin) if pin else None
        return page("pinterest_pin.html", 200 if pin else 404, shown=shown, up=up)


def _pin_view(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    return {
        "pin": pin,
        "board": board,
        "section": board.sections.get(pin.section_id or "", ""),
        "author": pinterest.accounts[pin.account_id].business_name,
        "film_id": pin.film_id or "",
        "link_host": (urlsplit(pin.link).hostname or "").removeprefix("www.") if pin.link else "",
        "available": pinterest.cache,
    }
