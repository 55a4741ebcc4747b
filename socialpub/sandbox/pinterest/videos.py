"""Videos: registering one, which gives the form for its upload, and how its processing goes."""

import base64
import json
import secrets
from datetime import timedelta
from typing import Any

from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.access import PinterestCaller, api_call, json_object
from socialpub.sandbox.pinterest.models import FAILED, MAX_BYTES, PROCESSING, SUCCEEDED, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.replies import paged
from socialpub.sandbox.pinterest.schema import object_of, one_of, require_valid
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest

REGISTER = object_of({"media_type": one_of("video")}, required=("media_type",))


@api_call("org_write", "pins:read", "pins:write")
def register(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    require_valid(pinterest, REGISTER, json_object(pinterest, request))
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
    media = PinterestMedia(media_id, caller.account.id, caller.sandbox, form, expires.timestamp())
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
def status(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    media = pinterest.media.get(request.path_params["media_id"])
    if media is None or media.sandbox != caller.sandbox or media.owner_id != caller.account.id:
        raise replies.refused(pinterest, "media_not_found")
    _poll(pinterest, media)
    return replies.ok(pinterest, 200, _media_json(media))


@api_call("org_read", "pins:read")
def listing(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    own = [
        one for one in pinterest.media.values() if (one.owner_id, one.sandbox) == (caller.account.id, caller.sandbox)
    ]
    return paged(pinterest, request, own, _media_json)


def _media_json(media: PinterestMedia) -> dict[str, Any]:
    return {"media_id": media.id, "media_type": "video", "status": media.status}


def _poll(pinterest: PinterestSandbox, media: PinterestMedia) -> None:
    if not media.fate or media.status in (SUCCEEDED, FAILED):
        return
    media.looks += 1
    if media.looks <= pinterest.processing_ticks or media.fate == "never_ends":
        media.status = PROCESSING
    else:
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
