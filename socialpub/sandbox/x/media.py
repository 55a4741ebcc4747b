"""The upload endpoints: one-shot, chunked, status, alt text."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from socialpub.sandbox.messages import BodyPart, PartHeader, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import GIF, IMAGE, MAX_BYTES, MAX_VIDEO_BYTES, VIDEO, XMedia
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.requests import (
    Finding,
    XCaller,
    array_of,
    boolean,
    checked_query,
    digits,
    json_object,
    number,
    object_of,
    one_of,
    require_valid,
    text,
    user_call,
)

ONE_SHOT_OLD = (IMAGE, "dm_image", "subtitles")
ONE_SHOT_NEW = (IMAGE, VIDEO, GIF, "dm_image", "dm_video", "dm_gif", "subtitles")
INITIALIZE = object_of(
    {
        "additional_owners": array_of(digits, 0, 1000),
        "media_category": one_of("amplify_video", GIF, IMAGE, VIDEO, "dm_gif", "dm_image", "dm_video", "subtitles"),
        "media_type": one_of(
            "video/mp4", "video/webm", "video/mp2t", "video/quicktime", "text/srt", "text/vtt", "image/jpeg",
            "image/gif", "image/bmp", "image/png", "image/webp", "image/pjpeg", "image/tiff", "model/gltf-binary",
            "model/vnd.usdz+zip",
        ),
        "shared": boolean,
        "total_bytes": number(0, MAX_VIDEO_BYTES),
    },
    "media_category",
    "media_type",
    "total_bytes",
)  # fmt: skip
ALT_TEXT = object_of({"text": text(0, 1000)}, "text")
METADATA = object_of({"id": digits, "metadata": object_of({"alt_text": ALT_TEXT}, open_ended=True)}, "id")
SEGMENT = re.compile(r"[0-9]{1,6}")
NOT_FOUND = "BadRequest: Not found"


@user_call("POST /2/media/upload", "media.write")
def one_shot(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    fields = _fields(x, request, {"media", "media_category", "additional_owners"})
    part = _file(x, fields)
    categories = ONE_SHOT_NEW if x.dialect == "new" else ONE_SHOT_OLD
    category = fields.get("media_category")
    if not isinstance(category, str) or category not in categories:
        raise problems.invalid(x, f"media_category must be one of {list(categories)}", media_category=category)
    _refuse_size(x, category, len(part.data))
    owners = str(fields.get("additional_owners") or "")
    media = x.media.begin(category, part.header.content_type or "", len(part.data), caller.account.id, _split(owners))
    x.media.append(media, 0, part.data)
    x.media.finalize(media)
    if category in ("dm_image", IMAGE) and media.state == "failed":
        raise problems.invalid(x, "media type unrecognized.", media=part.header.filename)
    return json_reply(200, {"data": _media_json(x, media)})


@user_call("POST /2/media/upload/initialize", "media.write")
def initialize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    require_valid(x, INITIALIZE, body)
    _refuse_size(x, body["media_category"], body["total_bytes"])
    media = x.media.begin(
        body["media_category"],
        body["media_type"],
        body["total_bytes"],
        caller.account.id,
        tuple(body.get("additional_owners", ())),
    )
    left = x.media.seconds_left(media)
    return json_reply(200, {"data": {"id": media.id, "media_key": media.key, "expires_after_secs": left}})


@user_call("POST /2/media/upload/:id/append", "media.write")
def append(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    media = _own(x, request.path_params["id"], caller)
    fields = _fields(x, request, {"media", "segment_index"})
    written = fields.get("segment_index")
    index = written if isinstance(written, int) and not isinstance(written, bool) else None
    if isinstance(written, str) and SEGMENT.fullmatch(written):
        index = int(written)
    if index is None or not 0 <= index <= 999:
        raise problems.invalid(x, "SegmentIndex must be between 0 and 999.", segment_index=written)
    part = _file(x, fields)
    if len(part.data) > x.max_segment_bytes:
        raise Refusal(Reply(413))
    if media.finalized:
        raise problems.invalid(x, "The upload is already finalized.", id=media.id)
    x.media.append(media, index, part.data)
    if x.append_answers == 204:
        return Reply(204)
    return json_reply(200, {"data": {"expires_at": int(media.expires_at)}})


@user_call("POST /2/media/upload/:id/finalize", "media.write")
def finalize(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    json_object(x, request)
    media = _own(x, request.path_params["id"], caller)
    if not media.finalized:
        if sorted(media.segments) != list(range(len(media.segments))):
            raise problems.invalid(x, "Segments are missing.", segments=sorted(media.segments))
        received = sum(media.segments.values())
        if received != media.declared_bytes:
            raise problems.invalid(x, "Segments do not add up to provided total file size.", total_bytes=received)
        x.media.finalize(media)
    return json_reply(200, {"data": _media_json(x, media)})


@user_call("GET /2/media/upload", "media.write")
def status(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    query = checked_query(x, request, {"media_id", "command"})
    if query.get("command", "STATUS") != "STATUS":
        raise problems.invalid(x, "command must be STATUS", command=query["command"])
    media = _own(x, query.get("media_id", ""), caller)
    if not media.finalized:
        raise problems.invalid(x, NOT_FOUND, media_id=media.id)
    x.media.poll(media)
    return json_reply(200, {"data": _media_json(x, media)})


@user_call("POST /2/media/metadata", "media.write")
def metadata(x: XSandbox, request: SandboxRequest, caller: XCaller) -> Reply:
    body = json_object(x, request)
    if "id" not in body or not isinstance(body.get("metadata"), dict):
        # What the real one answers to the shape of its former version.
        return json_reply(500, {"errors": ["internal server error"]})
    require_valid(x, METADATA, body)
    media = _own(x, body["id"], caller)
    associated: dict[str, Any] = {}
    if "alt_text" in body["metadata"]:
        media.alt_text = body["metadata"]["alt_text"]["text"]
        associated["alt_text"] = {"text": media.alt_text}
    return json_reply(200, {"data": {"id": media.id, "associated_metadata": associated}})


def _own(x: XSandbox, media_id: str, caller: XCaller) -> XMedia:
    media = x.media.alive(media_id)
    if media is None:
        raise problems.invalid(x, NOT_FOUND, media_id=media_id)
    if caller.account.id not in (media.owner_id, *media.other_owners):
        raise problems.forbidden("You are not allowed to use this media.")
    return media


def _media_json(x: XSandbox, media: XMedia) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": media.id,
        "media_key": media.key,
        "size": media.size,
        "expires_after_secs": x.media.seconds_left(media),
    }
    if media.category in (IMAGE, "dm_image") and media.width:
        shown["image"] = {"w": media.width, "h": media.height, "image_type": media.mime_type or "image/jpeg"}
    elif media.category not in (IMAGE, "dm_image", "subtitles"):
        shown["video"] = {"video_type": media.mime_type or "video/mp4"}
    if media.state:
        info: dict[str, Any] = {"state": media.state}
        if media.state in ("pending", "in_progress"):
            info["check_after_secs"] = x.check_after_seconds
        if media.state == "in_progress":
            info["progress_percent"] = min(99, 100 * media.looks // max(1, x.processing_ticks))
        if media.state == "succeeded":
            info["progress_percent"] = 100
        if media.state == "failed" and x.dialect == "old":
            info["error"] = {"code": 1, "name": "InvalidMedia", "message": "Unsupported video format"}
        shown["processing_info"] = info
    return shown


def _refuse_size(x: XSandbox, category: str, size: int) -> None:
    largest = MAX_BYTES.get(category, MAX_VIDEO_BYTES)
    if not 0 < size <= largest:
        raise problems.invalid(x, f"The size of the media is not between 1 and {largest} bytes.", total_bytes=size)


def _fields(x: XSandbox, request: SandboxRequest, names: set[str]) -> dict[str, Any]:
    """The fields of a multipart or JSON body; the file as a `BodyPart`. None but `names`, each once."""
    fields: dict[str, Any] = {}
    if request.content_type == "application/json":
        fields = json_object(x, request)
        if isinstance(fields.get("media"), str):
            try:
                data = base64.b64decode(fields["media"], validate=True)
            except (binascii.Error, ValueError):
                raise problems.invalid(x, "media is not base64.", media="") from None
            fields["media"] = BodyPart(PartHeader("media", "media", None), data)
    else:
        try:
            parts = request.parts()
        except ValueError:
            raise problems.invalid(x, "Requests with bodies must have content-type of application/json.") from None
        for part in parts:
            if part.header.name in fields:
                raise problems.invalid(x, f"{part.header.name} is given twice.", **{part.header.name: ""})
            fields[part.header.name] = part if part.header.name == "media" else part.data.decode("utf-8", "replace")
    require_valid(x, object_of(dict.fromkeys(names, _anything)), fields)
    return fields


def _anything(path: str, value: Any) -> Iterator[Finding]:  # noqa: ARG001
    yield from ()


def _file(x: XSandbox, fields: dict[str, Any]) -> BodyPart:
    part = fields.get("media")
    if not isinstance(part, BodyPart):
        raise problems.invalid(x, "media is missing but it is required", media="")
    return part


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())
