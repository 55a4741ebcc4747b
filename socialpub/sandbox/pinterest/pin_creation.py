"""`POST /pins`. There is no key against repeats: twice means two pins."""

from typing import Any

from socialpub.sandbox.fetch import fetch_all
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.access import PinterestCaller, api_call, json_object
from socialpub.sandbox.pinterest.images import from_base64, from_url
from socialpub.sandbox.pinterest.models import SECRET, SUCCEEDED, Pin, PinImage, PinKind, PinterestBoard, PinterestMedia
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.pin_json import pin_json
from socialpub.sandbox.pinterest.pin_schema import CREATE, covers, urls
from socialpub.sandbox.pinterest.schema import require_valid
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import SandboxRequest


async def fetch_first(pinterest: PinterestSandbox, request: SandboxRequest) -> None:
    """Images behind URLs are fetched while the call runs."""
    await fetch_all(request, urls(request.json_object()), pinterest.fetch)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def create(pinterest: PinterestSandbox, request: SandboxRequest, caller: PinterestCaller) -> Reply:
    if pinterest.tier == "trial" and not caller.sandbox:
        raise replies.refused(pinterest, "trial")
    body = json_object(pinterest, request)
    require_valid(pinterest, CREATE, body)
    source = body["media_source"]
    _refuse_covers(pinterest, caller, source)
    board = _board(pinterest, body, caller)
    video = _video(pinterest, source, caller) if source["source_type"] == "video_id" else None
    found = _images(pinterest, request, source)
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


def _images(
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
