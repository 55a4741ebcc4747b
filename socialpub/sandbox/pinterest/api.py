"""Pinterest's API: OAuth, the account, its boards and videos, the upload host, and pins.

No key detects a repeated create: twice means two pins.
"""

import base64
import binascii
import json
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from socialpub.sandbox.media import dimensions, sha256, sniff
from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import SandboxCall, api_call, open_call
from socialpub.sandbox.pinterest.network import (
    PUBLIC,
    REGISTERED,
    SECRET,
    SUCCEEDED,
    Pin,
    PinImage,
    PinterestAccount,
    PinterestBoard,
    PinterestMedia,
    PinterestNetwork,
    invalid,
    ok,
    zoneless,
)

T = TypeVar("T")

MAX_BYTES = 2 * 1024**3
TEXTS = ("title", "description", "alt_text", "link")
VIDEOS = ("video/mp4", "video/quicktime")


class PinterestSandbox(PinterestNetwork):
    oauth_paths = ("/oauth/", "/v5/oauth/token", "/v5/oauth/token/revoke")
    client_id_fields = ("client_id", "consumer_id")
    scopes: ClassVar = {
        "user_accounts:read": "See your account",
        "boards:read": "See your public boards",
        "boards:write": "Create and change your public boards",
        "boards:read_secret": "See your secret boards",
        "boards:write_secret": "Create and change your secret boards",
        "pins:read": "See your public Pins",
        "pins:write": "Create and change your public Pins",
        "pins:read_secret": "See your secret Pins",
        "pins:write_secret": "Create and change your secret Pins",
    }
    code_seconds = 600

    # --- OAuth ---------------------------------------------------------------------------------------------------

    def account_note(self, account: PinterestAccount) -> str:
        return account.account_type.lower()

    def oauth_refusal(self, reason: str, name: str = "") -> Refusal:
        if reason in ("client", "code", "redirect_uri", "refresh_token"):
            return self.refused("authentication_failed")
        missing = {"form": "request body", "grant_type": "or unknown grant_type in the request body"}
        return invalid(400, 1, f"Missing {missing.get(reason, f'{name} in the request body')}.")

    def token_facts(self, pair: Token, grant_type: str) -> dict[str, Any]:
        return {
            "access_token": pair.access,
            "response_type": grant_type,
            "token_type": "bearer",
            "expires_in": self.access_seconds,
            "scope": " ".join(pair.scopes),
            "refresh_token": pair.refresh,
            "refresh_token_expires_in": int(pair.refresh_expires_at - self.timestamp()),
            "refresh_token_expires_at": int(pair.refresh_expires_at),
        }

    def revoke(self, request: SandboxRequest) -> Reply:
        """Refuse ordinary users, as the real Pinterest does. Nothing is revoked."""
        self.client(request)
        raise self.refused("not_permitted")

    # --- the account and its boards ------------------------------------------------------------------------------

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        missing = [scope for scope in call.scopes or () if not request.may(scope)]
        if missing:
            raise invalid(403, 3, f"Your token is missing the required scopes: {', '.join(missing)}")

    @api_call("GET", "/v5/user_account", "user_accounts:read")
    def user_account(self, request: SandboxRequest) -> Reply:
        account: PinterestAccount = request.account
        boards = self.boards_of(account.username)
        facts = {
            "id": account.id,
            "username": account.username,
            "account_type": account.account_type,
            "business_name": account.business_name if account.is_business else None,
            "profile_image": f"{request.base_url}/pinterest/avatars/{account.picture or account.username}.png",
            "website_url": "",
            "about": "",
            "board_count": len(boards),
            "pin_count": sum(len(self.pins_on(board)) for board in boards),
            "follower_count": 0,
            "following_count": 0,
            "monthly_views": 0,
        }
        return ok(200, facts)

    @api_call("GET", "/v5/boards", "boards:read")
    def list_boards(self, request: SandboxRequest) -> Reply:
        may_read_secret = request.may("boards:read_secret")
        boards = [
            board
            for board in self.boards.values()
            if board.takes_pins_of(request.account) and (board.privacy != SECRET or may_read_secret)
        ]
        return paged(request, boards, self._board_json)

    @api_call("GET", "/v5/boards/{board_id}", "boards:read")
    def read_board(self, request: SandboxRequest) -> Reply:
        return ok(200, self._board_json(self._readable_board(request)))

    @api_call("POST", "/v5/boards", "boards:read", "boards:write")
    def create_board(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        privacy = body.get("privacy", PUBLIC)
        if privacy == SECRET and not request.may("boards:write_secret"):
            raise self.refused("missing_scope")
        if any(board.name.lower() == body["name"].lower() for board in self.boards_of(request.account.username)):
            raise invalid(400, 400, "Invalid board parameters: you already have a board with this name.")
        board = self.add_board(request.account, body["name"], privacy, description=body.get("description"))
        return ok(201, self._board_json(board))

    @api_call("GET", "/v5/boards/{board_id}/sections", "boards:read")
    def list_sections(self, request: SandboxRequest) -> Reply:
        sections = list(self._readable_board(request).sections.items())
        return paged(request, sections, lambda section: {"id": section[0], "name": section[1]})

    @api_call("POST", "/v5/boards/{board_id}/sections", "boards:read", "boards:write")
    def create_section(self, request: SandboxRequest) -> Reply:
        name, board = request.json_object()["name"], self._readable_board(request)
        if name in board.sections.values():
            raise invalid(409, 409, "Board section conflict: there is a section with this name.")
        return ok(201, {"id": self.add_section(board, name), "name": name})

    def _readable_board(self, request: SandboxRequest) -> PinterestBoard:
        """Return the board of the path if this caller may read it. Raise Refusal."""
        return self._board(request, request.path_params["board_id"], "boards:read_secret")

    def _board(self, request: SandboxRequest, board_id: str, *scopes: str) -> PinterestBoard:
        """Return a board of the caller. A secret board needs these scopes. Raise Refusal."""
        board = self.boards.get(board_id)
        if board is None:
            raise self.refused("board_not_found")
        if not board.takes_pins_of(request.account) or (board.privacy == SECRET and not request.may(*scopes)):
            raise self.refused("not_permitted")
        return board

    def _board_json(self, board: PinterestBoard) -> dict[str, Any]:
        return {
            "id": board.id,
            "name": board.name,
            "description": board.description,
            "owner": {"username": self.accounts[board.owner_id].username},
            "privacy": board.privacy,
            "created_at": zoneless(board.created_at),
            "board_pins_modified_at": zoneless(board.modified_at or board.created_at),
            "pin_count": len(self.pins_on(board)),
            "follower_count": 0,
            "collaborator_count": len(board.collaborators),
            "is_ads_only": board.is_ads_only,
            "media": {"image_cover_url": None, "pin_thumbnail_urls": []},
        }

    # --- videos --------------------------------------------------------------------------------------------------

    @api_call("POST", "/v5/media", "pins:read", "pins:write")
    def register_media(self, request: SandboxRequest) -> Reply:
        now, media_id = self.now(), self.new_id()
        key = f"uploads/{media_id[-6:-4]}/{media_id[-4:-2]}/{media_id[-2:]}/3:video:{request.account.id}:{media_id}"
        date = now.strftime("%Y%m%dT%H%M%SZ")
        expires = now + timedelta(seconds=self.policy_seconds)
        conditions = [{"key": key}, ["content-length-range", 1, MAX_BYTES]]
        policy = json.dumps({"expiration": expires.isoformat(), "conditions": conditions})
        form = {
            "x-amz-date": date,
            "x-amz-signature": secrets.token_hex(32),
            "x-amz-security-token": secrets.token_urlsafe(60),
            "x-amz-algorithm": "AWS4-HMAC-SHA256",
            "key": key,
            "policy": base64.b64encode(policy.encode()).decode(),
            "x-amz-credential": f"ASIASANDBOX/{date[:8]}/us-east-1/s3/aws4_request",
            "Content-Type": "multipart/form-data",
        }
        self.media.save(PinterestMedia(media_id, request.account.id, form, expires.timestamp()))
        url = f"{request.base_url}/pinterest/upload/"
        facts = {"media_id": media_id, "media_type": "video", "upload_url": url, "upload_parameters": form}
        return ok(201, facts)

    @api_call("GET", "/v5/media/{media_id}", "pins:read")
    def media_status(self, request: SandboxRequest) -> Reply:
        media = self._own_media(request, request.path_params["media_id"])
        self.process(media)
        return ok(200, {"media_id": media.id, "media_type": "video", "status": media.status})

    def _own_media(self, request: SandboxRequest, media_id: str) -> PinterestMedia:
        media = self.media.get(media_id)
        if media is None or media.owner_id != request.account.id:
            raise self.refused("media_not_found")
        return media

    @open_call("POST", "/upload/")
    def upload_media(self, request: SandboxRequest) -> Reply:
        """Accept the form of a registration. It is the credential."""
        parts = {part.name: part for part in request.parts or ()}
        media = self.media_by_key.get(parts["key"].text) if "key" in parts else None
        if media is None or self.timestamp() >= media.form_expires_at:
            raise upload_refusal(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
        self._accept(media, parts["file"].data)
        return Reply(204)

    def _accept(self, media: PinterestMedia, data: bytes) -> None:
        media.uploads += 1
        if media.status == SUCCEEDED:
            return
        media.mime_type, media.size, media.sha256 = sniff(data), len(data), sha256(data)
        media.status, media.polls, media.fate = REGISTERED, 0, self.fate(media, data)
        if self.processing_ticks == 0:
            self.process(media)
        self.cache.put(media.id, data)
        self.media.save(media)

    def fate(self, media: PinterestMedia, data: bytes) -> str:  # noqa: ARG002  # for stand-ins
        """Return what happens to an uploaded video: `succeeds`, `fails`, `never_ends`."""
        return "succeeds" if media.mime_type in VIDEOS else "fails"

    # --- pins ----------------------------------------------------------------------------------------------------

    @api_call("POST", "/v5/pins", "boards:read", "boards:write", "pins:read", "pins:write")
    def create_pin(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        source, section = body["media_source"], body.get("board_section_id")
        board = self._board(request, body["board_id"], "boards:write_secret", "pins:write_secret")
        if section is not None and section not in board.sections:
            raise self.refused("section_not_found")
        video = self._usable_video(request, source["media_id"]) if "media_id" in source else None
        images = self._images_in(source)
        self.check_images([image for image, _ in images])
        for image, data in images:
            self.cache.put(image.id, data)
        pin = Pin(
            id=self.new_id(),
            account_id=request.account.id,
            username=request.account.username,
            board_id=board.id,
            section_id=section,
            kind="video" if video else "carousel" if "items" in source else "image",
            **{name: body.get(name) for name in (*TEXTS, "dominant_color")},
            pictures=tuple(image for image, _ in images),
            video_id=video.id if video else None,
            key_frame_seconds=source.get("cover_image_key_frame_time"),
            created_at=self.now(),
            client_id=request.token.client_id if request.token else None,
            ai_disclosures=(body.get("ai_disclosures") or {}).get("values", []),
        )
        return ok(201, self._pin_json(request, self.pin_table.save(pin)))

    def _usable_video(self, request: SandboxRequest, media_id: str) -> PinterestMedia:
        media = self._own_media(request, media_id)
        if not self.may_use(media):
            raise invalid(400, 1, f"Invalid request: the media is {media.status}, it cannot be used.")
        return media

    def check_images(self, images: list[PinImage]) -> None:  # for stand-ins
        """Raise Refusal for images that Pinterest does not take."""

    def may_use(self, media: PinterestMedia) -> bool:
        return media.status == SUCCEEDED

    def _images_in(self, source: dict[str, Any]) -> list[tuple[PinImage, bytes]]:
        """Return the image, the images of a carousel, or the cover of a video, with their bytes."""
        if "media_id" not in source:
            return [
                self._image(item["data"], item["content_type"], item.get("title"), item.get("description"),
                            item.get("link"))
                for item in source.get("items", [source])
            ]  # fmt: skip
        if "cover_image_data" in source:
            return [self._image(source["cover_image_data"], source.get("cover_image_content_type"))]
        return []

    def _image(self, encoded: str, content_type: str | None, *texts: str | None) -> tuple[PinImage, bytes]:
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        width, height = dimensions(data, whole=True) if sniff(data) == content_type else (0, 0)
        if not width:
            raise self.refused("image_broken")
        return PinImage(self.new_id(), sniff(data), len(data), sha256(data), width, height, *texts), data

    @api_call("GET", "/v5/boards/{board_id}/pins", "boards:read", "pins:read")
    def list_pins(self, request: SandboxRequest) -> Reply:
        """Return the pins of a board and its sections, newest first."""
        pins = reversed(self.pins_on(self._readable_board(request)))
        listed = [pin for pin in pins if self.seconds_since(pin.created_at) >= self.list_lag_seconds]
        return paged(request, listed, lambda pin: self._pin_json(request, pin))

    def _pin_json(self, request: SandboxRequest, pin: Pin) -> dict[str, Any]:
        owner = self.accounts[self.boards[pin.board_id].owner_id]
        return {
            "id": pin.id,
            "created_at": zoneless(pin.created_at),
            **{name: getattr(pin, name) or None for name in TEXTS},
            "dominant_color": pin.dominant_color or "#6e7874",
            "board_id": pin.board_id,
            "board_section_id": pin.section_id,
            "board_owner": {"username": owner.username},
            "parent_pin_id": None,
            "creative_type": {"image": "REGULAR", "carousel": "CAROUSEL", "video": "VIDEO"}[pin.kind],
            "is_owner": pin.account_id == request.account.id,
            "is_standard": True,
            "has_been_promoted": False,
            "pin_metrics": None,
            "media": _media_json(f"{request.base_url}/pinterest/media/", pin),
            **({"ai_disclosures": {"values": pin.ai_disclosures}} if pin.ai_disclosures else {}),
        }


# --- bodies and responses --------------------------------------------------------------------------------------------


def upload_refusal(status: int, code: str, message: str) -> Refusal:
    """Return a refusal of the upload host."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Refusal(Reply(status, body.encode(), "application/xml"))


def paged(request: SandboxRequest, entries: Sequence[T], show: Callable[[T], Any]) -> Reply:
    query = request.query()
    begin = int(query.get("bookmark") or 0)
    end = begin + int(query.get("page_size", 25))
    bookmark = str(end) if end < len(entries) else None
    return ok(200, {"items": [show(entry) for entry in entries[begin:end]], "bookmark": bookmark})


def _media_json(base: str, pin: Pin) -> dict[str, Any]:
    images = [
        {"originals": {"width": image.width, "height": image.height, "url": base + image.id}} for image in pin.pictures
    ]
    if pin.kind == "carousel":
        items = [
            {"item_type": "image", "title": image.title, "description": image.description, "link": image.link,
             "images": image_json}
            for image, image_json in zip(pin.pictures, images, strict=True)
        ]  # fmt: skip
        return {"media_type": "multiple_images", "items": items}
    if pin.kind == "image":
        return {"media_type": "image", "images": images[0]}
    media = dict.fromkeys(("duration", "width", "height", "video_url")) | {"media_type": "video"}
    if images:
        media |= {"cover_image_url": base + pin.pictures[0].id, "images": images[0]}
    return media
