"""The public pages of TikTok: a feed with the drafts of all inboxes, and a page for each post."""

from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.endpoint import OWN_FORM
from socialpub.sandbox.feeds import SHOWN_POSTS, FaultChoices, NetworkPages
from socialpub.sandbox.pages import page, read_form
from socialpub.sandbox.tiktok.models import FOLLOWERS, FRIENDS, IN_INBOX, ONLY_ME, TikTokPost
from socialpub.sandbox.tiktok.network import TikTokSandbox

AUDIENCES = {ONLY_ME: "Only me", FRIENDS: "Friends", FOLLOWERS: "Followers"}
LABELS = {
    "is_aigc": "Creator labeled as AI-generated",
    "brand_content_toggle": "Paid partnership",
    "brand_organic_toggle": "Promotional content",
    "disable_comment": "Comments off",
}


class TikTokPages(NetworkPages[TikTokSandbox]):
    name = "tiktok"
    faults: ClassVar[FaultChoices] = {
        "init_timeout": ("video_init", "starts a video, but never answers", "times_out_after_effect", {}),
        "chunk_502": ("upload_chunk", "with a chunk of a video gets a 502", "fails_with", {"status": 502}),
        "chunk_cut": (
            "upload_chunk", "takes a chunk, then the connection breaks", "drops_connection_after_effect", {},
        ),
        "status_401": ("status_fetch", "for the status finds its token expired", "unauthorized", {}),
        "capped": (
            "creator_info", "for the creator reports a daily cap", "refuses", {"code": "spam_risk_too_many_posts"},
        ),
        "limited": ("video_init", "to start a video is one too many", "rate_limited", {"seconds": 60}),
    }  # fmt: skip

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


def _view(tiktok: TikTokSandbox, post: TikTokPost) -> dict[str, Any]:
    labels = [AUDIENCES[post.privacy]] if post.privacy in AUDIENCES else []
    return {
        "post": post,
        "author": tiktok.accounts[post.open_id].display_name,
        "labels": labels + [label for name, label in LABELS.items() if post.options.get(name)],
        "available": tiktok.cache,
    }
