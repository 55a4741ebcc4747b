"""Pinterest's API of videos: register one, upload it with the form of the registration, read its status."""

import base64
import json
import secrets
from datetime import timedelta
from typing import Literal

from socialpub.sandbox.media import probe_video, sniff
from socialpub.sandbox.messages import Reply, SandboxRequest, SandboxShape, StreamedBody, StreamedForm
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import FAILED, MAX_BYTES, PROCESSING, REGISTERED, SUCCEEDED, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.requests import PinterestCaller, api_call, valid_body

SECONDS = (4, 900)
ASPECT_RATIOS = (0.5, 1.91)


class NewMedia(SandboxShape):
    media_type: Literal["video"]


@api_call("org_write", "pins:read", "pins:write")
def register_media(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    valid_body(pinterest, request, NewMedia)
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
    media = PinterestMedia(media_id, caller.account.id, form, expires.timestamp())
    pinterest.add_media(media)
    host = f"https://{pinterest.upload_host}" if pinterest.upload_host else request.base_url
    return replies.ok(
        pinterest,
        pinterest.create_status,
        {
            "media_id": media_id,
            "media_type": "video",
            "upload_url": f"{host}/pinterest/upload/",
            "upload_parameters": form,
        },
    )


@api_call("org_read", "pins:read")
def media_status(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    media = pinterest.media.get(request.path_params["media_id"])
    if media is None or media.owner_id != caller.account.id:
        raise replies.refused(pinterest, "media_not_found")
    if media.fate and media.status not in (SUCCEEDED, FAILED):
        media.polls += 1
        if media.polls <= pinterest.processing_ticks or media.fate == "never_ends":
            media.status = PROCESSING
        else:
            media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    return replies.ok(pinterest, 200, {"media_id": media.id, "media_type": "video", "status": media.status})


# --- the upload host -------------------------------------------------------------------------------------------------


def open_upload_sink(pinterest: PinterestSandbox, request: SandboxRequest) -> StreamedForm:  # noqa: ARG001
    return StreamedForm(request.headers.get("content-type", ""))


def upload_media(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
    """Accept the form of a registration. It is the credential: all its fields must be unchanged, and the file last."""
    form: StreamedForm = request.sink
    parts = form.parts
    file = parts[-1].body if form.is_whole and parts and parts[-1].name == "file" else None
    fields = {part.name: part.text for part in parts if part.name != "file"}
    if "content-length" not in request.headers:
        return _xml(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    if "authorization" in request.headers:
        return _xml(400, "InvalidArgument", "Only one auth mechanism allowed: the form is signed.")
    if not form.is_whole or "file" not in {part.name for part in parts}:
        return _xml(400, "MalformedPOSTRequest", "The body is no well-formed multipart form with a file.")
    if file is None:
        return _xml(400, "InvalidArgument", "The file must be the last field of the form.")
    media = pinterest.media_of_key(fields.get("key", ""))
    if media is None or fields != media.form or len(parts) != len(fields) + 1:
        return _xml(403, "AccessDenied", "Invalid according to Policy: a field is missing, changed or too many.")
    if pinterest.timestamp() >= media.form_expires_at:
        return _xml(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
    if media.uploads and pinterest.forms_good_once:
        return _xml(403, "AccessDenied", "The form has been used.")
    if not 1 <= file.size <= MAX_BYTES:
        code = "EntityTooLarge" if file.size else "EntityTooSmall"
        return _xml(400, code, "Your proposed upload is outside of the allowed size.")
    _accept(pinterest, media, file)
    return Reply(204)


def _accept(pinterest: PinterestSandbox, media: PinterestMedia, file: StreamedBody) -> None:
    media.uploads += 1
    if media.status == SUCCEEDED:
        return
    media.mime_type, media.size, media.sha256 = sniff(file.head), file.size, file.sha256
    media.status, media.polls = REGISTERED, 0
    media.fate = pinterest.fates.take(pinterest.processing)
    data = file.data
    if media.mime_type not in ("video/mp4", "video/quicktime") or (
        pinterest.probes_video and data is not None and not _fits(data)
    ):
        media.fate = "fails"
    if pinterest.processing_ticks == 0 and media.fate != "never_ends":
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    if data is not None:
        pinterest.cache.put(media.id, data)
    pinterest.write_media(media)


def _fits(data: bytes) -> bool:
    found = probe_video(data)
    if found is None or not found.height:
        return False
    ratio = found.width / found.height
    return (
        SECONDS[0] - 0.05 <= found.seconds <= SECONDS[1] + 0.5
        and ASPECT_RATIOS[0] - 0.01 <= ratio <= ASPECT_RATIOS[1] + 0.01
    )


def _xml(status: int, code: str, message: str) -> Reply:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Reply(status, body.encode(), "application/xml")
