"""Films: registering, the upload host's form, processing.

The form is the credential; every field of it must come back unchanged, and the file last.
"""

import base64
import json
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.inflow import FormInflow, Inflow
from socialpub.sandbox.pinterest.access import Caller, api_call, json_object
from socialpub.sandbox.pinterest.paging import paged
from socialpub.sandbox.pinterest.shapes import complain, members, one_of
from socialpub.sandbox.probe import film
from socialpub.sandbox.sniff import sniff

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest

REGISTER = members({"media_type": one_of("video")}, required=("media_type",))
MAX_BYTES = 2 * 1024**3
SECONDS = (4, 900)
SHAPES = (0.5, 1.91)
REGISTERED, PROCESSING, SUCCEEDED, FAILED = "registered", "processing", "succeeded", "failed"


@dataclass(slots=True)
class Media:
    id: str
    owner_id: str
    sandbox: bool
    form: dict[str, str] = field(repr=False)
    """The fields of its upload form."""
    form_expires_at: float
    """Unix seconds."""
    status: str = REGISTERED
    mime_type: str = ""
    size: int = 0
    sha256: str = ""
    uploads: int = 0
    fate: str = ""
    """What becomes of it; empty until it was uploaded."""
    looks: int = 0
    """Since it was uploaded."""
    pinned_in: list[str] = field(default_factory=list)


@api_call("org_write", "pins:read", "pins:write")
def register(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    complain(pinterest, REGISTER, json_object(pinterest, call))
    now = pinterest.world.now()
    media_id = pinterest.world.new_id()
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
    media = Media(media_id, caller.account.id, caller.sandbox, form, expires.timestamp())
    pinterest.keep_media(media)
    return pinterest.answer(
        pinterest.create_status,
        {
            "media_id": media_id,
            "media_type": "video",
            "upload_url": f"{call.base_url}/pinterest/upload/",
            "upload_parameters": form,
        },
    )


@api_call("org_read", "pins:read")
def status(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    media = pinterest.media.get(call.path_params["media_id"])
    if media is None or media.sandbox != caller.sandbox or media.owner_id != caller.account.id:
        raise Refusal(pinterest.refusal_answer("", "media_not_found"))
    _look(pinterest, media)
    return pinterest.answer(200, _show(media))


@api_call("org_read", "pins:read")
def listing(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    own = [
        one for one in pinterest.media.values() if (one.owner_id, one.sandbox) == (caller.account.id, caller.sandbox)
    ]
    return paged(pinterest, call, own, _show)


def _show(media: Media) -> dict[str, Any]:
    return {"media_id": media.id, "media_type": "video", "status": media.status}


def _look(pinterest: "Pinterest", media: Media) -> None:
    if not media.fate or media.status in (SUCCEEDED, FAILED):
        return
    media.looks += 1
    if media.looks <= pinterest.processing_ticks or media.fate == "never_ends":
        media.status = PROCESSING
    else:
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED


# --- the upload host -------------------------------------------------------------------------------------------------


def open_sink(pinterest: "Pinterest", call: Call) -> FormInflow:  # noqa: ARG001
    return FormInflow(call.headers.get("content-type", ""))


def upload(pinterest: "Pinterest", call: Call) -> Answer:
    form: FormInflow = call.sink
    if "content-length" not in call.headers:
        return _xml(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    if "authorization" in call.headers:
        return _xml(400, "InvalidArgument", "Only one auth mechanism allowed: the form is signed.")
    if not form.whole or form.file is None:
        return _xml(400, "MalformedPOSTRequest", "The body is no well-formed multipart form with a file.")
    if not form.file_last:
        return _xml(400, "InvalidArgument", "The file must be the last field of the form.")
    fields = dict(form.fields)
    media = pinterest.media_of_key(fields.get("key", ""))
    if media is None or fields != media.form or len(form.fields) != len(media.form):
        return _xml(403, "AccessDenied", "Invalid according to Policy: a field is missing, changed or too many.")
    if pinterest.world.now().timestamp() >= media.form_expires_at:
        return _xml(403, "AccessDenied", "Invalid according to Policy: Policy expired.")
    if not 1 <= form.file.size <= MAX_BYTES:
        code = "EntityTooLarge" if form.file.size else "EntityTooSmall"
        return _xml(400, code, "Your proposed upload is outside of the allowed size.")
    _take(pinterest, media, form.file)
    return Answer(204)


def _take(pinterest: "Pinterest", media: Media, flow: Inflow) -> None:
    media.uploads += 1
    if media.status == SUCCEEDED:
        return
    media.mime_type, media.size, media.sha256 = sniff(flow.head), flow.size, flow.sha256
    media.status, media.looks = REGISTERED, 0
    media.fate = pinterest.next_fate_of_media()
    data = flow.data
    if media.mime_type not in ("video/mp4", "video/quicktime") or (
        pinterest.probes_video and data is not None and not _fits(data)
    ):
        media.fate = "fails"
    if pinterest.processing_ticks == 0 and media.fate != "never_ends":
        media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    if data is not None:
        pinterest.shelf.put(media.id, data)
    pinterest.journal_media(media)


def _fits(data: bytes) -> bool:
    found = film(data)
    if found is None or not found.height:
        return False
    shape = found.width / found.height
    return SECONDS[0] - 0.05 <= found.seconds <= SECONDS[1] + 0.5 and SHAPES[0] - 0.01 <= shape <= SHAPES[1] + 0.01


def _xml(status: int, code: str, message: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Answer(status, body.encode(), "application/xml")
