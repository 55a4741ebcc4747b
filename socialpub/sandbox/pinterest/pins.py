"""Pinterest's API of pins: create one, list those of a board.

No key detects a repeated create: twice means two pins.
"""

import base64
import binascii
import hashlib
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.media import dimensions, sniff
from socialpub.sandbox.messages import Reply, SandboxRequest
from socialpub.sandbox.network import api_call
from socialpub.sandbox.pinterest.api import PinterestCaller, json_body, readable_board
from socialpub.sandbox.pinterest.network import (
    SECRET,
    Pin,
    PinImage,
    PinKind,
    PinterestBoard,
    PinterestMedia,
    PinterestSandbox,
    invalid,
    ok,
    paged,
    refused,
    zoneless,
)

SMALLEST_SIDE = 100
"""Pixels."""
TEXTS = ("title", "description", "alt_text", "link")


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def create_pin(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = json_body(request)
    source = body["media_source"]
    kind: PinKind = "video" if "media_id" in source else "carousel" if "items" in source else "image"
    board = _board(pinterest, body, caller)
    video = _video(pinterest, source, caller) if kind == "video" else None
    images = _images_in(pinterest, source)
    if len({(image.width, image.height) for image, _ in images}) > 1:
        raise invalid(400, 1, "Invalid request: all images of a carousel must have the same size.")
    pin = Pin(
        pinterest.new_id(), caller.account.id, caller.account.username, board.id, body.get("board_section_id"),
        kind, body.get("title"), body.get("description"), body.get("alt_text"), body.get("link"),
        body.get("dominant_color"), tuple(image for image, _ in images), video.id if video else None,
        source.get("cover_image_key_frame_time"), pinterest.now(), caller.token.client_id,
        (body.get("ai_disclosures") or {}).get("values", []),
    )  # fmt: skip
    pinterest.add_pin(pin, images)
    return ok(201, pin_json(pinterest, request, pin, caller))


def _board(pinterest: PinterestSandbox, body: dict[str, Any], caller: PinterestCaller) -> PinterestBoard:
    board = pinterest.boards.get(body["board_id"])
    if board is None:
        raise refused("board_not_found")
    secret = board.privacy == SECRET and not caller.may("boards:write_secret", "pins:write_secret")
    if not board.takes_pins_of(caller.account) or secret:
        raise refused("not_permitted")
    section = body.get("board_section_id")
    if section is not None and section not in board.sections:
        raise refused("section_not_found")
    return board


def _video(pinterest: PinterestSandbox, source: dict[str, Any], caller: PinterestCaller) -> PinterestMedia:
    media = pinterest.media.get(source["media_id"])
    if media is None or media.owner_id != caller.account.id:
        raise refused("media_not_found")
    if not pinterest.may_use(media):
        raise invalid(400, 1, f"Invalid request: the media is {media.status}, it cannot be used.")
    return media


def _images_in(pinterest: PinterestSandbox, source: dict[str, Any]) -> list[tuple[PinImage, bytes]]:
    """Return the image, the images of a carousel, or the cover of a video, with their bytes."""
    if "media_id" in source:
        if "cover_image_data" not in source:
            return []
        return [_image(pinterest, source["cover_image_data"], source.get("cover_image_content_type"))]
    return [
        _image(
            pinterest,
            item["data"],
            item["content_type"],
            **{name: item.get(name) for name in ("title", "description", "link")},
        )
        for item in source.get("items", [source])
    ]


def _image(
    pinterest: PinterestSandbox, encoded: str, content_type: str | None, **texts: str | None
) -> tuple[PinImage, bytes]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    width, height = dimensions(data, whole=True) if sniff(data) == content_type else (0, 0)
    if not width:
        raise refused("image_broken")
    if min(width, height) < SMALLEST_SIDE:
        raise refused("image_too_small")
    digest = hashlib.sha256(data).hexdigest()
    return PinImage(pinterest.new_id(), sniff(data), len(data), digest, width, height, **texts), data


# --- list ------------------------------------------------------------------------------------------------------------


@api_call("org_read", "boards:read", "pins:read")
def list_pins(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    """Return the pins of a board and its sections, newest first."""
    pins = pinterest.pins_on(readable_board(pinterest, request, caller))
    lag = pinterest.list_lag_seconds
    shown = [pin for pin in reversed(pins) if pinterest.seconds_since(pin.created_at) >= lag]
    return paged(request, shown, lambda pin: pin_json(pinterest, request, pin, caller))


def pin_json(pinterest: PinterestSandbox, request: SandboxRequest, pin: Pin, caller: PinterestCaller) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    creative = {"image": "REGULAR", "carousel": "CAROUSEL", "video": "VIDEO"}[pin.kind]
    return {
        "id": pin.id,
        "created_at": zoneless(pin.created_at),
        **{name: getattr(pin, name) or None for name in TEXTS},
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
        shown |= {"cover_image_url": _image_url(request, pin.pictures[0]), "images": _images(request, pin.pictures[0])}
    return shown


def _images(request: SandboxRequest, image: PinImage) -> dict[str, Any]:
    return {"originals": {"width": image.width, "height": image.height, "url": _image_url(request, image)}}


def _image_url(request: SandboxRequest, image: PinImage) -> str:
    return f"{request.base_url}/pinterest/media/{image.id}"


CALLS = (
    SandboxCall("GET", "/v5/boards/{board_id}/pins", "list_pins", list_pins),
    SandboxCall("POST", "/v5/pins", "create_pin", create_pin),
)
