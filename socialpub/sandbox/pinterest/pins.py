"""Pins: create, read, list and delete them. No key detects a repeated create: twice means two pins."""

import base64
import binascii
import hashlib
import html
import io
import unicodedata
from collections.abc import Iterator
from typing import Any

from PIL import Image

from socialpub.sandbox.media import dimensions, fetch_all, sniff
from socialpub.sandbox.messages import Reply, SandboxRequest
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.boards import readable_board, refuse_pinner_data
from socialpub.sandbox.pinterest.models import SECRET, SUCCEEDED, Pin, PinImage, PinKind, PinterestBoard, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.replies import paged, zoneless
from socialpub.sandbox.pinterest.requests import (
    PinterestCaller,
    PinterestSchemaRule,
    api_call,
    array_of,
    at_least_zero,
    base64_text,
    boolean,
    digits,
    json_object,
    link,
    object_of,
    one_of,
    require_valid,
    text,
)

# MERGED from sandbox/pinterest/pin_schema.py: The shape of `POST /pins`: one image, two to five, or one video with

DISCLOSURES = ("AI_MODIFIED", "SYNTHETIC_PERFORMER")
"""Since 5.28."""
content_type = one_of("image/jpeg", "image/png")
ITEM_TEXTS: dict[str, PinterestSchemaRule] = {"title": text(0, 100), "description": text(0, 800), "link": link}

SOURCES: dict[str, PinterestSchemaRule] = {
    "image_url": object_of(
        {"source_type": text(1, 40), "url": link, "is_standard": boolean}, required=("source_type", "url")
    ),
    "image_base64": object_of(
        {"source_type": text(1, 40), "content_type": content_type, "data": base64_text, "is_standard": boolean},
        required=("source_type", "content_type", "data"),
    ),
    "multiple_image_urls": object_of(
        {
            "source_type": text(1, 40),
            "items": array_of(object_of({"url": link, **ITEM_TEXTS}, required=("url",)), 2, 5),
            "index": at_least_zero,
        },
        required=("source_type", "items"),
    ),
    "multiple_image_base64": object_of(
        {
            "source_type": text(1, 40),
            "items": array_of(
                object_of(
                    {"content_type": content_type, "data": base64_text, **ITEM_TEXTS},
                    required=("content_type", "data"),
                ),
                2,
                5,
            ),
            "index": at_least_zero,
        },
        required=("source_type", "items"),
    ),
    "video_id": object_of(
        {
            "source_type": text(1, 40),
            "media_id": digits,
            "cover_image_url": link,
            "cover_image_content_type": content_type,
            "cover_image_data": base64_text,
            "cover_image_key_frame_time": at_least_zero,
            "is_standard": boolean,
        },
        required=("source_type", "media_id"),
    ),
}


def media_source(name: str, value: Any) -> Iterator[str]:
    kind = value.get("source_type") if isinstance(value, dict) else None
    rule = SOURCES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        yield f"'{name}.source_type' is not one of {list(SOURCES)}"
        return
    yield from rule(name, value)


CREATE = object_of(
    {
        "board_id": digits,
        "board_section_id": digits,
        "title": text(0, 100),
        "description": text(0, 800),
        "alt_text": text(0, 500),
        "link": link,
        "dominant_color": text(0, 30),
        "parent_pin_id": digits,
        "ai_disclosures": object_of({"values": array_of(one_of(*DISCLOSURES), 1, 2)}, required=("values",)),
        "media_source": media_source,
    },
    required=("board_id", "media_source"),
    nullable=("board_section_id", "title", "description", "alt_text", "link", "dominant_color", "parent_pin_id"),
)


def covers(source: dict[str, Any]) -> list[str]:
    """The covers that a video brings along; the two that make one count once."""
    ways: list[str] = [name for name in ("cover_image_url", "cover_image_key_frame_time") if name in source]
    if "cover_image_content_type" in source and "cover_image_data" in source:
        ways.append("cover_image_data")
    return ways


def urls(body: Any) -> list[str]:
    """What would have to be fetched for this pin."""
    source = body.get("media_source") if isinstance(body, dict) else None
    if not isinstance(source, dict):
        return []
    items = source.get("items") if source.get("source_type") == "multiple_image_urls" else None
    found = [item.get("url") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    if source.get("source_type") == "image_url":
        found.append(source.get("url"))
    elif source.get("source_type") == "video_id":
        found.append(source.get("cover_image_url"))
    return [url for url in found if isinstance(url, str) and url.startswith(("http://", "https://"))]


# MERGED from sandbox/pinterest/images.py: Images that a pin brings along: in the body or behind a URL.

BY_URL = ("image/jpeg", "image/png", "image/webp", "image/gif")


def from_base64(
    pinterest: PinterestSandbox, data: str, content_type: str, **texts: str | None
) -> tuple[PinImage, bytes]:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise replies.refused(pinterest, "image_broken") from None
    if sniff(decoded) != content_type:
        raise replies.refused(pinterest, "image_broken")
    return _image(pinterest, decoded, texts), decoded


def from_url(
    pinterest: PinterestSandbox, request: SandboxRequest, url: str, **texts: str | None
) -> tuple[PinImage, bytes]:
    data = request.fetched.get(url)
    if data is None:
        raise replies.refused(pinterest, "unreachable_url")
    if sniff(data) not in BY_URL:
        raise replies.refused(pinterest, "image_broken")
    return _image(pinterest, data, texts), data


def _image(pinterest: PinterestSandbox, data: bytes, texts: dict[str, Any]) -> PinImage:
    width, height = dimensions(data)
    if not width or not height or (pinterest.decodes_images and not _decodes(data)):
        raise replies.refused(pinterest, "image_broken")
    if min(width, height) < pinterest.smallest_side:
        raise replies.refused(pinterest, "image_too_small")
    digest = hashlib.sha256(data).hexdigest()
    return PinImage(pinterest.new_id(), sniff(data), len(data), digest, width, height, **texts)


def _decodes(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    return True


# MERGED from sandbox/pinterest/pin_json.py: A pin as Pinterest's API shows it.

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
        shown |= {"cover_image_url": _image_url(request, pin.pictures[0]), "images": _images(request, pin.pictures[0])}
    return shown


def _images(request: SandboxRequest, image: PinImage) -> dict[str, Any]:
    shown = {}
    for name, width in SIZES.items():
        height = {"150x150": 150, "400x300": 300}.get(name, round(width * image.height / image.width))
        shown[name] = {"width": width, "height": height, "url": _image_url(request, image)}
    shown["originals"] = {"width": image.width, "height": image.height, "url": _image_url(request, image)}
    return shown


def _image_url(request: SandboxRequest, image: PinImage) -> str:
    return f"{request.base_url}/pinterest/media/{image.id}"


# MERGED from sandbox/pinterest/pin_creation.py: `POST /pins`. There is no key against repeats: twice means two pin


async def fetch_first(pinterest: PinterestSandbox, request: SandboxRequest) -> None:
    """Images behind URLs are fetched while the call runs."""
    await fetch_all(request, urls(request.json_object()), pinterest.fetch)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def create_pin(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    if pinterest.tier == "trial" and not caller.sandbox:
        raise replies.refused(pinterest, "trial")
    body = json_object(pinterest, request)
    require_valid(pinterest, CREATE, body)
    source = body["media_source"]
    _refuse_covers(pinterest, caller, source)
    board = _board(pinterest, body, caller)
    video = _video(pinterest, source, caller) if source["source_type"] == "video_id" else None
    found = _pin_images(pinterest, request, source)
    if len({(image.width, image.height) for image, _ in found}) > 1:
        raise replies.invalid(pinterest, 400, 1, "Invalid request: all images of a carousel must have the same size.")
    kind: PinKind = "video" if video else "carousel" if "items" in source else "image"
    pin = Pin(
        pinterest.new_id(), caller.account.id, caller.account.username, board.id, body.get("board_section_id"),
        kind, body.get("title"), body.get("description"), body.get("alt_text"), body.get("link"),
        body.get("dominant_color"), tuple(image for image, _ in found), video.id if video else None,
        source.get("cover_image_key_frame_time"), pinterest.now(), caller.sandbox, caller.token.client_id,
        request.received_at, request.received_monotonic, None, (body.get("ai_disclosures") or {}).get("values", []),
        source={name: value for name, value in source.items() if name not in ("data", "items", "cover_image_data")},
    )  # fmt: skip
    pinterest.add_pin(pin, found)
    return replies.ok(pinterest, pinterest.create_status, pin_json(pinterest, request, pin, caller))


def _refuse_covers(pinterest: PinterestSandbox, caller: PinterestCaller, source: dict[str, Any]) -> None:
    if source["source_type"] != "video_id":
        return
    if caller.sandbox:
        raise replies.invalid(pinterest, 400, 1, "Invalid request: video Pins cannot be created in the sandbox.")
    ways = covers(source)
    if len(ways) > 1 or (pinterest.cover_needed and not ways):
        message = "Invalid request: give one of cover_image_url, cover_image_data with its content type, or"
        raise replies.invalid(pinterest, 400, 1, f"{message} cover_image_key_frame_time.")


def _board(pinterest: PinterestSandbox, body: dict[str, Any], caller: PinterestCaller) -> PinterestBoard:
    board = pinterest.boards.get(body["board_id"])
    if board is None or board.sandbox != caller.sandbox:
        raise replies.refused(pinterest, "board_not_found")
    secret = board.privacy == SECRET and not caller.may("boards:write_secret", "pins:write_secret")
    if not board.takes_pins_of(caller.account) or secret:
        raise replies.refused(pinterest, "not_permitted")
    section = body.get("board_section_id")
    if section is not None and section not in board.sections:
        raise replies.refused(pinterest, "section_not_found")
    return board


def _video(pinterest: PinterestSandbox, source: dict[str, Any], caller: PinterestCaller) -> PinterestMedia:
    media = pinterest.media.get(source["media_id"])
    if media is None or media.owner_id != caller.account.id or media.sandbox != caller.sandbox:
        raise replies.refused(pinterest, "media_not_found")
    if media.status != SUCCEEDED or (media.pinned_in and not pinterest.media_reuse_allowed):
        raise replies.invalid(pinterest, 400, 1, f"Invalid request: the media is {media.status}, it cannot be used.")
    return media


def _pin_images(
    pinterest: PinterestSandbox, request: SandboxRequest, source: dict[str, Any]
) -> list[tuple[PinImage, bytes]]:
    def texts(item: dict[str, Any]) -> dict[str, str | None]:
        return {name: item.get(name) for name in ("title", "description", "link")}

    match source["source_type"]:
        case "image_base64":
            return [from_base64(pinterest, source["data"], source["content_type"])]
        case "image_url":
            return [from_url(pinterest, request, source["url"])]
        case "multiple_image_base64":
            return [
                from_base64(pinterest, item["data"], item["content_type"], **texts(item)) for item in source["items"]
            ]
        case "multiple_image_urls":
            return [from_url(pinterest, request, item["url"], **texts(item)) for item in source["items"]]
        case _:
            if "cover_image_data" in source:
                kind = source["cover_image_content_type"]
                return [from_base64(pinterest, source["cover_image_data"], kind)]
            if "cover_image_url" in source:
                return [from_url(pinterest, request, source["cover_image_url"])]
            return []


# MERGED from sandbox/pinterest/pins.py: Reading pins back, one or in lists, and deleting them.


@api_call("org_read", "boards:read", "pins:read")
def read_pin(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    refuse_pinner_data(pinterest, caller)
    pin = _own(pinterest, request, caller)
    if pinterest.seconds_since(pin.created_at) < pinterest.read_lag_seconds:
        raise replies.refused(pinterest, "pin_not_found")
    return replies.ok(pinterest, 200, pin_json(pinterest, request, pin, caller))


@api_call("org_read", "boards:read", "pins:read")
def list_pins(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable_board(pinterest, request.path_params["board_id"], caller)
    pins = pinterest.pins_on(board)
    if not pinterest.sections_in_board_list:
        pins = [pin for pin in pins if pin.section_id is None]
    return _pin_list(pinterest, request, caller, pins)


@api_call("org_read", "boards:read", "pins:read")
def list_own_pins(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    refuse_pinner_data(pinterest, caller)
    mine = [pin for pin in pinterest.pins_of(caller.account) if pin.sandbox == caller.sandbox]
    return _pin_list(pinterest, request, caller, mine)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def delete_pin(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    pinterest.delete_pin(_own(pinterest, request, caller))
    return replies.empty(pinterest, 204)


def _pin_list(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller, pins: list[Pin]) -> Reply:
    """Newest first; pins that are too young do not show yet."""
    now, lag = pinterest.now(), pinterest.list_lag_seconds
    shown = [pin for pin in reversed(pins) if not lag or (now - pin.created_at).total_seconds() >= lag]
    return paged(pinterest, request, shown, lambda pin: pin_json(pinterest, request, pin, caller))


def _own(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Pin:
    pin = pinterest.find_pin(request.path_params["pin_id"])
    if pin is None or pin.sandbox != caller.sandbox:
        raise replies.refused(pinterest, "pin_not_found")
    if pin.account_id != caller.account.id:
        raise replies.refused(pinterest, "not_permitted")
    return pin
