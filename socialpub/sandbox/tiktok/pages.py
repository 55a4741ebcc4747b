"""TikTok as its viewers see it, and the inbox, where drafts wait for their user."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.pages import NetworkPages, page, read_form
from socialpub.sandbox.same_origin import OWN_FORM
from socialpub.sandbox.tiktok.models import FOLLOWERS, FRIENDS, IN_INBOX, ONLY_ME, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox

SHOWN_POSTS = 100
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
        "init_timeout": (
            "video_init",
            "starts a video, but never answers",
            lambda up: up.times_out_after_effect(),
        ),
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
            posts=[_view(tiktok, post) for post in posts[:SHOWN_POSTS]],
            drafts=drafts[:SHOWN_POSTS],
            under_way=sum(task.is_open for task in tasks),
            up="../",
            **self.fault_form(request),
        )

    async def finish_draft(self, request: Request) -> Response:
        """Post a draft, as its user does in the app."""
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
        return page("tiktok_post.html", shown=_view(tiktok, found), up="../../../")

    def media(self, network: TikTokSandbox, media_id: str) -> tuple[bytes | None, str]:
        media = network.tasks.media.get(media_id)
        return network.tasks.cache.get(media_id), media.mime_type if media else ""


def _view(tiktok: TikTokSandbox, post: TikTokPost) -> dict[str, Any]:
    labels = [AUDIENCES[post.privacy]] if post.privacy in AUDIENCES else []
    return {
        "post": post,
        "author": tiktok.accounts[post.open_id].display_name,
        "labels": labels + [label for name, label in LABELS.items() if post.options.get(name)],
        "available": {item.id for item in post.media if tiktok.tasks.cache.get(item.id) is not None},
    }
