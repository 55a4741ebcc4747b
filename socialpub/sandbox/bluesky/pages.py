"""Bluesky's public pages: a feed, an account's posts, and a page for each post. They show records as an app does."""

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.sandbox.bluesky.models import POST, THREADGATE, BlueskyRecord
from socialpub.sandbox.bluesky.network import BlueskySandbox
from socialpub.sandbox.feeds import SHOWN_POSTS, FaultChoices, NetworkPages
from socialpub.sandbox.pages import page

PUT = "put_record"
RULES = {"mentionRule": "mentioned accounts", "followerRule": "followers", "followingRule": "followed accounts"}
LABELS = {
    "porn": "Adult content",
    "sexual": "Sexually suggestive",
    "nudity": "Nudity",
    "graphic-media": "Graphic media",
}


class BlueskyPages(NetworkPages[BlueskySandbox]):
    name = "bluesky"
    faults: ClassVar[FaultChoices] = {
        "cut_after": (PUT, "posts, then the connection breaks", "drops_connection_after_effect", {}),
        "timeout_after": (PUT, "posts, but never responds", "times_out_after_effect", {}),
        "502_after": (
            PUT, "posts, then responds with 502", "fails_with", {"status": 502, "html": True, "after_effect": True},
        ),
        "503_before": (PUT, "does not post and responds with 503", "fails_with", {"status": 503}),
        "limited": (PUT, "is rate-limited for 60 seconds", "rate_limited", {"seconds": 60}),
        "expired": (PUT, "is refused: the token has expired", "unauthorized", {}),
        "blob_gone": (PUT, "is refused: its image is gone", "refuses", {"code": "BlobNotFound"}),
    }  # fmt: skip

    def own_routes(self) -> list[Route]:
        return [
            Route("/profile/{actor}", self.show_account),
            Route("/profile/{actor}/post/{rkey}", self.show_post),
        ]

    async def show_feed(self, request: Request) -> Response:
        bluesky = self.network(request)
        shown = _views(bluesky, bluesky.posts)
        return page("bluesky_feed.html", posts=shown, up="../", base="", account=None, **self.fault_form(request))

    async def show_account(self, request: Request) -> Response:
        bluesky = self.network(request)
        account = bluesky.account_named(request.path_params["actor"])
        if account is None or account.status != "active":
            return page("bluesky_post.html", 404, shown=None, up="../../", base="../")
        shown = _views(bluesky, bluesky.posts_of(account))
        return page("bluesky_feed.html", posts=shown, up="../../", base="../", account=account)

    async def show_post(self, request: Request) -> Response:
        bluesky = self.network(request)
        account = bluesky.account_named(request.path_params["actor"])
        post = None
        if account is not None and account.status == "active":
            post = bluesky.find_record(f"at://{account.did}/{POST}/{request.path_params['rkey']}")
        shown = _view(bluesky, post) if post else None
        replies = [one for one in bluesky.posts if post and _parent(one) == post.uri]
        return page(
            "bluesky_post.html", 200 if shown else 404, shown=shown, replies=_views(bluesky, replies)[::-1],
            up="../../../../", base="../../../",
        )  # fmt: skip


def _views(bluesky: BlueskySandbox, posts: list[BlueskyRecord]) -> list[dict[str, Any]]:
    """Return the newest posts that readers see, newest first by their dates: a post with an old date is far below."""
    visible = [one for one in posts if not one.taken_down and bluesky.accounts[one.did].status == "active"]
    visible.sort(key=lambda post: post.sorted_at)
    return [_view(bluesky, post) for post in visible[: -SHOWN_POSTS - 1 : -1]]


def _view(bluesky: BlueskySandbox, post: BlueskyRecord) -> dict[str, Any]:
    value = post.value
    embed = value.get("embed", {})
    embed = embed.get("media", embed)
    parent = bluesky.find_record(_parent(post))
    return {
        "post": post,
        "account": bluesky.accounts[post.did],
        "text": [(one, _href(one)) for one in pieces(post.text, value.get("facets", []))],
        "images": [
            (_cid(one["image"]), one["image"], one["alt"], one.get("aspectRatio")) for one in embed.get("images", ())
        ],
        "video": (_cid(embed["video"]), embed["video"], embed.get("alt", "")) if "video" in embed else None,
        "card": _card(embed.get("external")),
        "is_reply": "reply" in value,
        "parent": parent,
        "parent_account": bluesky.accounts[parent.did] if parent else None,
        "labels": _labels(bluesky, post),
        "available": bluesky.cache,
    }


def _cid(blob: dict[str, Any]) -> str:
    return str(blob["ref"]["$link"])


def _parent(post: BlueskyRecord) -> str:
    return str(post.value.get("reply", {}).get("parent", {}).get("uri", ""))


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str
    kind: str = ""
    """`link`, `mention`, `tag`; empty: plain text."""
    target: str = ""
    """The URL, the DID or the tag."""


def pieces(text: str, facets: list[dict[str, Any]]) -> list[TextPiece]:
    """Return the text as an app shows it. Offsets count bytes. A facet that does not fit the text is not shown."""
    data = text.encode("utf-8", "surrogatepass")
    found, position = [], 0
    for facet in sorted(facets, key=lambda one: int(one["index"]["byteStart"])):
        begin, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
        feature = facet["features"][0] if facet["features"] else {}
        kind = str(feature.get("$type", "")).rpartition("#")[2]
        target = feature.get("uri") or feature.get("did") or feature.get("tag")
        marked = _decoded(data[begin:end])
        if not position <= begin < end <= len(data) or marked is None or not isinstance(target, str):
            continue
        found += [TextPiece(_decoded(data[position:begin]) or ""), TextPiece(marked, kind, target)]
        position = end
    found.append(TextPiece(data[position:].decode("utf-8", "replace")))
    return [one for one in found if one.text]


def _decoded(data: bytes) -> str | None:
    """Return the text, or None if an offset is inside a character."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _href(piece: TextPiece) -> str:
    """Return where a piece of text leads, below the network's path for mentions. Empty: nowhere."""
    match piece.kind:
        case "link":
            return piece.target if urlsplit(piece.target).scheme in ("http", "https") else ""
        case "mention":
            return f"profile/{quote(piece.target, safe=':')}"
    return ""


def _card(external: dict[str, Any] | None) -> dict[str, Any] | None:
    if external is None:
        return None
    parts = urlsplit(external["uri"])
    return {
        **external,
        "host": (parts.hostname or "").removeprefix("www."),
        "href": external["uri"] if parts.scheme in ("http", "https") else "",
        "image": _cid(external["thumb"]) if "thumb" in external else "",
    }


def _labels(bluesky: BlueskySandbox, post: BlueskyRecord) -> list[str]:
    values = post.value.get("labels", {}).get("values", ())
    shown = [LABELS.get(one["val"], one["val"]) for one in values]
    gate = bluesky.find_record(post.uri.replace(POST, THREADGATE))
    if gate is not None and "allow" in gate.value:
        rules = [RULES.get(str(one["$type"]).rpartition("#")[2], "a list") for one in gate.value["allow"]]
        shown.append(f"Only {' and '.join(rules)} can reply" if rules else "Replies are off")
    return [*shown, *post.value.get("langs", ())]
