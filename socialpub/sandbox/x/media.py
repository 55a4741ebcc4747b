"""X's upload endpoints: an image in one call, GIFs and videos in segments, their status, and alt text."""

import re
from typing import Any

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import BodyPart, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import api_call
from socialpub.sandbox.x.api import XCaller, json_object
from socialpub.sandbox.x.models import IMAGE, MAX_BYTES, XMedia
from socialpub.sandbox.x.network import XSandbox, forbidden, invalid

SEGMENT = re.compile(r"[0-9]{1,6}")
MAX_SEGMENT_BYTES = 5 * 1024 * 1024
NOT_FOUND = "BadRequest: Not found"


@api_call("POST /2/media/upload", "media.write")
def one_shot(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    part, category = _file_and_field(request, "media_category")
    if category != IMAGE:
        raise invalid(f"media_category must be one of ['{IMAGE}']", media_category=category)
    _refuse_size(category, part.body.size)
    media = x.media.begin(category, part.content_type or "", part.body.size, caller.account.id)
    x.media.append(media, 0, part.data)
    x.media.finalize(media, x.fate())
    if media.state == "failed":
        raise invalid("media type unrecognized.", media=part.name)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/upload/initialize", "media.write")
def initialize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(request)
    _refuse_size(body["media_category"], body["total_bytes"])
    media = x.media.begin(body["media_category"], body["media_type"], body["total_bytes"], caller.account.id)
    left = x.media.seconds_left(media)
    return json_reply(200, {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": left}})


@api_call("POST /2/media/upload/:id/append", "media.write")
def append(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    media = _own(x, request.path_params["id"], caller)
    part, index = _file_and_field(request, "segment_index")
    written = str(index)
    if not SEGMENT.fullmatch(written) or int(written) > 999:
        raise invalid("SegmentIndex must be between 0 and 999.", segment_index=written)
    if part.body.size > MAX_SEGMENT_BYTES:
        raise Refusal(Reply(413))
    if media.finalized:
        raise invalid("The upload is already finalized.", id=media.id)
    x.media.append(media, int(written), part.data)
    return json_reply(200, {"data": {"expires_at": int(media.expires_at)}})


@api_call("POST /2/media/upload/:id/finalize", "media.write")
def finalize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    json_object(request)
    media = _own(x, request.path_params["id"], caller)
    if not media.finalized:
        if sorted(media.segments) != list(range(len(media.segments))):
            raise invalid("Segments are missing.", segments=sorted(media.segments))
        received = sum(media.segments.values())
        if received != media.declared_bytes:
            raise invalid("Segments do not add up to provided total file size.", total_bytes=received)
        x.media.finalize(media, x.fate())
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("GET /2/media/upload", "media.write")
def status(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = request.query()
    media = _own(x, query.get("media_id", ""), caller)
    if not media.finalized:
        raise invalid(NOT_FOUND, media_id=media.id)
    x.media.poll(media)
    return json_reply(200, {"data": _media_json(x, media)})


@api_call("POST /2/media/metadata", "media.write")
def metadata(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(request)
    if "id" not in body or not isinstance(body.get("metadata"), dict):
        # The real X sends this response to requests in the shape of its previous version.
        return json_reply(500, {"errors": ["internal server error"]})
    media = _own(x, body["id"], caller)
    associated: dict[str, Any] = {}
    if "alt_text" in body["metadata"]:
        media.alt_text = body["metadata"]["alt_text"]["text"]
        associated["alt_text"] = {"text": media.alt_text}
    return json_reply(200, {"data": {"id": media.id, "associated_metadata": associated}})


def _own(x: XSandbox, media_id: str, caller: XCaller) -> XMedia:
    media = x.media.alive(media_id)
    if media is None:
        raise invalid(NOT_FOUND, media_id=media_id)
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
        shown["processing_info"] = info
    return shown


def _refuse_size(category: str, size: int) -> None:
    if not 0 < size <= MAX_BYTES[category]:
        message = f"The size of the media is not between 1 and {MAX_BYTES[category]} bytes."
        raise invalid(message, total_bytes=size)


def _file_and_field(request: SandboxRequest, name: str) -> tuple[BodyPart, str]:
    """Return the file `media` of a form, and the field beside it. Raise Refusal."""
    try:
        parts = {part.name: part for part in request.parts()}
        return parts["media"], parts[name].text
    except (ValueError, KeyError):
        raise invalid(f"The form must contain the fields media and {name}.") from None


CALLS = (
    SandboxCall("POST", "/2/media/upload", "upload_one_shot", one_shot),
    SandboxCall("GET", "/2/media/upload", "upload_status", status),
    SandboxCall("POST", "/2/media/upload/initialize", "upload_initialize", initialize),
    SandboxCall("POST", "/2/media/upload/{id}/append", "upload_append", append),
    SandboxCall("POST", "/2/media/upload/{id}/finalize", "upload_finalize", finalize),
    SandboxCall("POST", "/2/media/metadata", "metadata", metadata),
)
