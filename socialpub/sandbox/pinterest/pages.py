"""The public pages of Pinterest."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from socialpub.sandbox.feeds import LinkView, MediaView, NetworkPages, PostView
from socialpub.sandbox.pinterest.api import PinterestSandbox
from socialpub.sandbox.pinterest.network import PUBLIC, Pin


class PinterestPages(NetworkPages[PinterestSandbox]):
    account_path, post_path = "/{username}/", "/pin/{id}/"
    publishing = "create_pin"
    refusals: ClassVar = {
        "conflict": "conflicts with another write to the board (409)",
        "spam": "is blocked as spam",
        "trial": "is refused: a trial app cannot create pins here",
    }

    def posts(self, network: PinterestSandbox) -> Sequence[Pin]:
        return network.pins

    def find(self, network: PinterestSandbox, path: Mapping[str, str]) -> Pin | None:
        return network.pin_table.get(path["id"])

    def view(self, network: PinterestSandbox, post: Pin) -> PostView:
        account, board = network.accounts[post.account_id], network.boards[post.board_id]
        place = f"{board.name} · {board.sections[post.section_id]}" if post.section_id else board.name
        media = [
            MediaView(image.id, image.mime_type, image.size, post.alt_text or image.title or "")
            for image in post.pictures
        ]
        if video := network.media.get(post.video_id or ""):
            media = [MediaView(video.id, video.mime_type, video.size, poster=media[0].id if media else "")]
        return PostView(
            f"pin/{post.id}/",
            account,
            account.business_name,
            post.created_at,
            [(post.description or "", "")],
            media,
            title=post.title or "",
            card=LinkView(post.link) if post.link else None,
            labels=[f"on {place}", *([] if board.privacy == PUBLIC else [board.privacy.lower()]), *post.ai_disclosures],
            app=post.client_id,
        )
