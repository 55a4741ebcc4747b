"""Pins: `POST /pins`, reading them back, deleting them. There is no key against repeats: twice means two pins."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.fetching import fetch_all
from socialpub.sandbox.pinterest import pictures
from socialpub.sandbox.pinterest.access import Caller, api_call, json_object
from socialpub.sandbox.pinterest.boards import SECRET, Board, readable, refuse_pinner_data, stamp
from socialpub.sandbox.pinterest.media import SUCCEEDED, Media
from socialpub.sandbox.pinterest.paging import paged
from socialpub.sandbox.pinterest.pictures import Picture
from socialpub.sandbox.pinterest.pinbody import CREATE, covers, urls
from socialpub.sandbox.pinterest.shapes import complain

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest

SIZES = {"150x150": 150, "400x300": 400, "600x": 600, "1200x": 1200}
TEXTS = ("title", "description", "alt_text", "link")


@dataclass(slots=True)
class Pin:
    id: str
    account_id: str
    username: str
    board_id: str
    section_id: str | None
    kind: Literal["image", "carousel", "video"]
    title: str | None
    description: str | None
    alt_text: str | None
    link: str | None
    dominant_color: str | None
    pictures: tuple[Picture, ...]
    """The picture, the pictures of a carousel, or a film's cover (none for a key frame)."""
    film_id: str | None
    key_frame_seconds: int | None
    created_at: datetime
    """By the world's clock."""
    sandbox: bool = False
    client_id: str | None = None
    received_at: datetime | None = None
    """When the call's first byte arrived, by the machine's clock."""
    received_monotonic: float = 0.0
    deleted_at: datetime | None = None
    source: dict[str, Any] = field(default_factory=dict)
    """The `media_source` of the request, without its bytes."""


async def fetch_first(pinterest: "Pinterest", call: Call) -> None:
    """Pictures behind URLs are fetched while the call runs."""
    try:
        wanted = urls(call.json())
    except ValueError:
        return
    await fetch_all(call, wanted, pinterest.fetch)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def create(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    if pinterest.tier == "trial" and not caller.sandbox:
        raise Refusal(pinterest.refusal_answer("create_pin", "trial"))
    body = json_object(pinterest, call)
    complain(pinterest, CREATE, body)
    source = body["media_source"]
    _refuse_covers(pinterest, caller, source)
    board = _board(pinterest, body, caller)
    film = _film(pinterest, source, caller) if source["source_type"] == "video_id" else None
    found = _pictures(pinterest, call, source)
    if len({(picture.width, picture.height) for picture, _ in found}) > 1:
        raise Refusal(pinterest.error(400, 1, "Invalid request: all images of a carousel must have the same size."))
    for picture, data in found:
        pinterest.keep_picture(picture, data)
    kind: Literal["image", "carousel", "video"] = "video" if film else "carousel" if "items" in source else "image"
    pin = Pin(
        pinterest.world.new_id(), caller.account.id, caller.account.username, board.id, body.get("board_section_id"),
        kind, body.get("title"), body.get("description"), body.get("alt_text"), body.get("link"),
        body.get("dominant_color"), tuple(picture for picture, _ in found), film.id if film else None,
        source.get("cover_image_key_frame_time"), pinterest.world.now(), caller.sandbox, caller.token.client_id,
        call.received_at, call.received_monotonic,
        source={name: value for name, value in source.items() if name not in ("data", "items", "cover_image_data")},
    )  # fmt: skip
    pinterest.add_pin(pin)
    return pinterest.answer(pinterest.create_status, show(pinterest, call, pin, caller))


def _refuse_covers(pinterest: "Pinterest", caller: Caller, source: dict[str, Any]) -> None:
    if source["source_type"] != "video_id":
        return
    if caller.sandbox:
        raise Refusal(pinterest.error(400, 1, "Invalid request: video Pins cannot be created in the sandbox."))
    ways = covers(source)
    if len(ways) > 1 or (pinterest.cover_needed and not ways):
        message = "Invalid request: give one of cover_image_url, cover_image_data with its content type, or"
        raise Refusal(pinterest.error(400, 1, f"{message} cover_image_key_frame_time."))


def _board(pinterest: "Pinterest", body: dict[str, Any], caller: Caller) -> Board:
    board = pinterest.boards.get(body["board_id"])
    if board is None or board.sandbox != caller.sandbox:
        raise Refusal(pinterest.refusal_answer("", "board_not_found"))
    secret = board.privacy == SECRET and not caller.may("boards:write_secret", "pins:write_secret")
    if not board.takes_pins_of(caller.account) or secret:
        raise Refusal(pinterest.refusal_answer("", "not_permitted"))
    section = body.get("board_section_id")
    if section is not None and section not in board.sections:
        raise Refusal(pinterest.refusal_answer("", "section_not_found"))
    return board


def _film(pinterest: "Pinterest", source: dict[str, Any], caller: Caller) -> Media:
    media = pinterest.media.get(source["media_id"])
    if media is None or media.owner_id != caller.account.id or media.sandbox != caller.sandbox:
        raise Refusal(pinterest.refusal_answer("", "media_not_found"))
    if media.status != SUCCEEDED or (media.pinned_in and not pinterest.media_reuse_allowed):
        raise Refusal(pinterest.error(400, 1, f"Invalid request: the media is {media.status}, it cannot be used."))
    return media


def _pictures(pinterest: "Pinterest", call: Call, source: dict[str, Any]) -> list[tuple[Picture, bytes]]:
    def texts(item: dict[str, Any]) -> dict[str, str | None]:
        return {name: item.get(name) for name in ("title", "description", "link")}

    match source["source_type"]:
        case "image_base64":
            return [pictures.from_base64(pinterest, source["data"], source["content_type"])]
        case "image_url":
            return [pictures.from_url(pinterest, call, source["url"])]
        case "multiple_image_base64":
            return [
                pictures.from_base64(pinterest, item["data"], item["content_type"], **texts(item))
                for item in source["items"]
            ]
        case "multiple_image_urls":
            return [pictures.from_url(pinterest, call, item["url"], **texts(item)) for item in source["items"]]
        case _:
            if "cover_image_data" in source:
                kind = source["cover_image_content_type"]
                return [pictures.from_base64(pinterest, source["cover_image_data"], kind)]
            if "cover_image_url" in source:
                return [pictures.from_url(pinterest, call, source["cover_image_url"])]
            return []


# --- reading ---------------------------------------------------------------------------------------------------------


@api_call("org_read", "boards:read", "pins:read")
def read(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    refuse_pinner_data(pinterest, caller)
    pin = _own(pinterest, call, caller)
    if (pinterest.world.now() - pin.created_at).total_seconds() < pinterest.read_lag_seconds:
        raise Refusal(pinterest.refusal_answer("", "pin_not_found"))
    return pinterest.answer(200, show(pinterest, call, pin, caller))


@api_call("org_read", "boards:read", "pins:read")
def on_board(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    board = readable(pinterest, call.path_params["board_id"], caller)
    return _list(pinterest, call, caller, pinterest.pins_on(board))


@api_call("org_read", "boards:read", "pins:read")
def own(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    refuse_pinner_data(pinterest, caller)
    mine = [pin for pin in pinterest.pins_of(caller.account) if pin.sandbox == caller.sandbox]
    return _list(pinterest, call, caller, mine)


@api_call("org_write", "boards:read", "boards:write", "pins:read", "pins:write")
def delete(pinterest: "Pinterest", call: Call, caller: Caller) -> Answer:
    pinterest.delete_pin(_own(pinterest, call, caller))
    return pinterest.empty(204)


def _list(pinterest: "Pinterest", call: Call, caller: Caller, pins: list[Pin]) -> Answer:
    """Newest first; pins that are too young do not show yet."""
    now, lag = pinterest.world.now(), pinterest.list_lag_seconds
    shown = [pin for pin in reversed(pins) if not lag or (now - pin.created_at).total_seconds() >= lag]
    return paged(pinterest, call, shown, lambda pin: show(pinterest, call, pin, caller))


def _own(pinterest: "Pinterest", call: Call, caller: Caller) -> Pin:
    pin = pinterest.find_pin(call.path_params["pin_id"])
    if pin is None or pin.sandbox != caller.sandbox:
        raise Refusal(pinterest.refusal_answer("", "pin_not_found"))
    if pin.account_id != caller.account.id:
        raise Refusal(pinterest.refusal_answer("", "not_permitted"))
    return pin


def show(pinterest: "Pinterest", call: Call, pin: Pin, caller: Caller) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    creative = {"image": "REGULAR", "carousel": "CAROUSEL", "video": "VIDEO"}[pin.kind]
    return {
        "id": pin.id,
        "created_at": stamp(pin.created_at),
        **{name: _text(pinterest, getattr(pin, name)) for name in TEXTS},
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
        "media": _media(call, pin),
    }


def _text(pinterest: "Pinterest", value: str | None) -> str | None:
    if value is None or not pinterest.trims_texts:
        return value
    return value.replace("\r\n", "\n").strip()


def _media(call: Call, pin: Pin) -> dict[str, Any]:
    if pin.kind == "carousel":
        items = [
            {"item_type": "image", "title": one.title, "description": one.description, "link": one.link,
             "images": _images(call, one)}
            for one in pin.pictures
        ]  # fmt: skip
        return {"media_type": "multiple_images", "items": items}
    if pin.kind == "image":
        return {"media_type": "image", "images": _images(call, pin.pictures[0])}
    shown: dict[str, Any] = {
        "media_type": "video", "duration": None, "width": None, "height": None, "video_url": None,
    }  # fmt: skip
    if pin.pictures:
        shown |= {"cover_image_url": _url(call, pin.pictures[0]), "images": _images(call, pin.pictures[0])}
    return shown


def _images(call: Call, picture: Picture) -> dict[str, Any]:
    shown = {}
    for name, width in SIZES.items():
        height = {"150x150": 150, "400x300": 300}.get(name, round(width * picture.height / picture.width))
        shown[name] = {"width": width, "height": height, "url": _url(call, picture)}
    shown["originals"] = {"width": picture.width, "height": picture.height, "url": _url(call, picture)}
    return shown


def _url(call: Call, picture: Picture) -> str:
    return f"{call.base_url}/pinterest/media/{picture.id}"
