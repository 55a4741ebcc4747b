"""Pinterest's API of the account, its boards and videos: who may call, which JSON bodies, and the upload host."""

import base64
import json
import secrets
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from pydantic_core import ErrorDetails

from socialpub.sandbox.media import probe_video, sniff
from socialpub.sandbox.messages import (
    Reply,
    SandboxRequest,
    SandboxShape,
    StreamedBody,
    StreamedForm,
    check_shape,
    dotted_path,
)
from socialpub.sandbox.network import ApiCaller, api_call
from socialpub.sandbox.pinterest.models import (
    FAILED,
    MAX_BYTES,
    PROCESSING,
    PUBLIC,
    REGISTERED,
    SECRET,
    SUCCEEDED,
    PinterestAccount,
    PinterestBoard,
    PinterestMedia,
)
from socialpub.sandbox.pinterest.network import PinterestSandbox, invalid, ok, paged, refused, zoneless

SHOWN = 200
PinterestCaller = ApiCaller[PinterestAccount]

ObjectId = Annotated[str, StringConstraints(pattern=r"^\d+$")]
Base64Text = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9+/=]+$")]
Link = Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s/?#]+\.?\S*$")]
Index = Annotated[int, Field(ge=0)]
MESSAGES = {
    "missing": "'{path}' is a required property",
    "extra_forbidden": "Additional properties are not allowed ('{path}' was unexpected)",
    "string_type": "{value} is not of type 'string' ({path})",
    "bool_type": "{value} is not of type 'boolean' ({path})",
    "list_type": "{value} is not of type 'array' ({path})",
    "model_type": "{value} is not of type 'object' ({path})",
    "literal_error": "{value} is not one of [{expected}] ({path})",
    "string_pattern_mismatch": "{value} does not match '{pattern}' ('{path}' must match the pattern: {pattern})",
    "string_too_long": "{value} in '{path}' is too long (maxLength={max_length})",
    "string_too_short": "{value} in '{path}' is too short (minLength={min_length})",
    "too_long": "'{path}' has {actual_length} items (maxItems={max_length})",
    "too_short": "'{path}' has {actual_length} items (minItems={min_length})",
}


def valid_body(
    pinterest: PinterestSandbox, request: SandboxRequest, shape: type[SandboxShape], code: int = 1
) -> dict[str, Any]:
    """Return the body if it is a JSON object of this shape. Raise Refusal with the first finding."""
    body = request.json_object()
    if body is None:
        raise invalid(pinterest, 400, 1, "Invalid request: the body is not a JSON object.")
    for finding in check_shape(shape, body):
        raise invalid(pinterest, 400, code, f"Invalid request: {_message(finding)}")
    return body


def _message(finding: ErrorDetails) -> str:
    if finding["type"] == "string_pattern_mismatch" and str(finding["loc"][-1]).endswith(("link", "url")):
        return f"Entered URL is invalid. ({dotted_path(finding)})"
    written = repr(finding["input"])
    facts = {"path": dotted_path(finding), "value": written if len(written) <= SHOWN else written[:SHOWN] + "…"}
    return MESSAGES.get(finding["type"], "{path}: " + finding["msg"]).format(**finding.get("ctx", {}), **facts)


# --- the account and its boards --------------------------------------------------------------------------------------

Name = Annotated[str, StringConstraints(min_length=1, max_length=180)]


class NewBoard(SandboxShape):
    name: Name
    description: Annotated[str, StringConstraints(max_length=500)] | None = None
    privacy: Literal["PUBLIC", "PROTECTED", "SECRET"] = "PUBLIC"
    is_ads_only: bool = False


class NewSection(SandboxShape):
    name: Name


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
    return ok(pinterest, 200, facts)


@api_call("org_read", "boards:read")
def list_boards(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    _refuse_pinner_data(pinterest, caller)
    found = [
        board
        for board in pinterest.boards.values()
        if board.takes_pins_of(caller.account)
        and (board.privacy != SECRET or caller.may("boards:read_secret"))
        and pinterest.seconds_since(board.created_at) >= pinterest.board_lag_seconds
    ]
    return paged(pinterest, request, found, lambda board: _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def read_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    return ok(pinterest, 200, _board_json(pinterest, readable_board(pinterest, request, caller)))


@api_call("org_write", "boards:read", "boards:write")
def create_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    body = valid_body(pinterest, request, NewBoard, code=400)
    privacy = body.get("privacy", PUBLIC)
    if privacy == SECRET and not caller.may("boards:write_secret"):
        raise refused(pinterest, "missing_scope")
    if any(one.name.lower() == body["name"].lower() for one in pinterest.boards_of(caller.account.username)):
        raise invalid(pinterest, 400, 400, "Invalid board parameters: you already have a board with this name.")
    board = pinterest.add_board(caller.account, body["name"], privacy=privacy, description=body.get("description"))
    return ok(pinterest, pinterest.create_status, _board_json(pinterest, board))


@api_call("org_read", "boards:read")
def list_sections(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    board = readable_board(pinterest, request, caller)
    return paged(pinterest, request, list(board.sections.items()), lambda one: {"id": one[0], "name": one[1]})


@api_call("org_write", "boards:read", "boards:write")
def create_section(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    name = valid_body(pinterest, request, NewSection, code=400)["name"]
    board = readable_board(pinterest, request, caller)
    if name in board.sections.values():
        raise invalid(pinterest, 409, 409, "Board section conflict: there is a section with this name.")
    return ok(pinterest, 201, {"id": pinterest.add_section(board, name), "name": name})


def readable_board(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> PinterestBoard:
    """Return the board of the path if this caller may read it. Raise Refusal."""
    _refuse_pinner_data(pinterest, caller)
    board = pinterest.boards.get(request.path_params["board_id"])
    if board is None:
        raise refused(pinterest, "board_not_found")
    if not board.takes_pins_of(caller.account) or (board.privacy == SECRET and not caller.may("boards:read_secret")):
        raise refused(pinterest, "not_permitted")
    return board


def _refuse_pinner_data(pinterest: PinterestSandbox, caller: PinterestCaller) -> None:
    if pinterest.pinner_data_denied and not caller.account.is_business:
        raise refused(pinterest, "pinner_data")


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
    return ok(
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
        raise refused(pinterest, "media_not_found")
    if media.fate and media.status not in (SUCCEEDED, FAILED):
        media.polls += 1
        if media.polls <= pinterest.processing_ticks or media.fate == "never_ends":
            media.status = PROCESSING
        else:
            media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
    return ok(pinterest, 200, {"media_id": media.id, "media_type": "video", "status": media.status})


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
    media = pinterest.media_by_key.get(fields.get("key", ""))
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
