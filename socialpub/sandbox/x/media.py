"""X's upload endpoints: an image in one call, GIFs and videos in segments, their status, and alt text."""

import base64
import re
from typing import Annotated, Any, Literal

from annotated_types import Le
from pydantic import Field, StringConstraints

from socialpub.sandbox.messages import BodyPart, Digits, Refusal, Reply, SandboxRequest, SandboxShape, json_reply
from socialpub.sandbox.network import api_call
from socialpub.sandbox.x.api import XCaller, checked_query, json_object, require_valid
from socialpub.sandbox.x.models import IMAGE, MAX_BYTES, VIDEO, XMedia
from socialpub.sandbox.x.network import XSandbox, forbidden, invalid

SEGMENT = re.compile(r"[0-9]{1,6}")
MAX_SEGMENT_BYTES = 5 * 1024 * 1024
NOT_FOUND = "BadRequest: Not found"


class NewUpload(SandboxShape):
    media_category: Literal["tweet_image", "tweet_gif", "tweet_video"]
    media_type: Literal[
        "video/mp4", "video/webm", "video/mp2t", "video/quicktime", "image/jpeg", "image/gif", "image/bmp", "image/png",
        "image/webp", "image/pjpeg", "image/tiff",
    ]  # fmt: skip
    total_bytes: Annotated[int, Field(ge=0), Le(MAX_BYTES[VIDEO])]


class AltText(SandboxShape):
    text: Annotated[str, StringConstraints(max_length=1000)]


class MediaFacts(SandboxShape, extra="ignore"):
    alt_text: AltText = Field(default_factory=AltText.model_construct)


class MediaMetadata(SandboxShape):
    id: Digits
    metadata: MediaFacts


@api_call("POST /2/media/upload", "media.write")
def one_shot(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    part, category = _file_and_field(x, request, "media_category")
    if category != IMAGE:
        raise invalid(x, f"media_category must be one of ['{IMAGE}']", media_category=category)
    _refuse_size(x, category, part.body.size)
    media = x.media.begin(category, part.content_type or "", part.body.size, caller.account.id)
    x.media.append(media, 0, part.data)
    x.media.finalize(media)
    if media.state == "failed":
        raise invalid(x, "media type unrecognized.", media=part.name)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/upload/initialize", "media.write")
def initialize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    require_valid(x, NewUpload, body)
    _refuse_size(x, body["media_category"], body["total_bytes"])
    media = x.media.begin(body["media_category"], body["media_type"], body["total_bytes"], caller.account.id)
    left = x.media.seconds_left(media)
    return json_reply(200, {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": left}})


@api_call("POST /2/media/upload/:id/append", "media.write")
def append(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    media = _own(x, request.path_params["id"], caller)
    part, index = _file_and_field(x, request, "segment_index")
    written = str(index)
    if not SEGMENT.fullmatch(written) or int(written) > 999:
        raise invalid(x, "SegmentIndex must be between 0 and 999.", segment_index=written)
    if part.body.size > MAX_SEGMENT_BYTES:
        raise Refusal(Reply(413))
    if media.finalized:
        raise invalid(x, "The upload is already finalized.", id=media.id)
    x.media.append(media, int(written), part.data)
    if x.append_answers == 204:
        return Reply(204)
    return json_reply(200, {"data": {"expires_at": int(media.expires_at)}})


@api_call("POST /2/media/upload/:id/finalize", "media.write")
def finalize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    json_object(x, request)
    media = _own(x, request.path_params["id"], caller)
    if not media.finalized:
        if sorted(media.segments) != list(range(len(media.segments))):
            raise invalid(x, "Segments are missing.", segments=sorted(media.segments))
        received = sum(media.segments.values())
        if received != media.declared_bytes:
            raise invalid(x, "Segments do not add up to provided total file size.", total_bytes=received)
        x.media.finalize(media)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("GET /2/media/upload", "media.write")
def status(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, "media_id", "command")
    if query.get("command", "STATUS") != "STATUS":
        raise invalid(x, "command must be STATUS", command=query["command"])
    media = _own(x, query.get("media_id", ""), caller)
    if not media.finalized:
        raise invalid(x, NOT_FOUND, media_id=media.id)
    x.media.poll(media)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/metadata", "media.write")
def metadata(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    if "id" not in body or not isinstance(body.get("metadata"), dict):
        # The real X sends this response to requests in the shape of its previous version.
        return json_reply(500, {"errors": ["internal server error"]})
    require_valid(x, MediaMetadata, body)
    media = _own(x, body["id"], caller)
    associated: dict[str, Any] = {}
    if "alt_text" in body["metadata"]:
        media.alt_text = body["metadata"]["alt_text"]["text"]
        associated["alt_text"] = {"text": media.alt_text}
    return json_reply(200, {"data": {"id": media.id, "associated_metadata": associated}})


def _own(x: XSandbox, media_id: str, caller: XCaller) -> XMedia:
    media = x.media.alive(media_id)
    if media is None:
        raise invalid(x, NOT_FOUND, media_id=media_id)
    if caller.account.id != media.owner_id:
        raise forbidden("You are not allowed to use this media.")
    return media


def _media_json(x: XSandbox, media: XMedia) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": media.id,
        "media_key": media.key,
        "size": media.size,
        "expires_after_secs": x.media.seconds_left(media),
    }
    if media.category != IMAGE:
        shown["video"] = {"video_type": media.mime_type or "video/mp4"}
    elif media.width:
        shown["image"] = {"w": media.width, "h": media.height, "image_type": media.mime_type or "image/jpeg"}
    if media.state:
        info: dict[str, Any] = {"state": media.state}
        if media.state in ("pending", "in_progress"):
            info["check_after_secs"] = x.check_after_seconds
        if media.state == "in_progress":
            info["progress_percent"] = min(99, 100 * media.polls // max(1, x.processing_ticks))
        if media.state == "succeeded":
            info["progress_percent"] = 100
        if media.state == "failed" and x.dialect == "old":
            info["error"] = {"code": 1, "name": "InvalidMedia", "message": "Unsupported video format"}
        shown["processing_info"] = info
    return shown


def _refuse_size(x: XSandbox, category: str, size: int) -> None:
    if not 0 < size <= MAX_BYTES[category]:
        message = f"The size of the media is not between 1 and {MAX_BYTES[category]} bytes."
        raise invalid(x, message, total_bytes=size)


def _file_and_field(x: XSandbox, request: SandboxRequest, name: str) -> tuple[BodyPart, Any]:
    """Return the file `media` and the one field beside it, of a multipart or JSON body. Raise Refusal."""
    if request.content_type == "application/json":
        fields = json_object(x, request)
        try:
            data = base64.b64decode(fields.get("media", ""), validate=True)
        except (TypeError, ValueError):
            raise invalid(x, "media is not base64.", media="") from None
        if "media" in fields:
            fields["media"] = BodyPart("media", None)
            fields["media"].body.write(data)
    else:
        try:
            parts = request.parts()
        except ValueError:
            raise invalid(x, "Requests with bodies must have content-type of application/json.") from None
        fields = {part.name: part if part.name == "media" else part.text for part in parts}
        if len(fields) < len(parts):
            raise invalid(x, "A field is given twice.")
    for unknown in fields.keys() - {"media", name}:
        raise invalid(x, f"$.{unknown}: is not defined in the schema", **{unknown: ""})
    if "media" not in fields:
        raise invalid(x, "media is missing but it is required", media="")
    return fields["media"], fields.get(name)
