"""The public pages of X."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from socialpub.sandbox.feeds import MediaView, NetworkPages, PostView
from socialpub.sandbox.x.api import XSandbox
from socialpub.sandbox.x.network import GIF, VIDEO, XPost

LINK = re.compile(r"(https?://[^\s\"'<>]+)")
ANY_USERNAME = "i"
"""The name in links from callers that do not know the username."""
USUAL_TYPES = {GIF: "image/gif", VIDEO: "video/mp4"}
"""Any declared type of a video is one that a browser may play."""
REPLIES = {
    "following": "Accounts the author follows can reply",
    "mentionedUsers": "Only mentioned accounts can reply",
    "subscribers": "Only subscribers can reply",
    "verified": "Only verified accounts can reply",
}


class XPages(NetworkPages[XSandbox]):
    account_path, post_path = "/{username}", "/{username}/status/{id}"
    publishing = "create_post"
    refusals: ClassVar = {"credits_depleted": "is refused: the app has no credits left"}

    def posts(self, network: XSandbox) -> Sequence[XPost]:
        return network.posts

    def find(self, network: XSandbox, path: Mapping[str, str]) -> XPost | None:
        post = network.find_post(path["id"])
        return post if post and path["username"].lower() in (post.username.lower(), ANY_USERNAME) else None

    def view(self, network: XSandbox, post: XPost) -> PostView:
        account, parent = network.accounts[post.account_id], network.find_post(post.in_reply_to)
        labels = {
            "Made with AI": post.options.get("made_with_ai"),
            "Paid partnership": post.options.get("paid_partnership"),
            REPLIES.get(post.reply_settings, ""): post.reply_settings in REPLIES,
        }
        return PostView(
            _path(post),
            account,
            account.name,
            post.created_at,
            [(piece, piece if LINK.fullmatch(piece) else "") for piece in LINK.split(post.text)],
            [
                MediaView(
                    item.id,
                    USUAL_TYPES.get(item.category) or item.mime_type or "image/jpeg",
                    item.size,
                    item.alt_text or "",
                )
                for item in post.media
            ],
            labels=[label for label, applies in labels.items() if applies],
            app=post.client_id,
            parent=_path(parent) if parent else "",
        )


def _path(post: XPost) -> str:
    return f"{post.username}/status/{post.id}"
