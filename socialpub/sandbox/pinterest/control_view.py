"""What the control API shows of Pinterest."""

from dataclasses import asdict
from typing import Any

from socialpub.sandbox.json_facts import json_facts
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox

BOARD = ("id", "name", "owner_id", "privacy", "sandbox", "sections")
PIN = (
    "id", "account_id", "username", "board_id", "section_id", "kind", "title", "description", "alt_text", "link",
    "dominant_color", "ai_disclosures", "pictures", "key_frame_seconds", "created_at", "sandbox", "client_id",
    "received_at", "received_monotonic", "deleted_at",
)  # fmt: skip
MEDIA = ("id", "owner_id", "sandbox", "status", "mime_type", "size", "sha256", "uploads", "looks", "pinned_in")


def pinterest_view(pinterest: PinterestSandbox) -> dict[str, Any]:
    return {
        "accounts": [asdict(account) for account in pinterest.accounts.values()],
        "boards": [json_facts(board, BOARD) for board in pinterest.boards.values()],
        "pins": [_pin(pinterest, pin) for pin in pinterest.pins],
        "media": [json_facts(media, MEDIA) for media in pinterest.media.values()],
        "categories": dict(pinterest.category_counts),
    }


def _pin(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    video = pinterest.media.get(pin.film_id or "")
    return json_facts(pin, PIN) | {"film": json_facts(video, MEDIA) if video else None}
