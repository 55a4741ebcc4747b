"""What the control API shows of Pinterest."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.pinterest.models import Pin, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox


def pinterest_view(pinterest: PinterestSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in pinterest.accounts.values()],
        "boards": [
            {
                "id": board.id,
                "name": board.name,
                "owner_id": board.owner_id,
                "privacy": board.privacy,
                "sandbox": board.sandbox,
                "sections": board.sections,
            }
            for board in pinterest.boards.values()
        ],
        "pins": [_pin(pinterest, pin) for pin in pinterest.pins],
        "media": [_media(media) for media in pinterest.media.values()],
        "categories": dict(pinterest.category_counts),
    }


def _pin(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    video = pinterest.media.get(pin.film_id or "")
    return {
        "id": pin.id,
        "account_id": pin.account_id,
        "username": pin.username,
        "board_id": pin.board_id,
        "section_id": pin.section_id,
        "kind": pin.kind,
        "title": pin.title,
        "description": pin.description,
        "alt_text": pin.alt_text,
        "link": pin.link,
        "dominant_color": pin.dominant_color,
        "pictures": [asdict(one) for one in pin.pictures],
        "film": _media(video) if video else None,
        "key_frame_seconds": pin.key_frame_seconds,
        "created_at": pin.created_at.isoformat(),
        "sandbox": pin.sandbox,
        "client_id": pin.client_id,
        "received_at": pin.received_at.isoformat() if pin.received_at else None,
        "received_monotonic": pin.received_monotonic,
        "deleted_at": pin.deleted_at.isoformat() if pin.deleted_at else None,
    }


def _media(media: PinterestMedia) -> dict[str, Any]:
    names = ("id", "owner_id", "sandbox", "status", "mime_type", "size", "sha256", "uploads", "looks", "pinned_in")
    return {name: getattr(media, name) for name in names}
