"""A pin as Pinterest's API shows it."""

import html
import unicodedata
from typing import Any

from socialpub.sandbox.pinterest.access import PinterestCaller
from socialpub.sandbox.pinterest.models import Pin, PinImage
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.replies import zoneless
from socialpub.sandbox.request import SandboxRequest

SIZES = {"150x150": 150, "400x300": 400, "600x": 600, "1200x": 1200}
TEXTS = ("title", "description", "alt_text", "link")


def pin_json(pinterest: PinterestSandbox, request: SandboxRequest, pin: Pin, caller: PinterestCaller) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    creative = {"image": "REGULAR", "carousel": "CAROUSEL", "video": "VIDEO"}[pin.kind]
    return {
        "id": pin.id,
        "created_at": zoneless(pin.created_at) if pinterest.dates_pins else None,
        **{name: _shown_text(pinterest, name, getattr(pin, name)) for name in TEXTS},
        "dominant_color": pin.dominant_color or "#6e7874",
        "board_id": pin.board_id,
        "board_section_id": pin.section_id,
        "board_owner": {"username": pinterest.accounts[board.owner_id].username},
        "parent_pin_id": None,
        "creative_type": creative,
        "is_owner": pin.account_id == caller.account.id,
        "is_standard": True,
        "has_been_promoted": False,
        "pin_metrics": None,
        "media": _media(request, pin),
        **({"ai_disclosures": {"values": pin.ai_disclosures}} if pin.ai_disclosures else {}),
    }


def _shown_text(pinterest: PinterestSandbox, name: str, value: str | None) -> str | None:
    """What was not given is null."""
    if not value or name in pinterest.null_texts:
        return None
    if pinterest.trims_texts:
        value = value.replace("\r\n", "\n").strip()
    if pinterest.composes_texts:
        value = unicodedata.normalize("NFC", value)
    if pinterest.cuts_texts_after:
        value = value[: pinterest.cuts_texts_after]
    return html.escape(value, quote=False) if pinterest.escapes_html else value


def _media(request: SandboxRequest, pin: Pin) -> dict[str, Any]:
    if pin.kind == "carousel":
        items = [
            {"item_type": "image", "title": one.title, "description": one.description, "link": one.link,
             "images": _images(request, one)}
            for one in pin.pictures
        ]  # fmt: skip
        return {"media_type": "multiple_images", "items": items}
    if pin.kind == "image":
        return {"media_type": "image", "images": _images(request, pin.pictures[0])}
    shown: dict[str, Any] = {
        "media_type": "video", "duration": None, "width": None, "height": None, "video_url": None,
    }  # fmt: skip
    if pin.pictures:
        shown |= {"cover_image_url": _url(request, pin.pictures[0]), "images": _images(request, pin.pictures[0])}
    return shown


def _images(request: SandboxRequest, image: PinImage) -> dict[str, Any]:
    shown = {}
    for name, width in SIZES.items():
        height = {"150x150": 150, "400x300": 300}.get(name, round(width * image.height / image.width))
        shown[name] = {"width": width, "height": height, "url": _url(request, image)}
    shown["originals"] = {"width": image.width, "height": image.height, "url": _url(request, image)}
    return shown


def _url(request: SandboxRequest, image: PinImage) -> str:
    return f"{request.base_url}/pinterest/media/{image.id}"
