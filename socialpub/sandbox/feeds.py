"""The public pages of the networks: a feed with a form that scripts the next fault, the posts of an account, and a page
for each post. A network declares its paths and how to show a post."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.media import sniff
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import avatar_response, page, read_form

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork)

SHOWN_POSTS = 100
MEDIA_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
}

FAULTS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "503_after": ("is done, then gets a 503", "fails_with", {"status": 503, "after_effect": True}),
    "503_before": ("is not done and gets a 503", "fails_with", {"status": 503}),
    "timeout_after": ("is done, but gets no response", "times_out_after_effect", {}),
    "timeout_before": ("is not done and gets no response", "times_out_before_effect", {}),
    "cut_after": ("is done, then the connection breaks", "drops_connection_after_effect", {}),
    "limited": ("is rate-limited for 60 seconds", "rate_limited", {"seconds": 60}),
    "unauthorized": ("is refused: the token has expired", "unauthorized", {}),
}
"""The faults of the form on a feed: words that follow "The next call to publish", the fault and its arguments."""


class MediaView(NamedTuple):
    """One image or video of a post."""

    id: str
    mime_type: str
    size: int
    alt: str = ""
    poster: str = ""
    """The id of a video's cover."""

    @property
    def is_video(self) -> bool:
        return self.mime_type.startswith("video/")


class LinkView(NamedTuple):
    """The card of a link."""

    url: str
    title: str = ""
    description: str = ""
    image: str = ""

    @property
    def host(self) -> str:
        return (urlsplit(self.url).hostname or "").removeprefix("www.")


@dataclass(frozen=True, slots=True)
class PostView:
    """A post as its page shows it."""

    path: str
    """Of the post's page, below the network's path."""
    account: Any
    author: str
    at: datetime
    text: Sequence[tuple[str, str]]
    """Pieces of the text, each with its link or an empty text."""
    media: Sequence[MediaView] = ()
    title: str = ""
    card: LinkView | None = None
    labels: Sequence[str] = ()
    app: str | None = None
    """The id of the app that made the post."""
    parent: str = ""
    """The path of the post that this one replies to."""


class NetworkPages(ABC, Generic[NetworkT]):
    publishing: ClassVar[str]
    """The endpoint whose next fault the form scripts."""
    refusals: ClassVar[Mapping[str, str]] = {}
    """The network's own refusals that the form offers, with words that follow "The next call to publish"."""
    account_path: ClassVar[str]
    """With `{username}`."""
    post_path: ClassVar[str]
    """With `{username}` and `{id}`, or one of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def routes(self) -> list[Route]:
        """Return the routes below the network's path. The accounts come last, since they would match others."""
        return [
            Route("/feed", self.show_feed),
            Route("/feed/faults", self.script_fault, methods=["POST"]),
            Route("/media/{id}", self.show_media),
            Route("/avatars/{name}.png", show_avatar),
            *self.own_routes(),
            Route(self.post_path, self.show_post),
            Route(self.account_path, self.show_account),
        ]

    def own_routes(self) -> list[Route]:
        return []

    @abstractmethod
    def posts(self, network: NetworkT) -> Sequence[Any]:
        """Return all posts that readers see, oldest first."""

    @abstractmethod
    def find(self, network: NetworkT, path: Mapping[str, str]) -> Any | None:
        """Return the post that the parameters of a path name."""

    @abstractmethod
    def view(self, network: NetworkT, post: Any) -> PostView: ...

    def feed_facts(self, network: NetworkT) -> dict[str, Any]:  # noqa: ARG002  # TikTok has drafts
        """Return what else the feed shows."""
        return {}

    def network(self, request: Request) -> NetworkT:
        network: NetworkT = request.app.state.world.networks[self._name]
        return network

    async def show_feed(self, request: Request) -> Response:
        words = {**{key: choice[0] for key, choice in FAULTS.items()}, **self.refusals}
        scripted = words.get(request.query_params.get("scripted", ""), "")
        return await self._posts_page(request, None, scripts=words, scripted=scripted)

    async def show_account(self, request: Request) -> Response:
        account = self.network(request).account_named(request.path_params["username"])
        return await self._posts_page(request, account) if account else self._page(request, [], 404)

    async def _posts_page(self, request: Request, account: Any, **facts: Any) -> Response:
        network = self.network(request)
        await network.prepare("")
        views = self._newest(network)
        if account is not None:
            views = [view for view in views if view.account is account]
        facts |= {"heading": network.label if account is None else f"@{account.username}"}
        return self._page(request, views[:SHOWN_POSTS], **facts, **self.feed_facts(network))

    async def show_post(self, request: Request) -> Response:
        network = self.network(request)
        post = self.find(network, request.path_params)
        if post is None:
            return self._page(request, [], 404)
        post_view = self.view(network, post)
        replies = [view for view in self._newest(network)[::-1] if view.parent == post_view.path]
        return self._page(request, [post_view, *replies])

    def _newest(self, network: NetworkT) -> list[PostView]:
        return [self.view(network, post) for post in reversed(self.posts(network))]

    def _page(self, request: Request, posts: Sequence[PostView], status: int = 200, **facts: Any) -> Response:
        network, depth = self.network(request), request.url.path.count("/")
        return page(
            "posts.html",
            status,
            network=network.label,
            posts=posts,
            available=network.cache,
            up="../" * (depth - 1),
            base="../" * (depth - 2),
            **{"heading": "", "scripts": {}, "scripted": "", "drafts": (), **facts},
        )

    async def script_fault(self, request: Request) -> Response:
        choice = (await read_form(request)).get("fault", "")
        script = self.network(request).next(self.publishing)
        if choice in FAULTS:
            _, fault, arguments = FAULTS[choice]
            getattr(script, fault)(**arguments)
        elif choice in self.refusals:
            script.refuses(choice)
        else:
            return RedirectResponse("../feed", 303)
        return RedirectResponse(f"../feed?scripted={choice}", 303)

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
    return avatar_response(request.path_params["name"].removesuffix("_normal"))
