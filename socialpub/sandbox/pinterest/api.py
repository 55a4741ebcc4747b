"""Pinterest's API: the account, its boards and videos, the upload host, and pins.

No key detects a repeated create: twice means two pins.
"""

import base64
import binascii
import hashlib
import json
import secrets
from datetime import timedelta
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.media import dimensions, sniff
from socialpub.sandbox.messages import Reply, SandboxRequest, StreamedBody
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.pinterest.network import (
    FAILED,
    MAX_BYTES,
    PROCESSING,
    PUBLIC,
    REGISTERED,
    SECRET,
    SUCCEEDED,
    Pin,
    PinImage,
    PinKind,
    PinterestAccount,
    PinterestBoard,
    PinterestMedia,
    PinterestSandbox,
    invalid,
    ok,
    paged,
    refused,
    zoneless,
)

PinterestCaller = ApiCaller[PinterestAccount]


def json_body(request: SandboxRequest) -> dict[str, Any]:
    body = request.json_object()
    if body is None:
        raise invalid(400, 1, "Invalid request: the body is not a JSON object.")
    return body


# --- the account and its boards --------------------------------------------------------------------------------------


@api_call("org_read", "user_accounts:read")
def user_account(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    account = caller.account
    boards = pinterest.boards_of(account.username)
    facts = {
        "id": account.id,
        "username": account.username,
        "account_type": account.account_type,
        "business_name": account.business_name if account.is_business else None,
        "profile_image": f"{request.base_url}/pinterest/avatars/{account.picture or account.username}.png",
        "website_url": "",
        "about": "",
        "board_count": len(boards),
        "pin_count": sum(len(pinterest.pins_on(board)) for board in boards),
        "follower_count": 0,
        "following_count": 0,
        "monthly_views": 0,
    }
    return ok(200, facts)


@api_call("org_read", "boards:read")
def list_boards(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    boards = [
        board
        for board in pinterest.boards.values()
        if board.takes_pins_of(caller.account) and (board.privacy != SECRET or caller.may("boards:read_secret"))
    ]
    return paged(request, boards, lambda board: _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def read_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    return ok(200, _board_json(pinterest, readable_board(pinterest, request, caller)))


@api_call("org_write", "boards:read", "boards:write")
def create_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = json_body(request)
    privacy = body.get("privacy", PUBLIC)
    if privacy == SECRET and not caller.may("boards:write_secret"):
        raise refused("missing_scope")
    if any(board.name.lower() == body["name"].lower() for board in pinterest.boards_of(caller.account.username)):
        raise invalid(400, 400, "Invalid board parameters: you already have a board with this name.")
    board = pinterest.add_board(caller.account, body["name"], privacy=privacy, description=body.get("description"))
    return ok(201, _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def list_sections(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable_board(pinterest, request, caller)
    return paged(request, list(board.sections.items()), lambda section: {"id": section[0], "name": section[1]})


@api_call("org_write", "boards:read", "boards:write")
def create_section(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    name = json_body(request)["name"]
    board = readable_board(pinterest, request, caller)
    if name in board.sections.values():
        raise invalid(409, 409, "Board section conflict: there is a section with this name.")
    return ok(201, {"id": pinterest.add_section(board, name), "name": name})


def readable_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> PinterestBoard:
    """Return the board of the path if this caller may read it. Raise Refusal."""
    board = pinterest.boards.get(request.path_params["board_id"])
    if board is None:
        raise refused("board_not_found")
    if not board.takes_pins_of(caller.account) or (board.privacy == SECRET and not caller.may("boards:read_secret")):
        raise refused("not_permitted")
    return board


def _board_json(pinterest: PinterestSandbox, board: PinterestBoard) -> dict[str, Any]:
    return {
        "id": board.id,
        "name": board.name,
        "description": board.description,
        "owner": {"username": pinterest.accounts[board.owner_id].username},
        "privacy": board.privacy,
        "created_at": zoneless(board.created_at),
        "board_pins_modified_at": zoneless(board.modified_at or board.created_at),
        "pin_count": len(pinterest.pins_on(board)),
        "follower_count": 0,
        "collaborator_count": len(board.collaborators),
        "is_ads_only": board.is_ads_only,
        "media": {"image_cover_url": None, "pin_thumbnail_urls": []},
    }


# --- videos ----------------------------------------------------------------------------------------------------------


@api_call("org_write", "pins:read", "pins:write")
def register_media(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    json_body(request)
    now = pinterest.now()
    media_id = pinterest.new_id()
    key = f"uploads/{media_id[-6:-4]}/{media_id[-4:-2]}/{media_id[-2:]}/3:video:{caller.account.id}:{media_id}"
    date = now.strftime("%Y%m%dT%H%M%SZ")
    credential = f"ASIASANDBOX/{date[:8]}/us-east-1/s3/aws4_request"
    expires = now + timedelta(seconds=pinterest.policy_seconds)
    policy = {"expiration": expires.isoformat(), "conditions": [{"key": key}, ["content-length-range", 1, MAX_BYTES]]}
    form = {
        "x-amz-date": date,
        "x-amz-signature": secrets.token_hex(32),
        "x-amz-security-token": secrets.token_urlsafe(60),
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "key": key,
        "policy": base64.b64encode(json.dumps(policy).encode()).decode(),
        "x-amz-credential": credential,
        "Content-Type": "multipart/form-data",
    }
    pinterest.media.save(PinterestMedia(media_id, caller.account.id, form, expires.timestamp()))
    url = f"{request.base_url}/pinterest/upload/"
    facts = {"media_id": media_id, "media_type": "video", "upload_url": url, "upload_parameters": form}
    return ok(201, facts)


@api_call("org_read", "pins:read")
def media_status(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    media = pinterest.media.get(request.path_params["media_id"])
    if media is None or media.owner_id != caller.account.id:
        raise refused("media_not_found")
    if media.fate and media.status not in (SUCCEEDED, FAILED):
        media.polls += 1
        if media.polls <= pinterest.processing_ticks or media.fate == "never_ends":
            media.status = PROCESSING
        else:
            media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    return ok(200, {"media_id": media.id, "media_type": "video", "status": media.status})


# --- the upload host -------------------------------------------------------------------------------------------------


def upload_media(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
    """Accept the form of a registration. It is the credential."""
    parts = request.form_parts or []
    fields = {part.name: part.text for part in parts if part.name != "file"}
    media = pinterest.media_by_key.get(fields.get("key", ""))
    if refusal := pinterest.upload_refusal(request, media, fields):
        return _xml(*refusal)
    assert media is not None
    file = parts[-1].body
    _accept(pinterest, media, file)
    return Reply(204)


def _accept(pinterest: PinterestSandbox, media: PinterestMedia, file: StreamedBody) -> None:
    media.uploads += 1
    if media.status == SUCCEEDED:
        return
    media.mime_type, media.size, media.sha256 = sniff(file.head), file.size, file.sha256
    media.status, media.polls = REGISTERED, 0
    media.fate = pinterest.fate(media, file.data)
    if pinterest.processing_ticks == 0 and media.fate != "never_ends":
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    if (data := file.data) is not None:
        pinterest.cache.put(media.id, data)
    pinterest.media.save(media)


def _xml(status: int, code: str, message: str) -> Reply:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Reply(status, body.encode(), "application/xml")


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
    listed = [pin for pin in reversed(pins) if pinterest.seconds_since(pin.created_at) >= lag]
    return paged(request, listed, lambda pin: pin_json(pinterest, request, pin, caller))


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
            {"item_type": "image", "title": image.title, "description": image.description, "link": image.link,
             "images": _images(request, image)}
            for image in pin.pictures
        ]  # fmt: skip
        return {"media_type": "multiple_images", "items": items}
    if pin.kind == "image":
        return {"media_type": "image", "images": _images(request, pin.pictures[0])}
    media: dict[str, Any] = {
        "media_type": "video", "duration": None, "width": None, "height": None, "video_url": None,
    }  # fmt: skip
    if pin.pictures:
        media |= {"cover_image_url": _image_url(request, pin.pictures[0]), "images": _images(request, pin.pictures[0])}
    return media


def _images(request: SandboxRequest, image: PinImage) -> dict[str, Any]:
    return {"originals": {"width": image.width, "height": image.height, "url": _image_url(request, image)}}


def _image_url(request: SandboxRequest, image: PinImage) -> str:
    return f"{request.base_url}/pinterest/media/{image.id}"


CALLS = (
    SandboxCall("GET", "/v5/user_account", "user_account", user_account),
    SandboxCall("GET", "/v5/boards", "list_boards", list_boards),
    SandboxCall("POST", "/v5/boards", "create_board", create_board),
    SandboxCall("GET", "/v5/boards/{board_id}", "read_board", read_board),
    SandboxCall("GET", "/v5/boards/{board_id}/sections", "list_sections", list_sections),
    SandboxCall("POST", "/v5/boards/{board_id}/sections", "create_section", create_section),
    SandboxCall("POST", "/v5/media", "register_media", register_media),
    SandboxCall("GET", "/v5/media/{media_id}", "media_status", media_status),
    SandboxCall("POST", "/upload/", "upload_media", upload_media),
    SandboxCall("GET", "/v5/boards/{board_id}/pins", "list_pins", list_pins),
    SandboxCall("POST", "/v5/pins", "create_pin", create_pin),
)
