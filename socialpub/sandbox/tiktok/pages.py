"""The public pages of TikTok, and the drafts of all inboxes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.feeds import SHOWN_POSTS, MediaView, NetworkPages, PostView
from socialpub.sandbox.pages import read_form
from socialpub.sandbox.tiktok.api import TikTokSandbox
from socialpub.sandbox.tiktok.tasks import FOLLOWERS, FRIENDS, IN_INBOX, ONLY_ME, PHOTO, TikTokPost

AUDIENCES = {ONLY_ME: "Only me", FRIENDS: "Friends", FOLLOWERS: "Followers"}
LABELS = {
    "is_aigc": "Creator labeled as AI-generated",
    "brand_content_toggle": "Paid partnership",
    "brand_organic_toggle": "Promotional content",
    "disable_comment": "Comments off",
}


class TikTokPages(NetworkPages[TikTokSandbox]):
    account_path, post_path = "/@{username}", "/@{username}/{kind}/{id}"
    publishing = "video_init"
    refusals: ClassVar = {"spam_risk_too_many_posts": "is refused: the daily cap of posts is reached"}

    def own_routes(self) -> list[Route]:
        return [Route("/feed/drafts", self.finish_draft, methods=["POST"])]

    def posts(self, network: TikTokSandbox) -> Sequence[TikTokPost]:
        return network.posts

    def find(self, network: TikTokSandbox, path: Mapping[str, str]) -> TikTokPost | None:
        post = network.post_table.get(path["id"])
        return post if post is not None and post.path == "@{username}/{kind}/{id}".format(**path) else None

    def view(self, network: TikTokSandbox, post: TikTokPost) -> PostView:
        account = network.accounts[post.open_id]
        labels = [AUDIENCES[post.privacy]] if post.privacy in AUDIENCES else []
        is_photo = post.kind == PHOTO
        return PostView(
            post.path,
            account,
            account.display_name,
            post.created_at,
            [(post.description if is_photo else post.title, "")],
            [MediaView(item.id, item.mime_type, item.size) for item in post.media],
            title=post.title if is_photo else "",
            labels=labels + [label for name, label in LABELS.items() if post.options.get(name)],
            app=post.client_key,
        )

    def feed_facts(self, network: TikTokSandbox) -> dict[str, Any]:
        drafts = [task for task in reversed(network.tasks.values()) if task.status == IN_INBOX]
        return {"drafts": drafts[:SHOWN_POSTS]}

    async def finish_draft(self, request: Request) -> Response:
        tiktok, publish_id = self.network(request), (await read_form(request)).get("publish_id", "")
        task = tiktok.tasks.get(publish_id)
        if task is not None and task.status == IN_INBOX:
            tiktok.finish_draft(publish_id)
        return RedirectResponse("../feed", 303)
