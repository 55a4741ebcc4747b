"""Pinterest as its readers see it: boards with their pins, and every pin on a page of its own."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox import pages
from socialpub.sandbox.pages import media_response, page
from socialpub.sandbox.pinterest.models import Pin, PinterestBoard
from socialpub.sandbox.pinterest.network import PinterestSandbox

SHOWN_PINS = 200
FAULTS: pages.FaultChoices = {
    "2787": (
        "create_pin",
        "makes the pin, but is told 400 code 2787",
        lambda up: up.refuses("2787", after_effect=True),
    ),
    "timeout_after": ("create_pin", "makes the pin, but never answers", lambda up: up.times_out_after_effect()),
    "timeout_before": ("create_pin", "makes no pin and never answers", lambda up: up.times_out_before_effect()),
    "conflict": ("create_pin", "meets another write to the same board (409)", lambda up: up.refuses("conflict")),
    "spam": ("create_pin", "is blocked as spam", lambda up: up.refuses("spam")),
    "limited": ("create_pin", "is told to come back in 60 seconds", lambda up: up.rate_limited(60)),
    "trial": ("create_pin", "is told that trial apps make no pins here", lambda up: up.refuses("trial")),
}


@dataclass(frozen=True, slots=True)
class PinView:
    """A pin as the templates want it."""

    pin: Pin
    board: PinterestBoard
    section: str
    author: str
    film_id: str
    """Empty unless the pin holds a video."""
    film_mime_type: str
    link_host: str
    available: frozenset[str]
    """Ids of the images and videos whose bytes are still kept."""


def routes() -> list[Route]:
    """Below `/pinterest`."""
    return [
        Route("/feed", show_feed),
        Route("/feed/faults", script_fault, methods=["POST"], middleware=[pages.OWN_FORM]),
        Route("/media/{id}", show_media),
        Route("/pin/{id}/", show_pin),
        Route("/pin/{id}", show_pin),
        Route("/{username}/", show_account),
    ]


async def show_feed(request: Request) -> Response:
    pinterest = _pinterest(request)
    up = [pin for pin in reversed(pinterest.pins) if pin.deleted_at is None][:SHOWN_PINS]
    by_board: dict[str, list[PinView]] = {}
    for pin in up:
        by_board.setdefault(pin.board_id, []).append(_view(pinterest, pin))
    empty = [board for board in pinterest.boards.values() if not board.sandbox and not pinterest.pins_on(board)]
    return page(
        "pinterest_feed.html",
        boards=[(pins[0].board, pinterest.accounts[pins[0].board.owner_id], pins) for pins in by_board.values()],
        empty=[(board, pinterest.accounts[board.owner_id]) for board in empty[:20]],
        scripts=pages.fault_labels(FAULTS),
        scripted=pages.chosen_fault_label(FAULTS, request),
        up="../",
    )


async def show_account(request: Request) -> Response:
    """One page shows the boards of all accounts."""
    found = _pinterest(request).account_named(request.path_params["username"])
    return RedirectResponse("../feed", 303) if found else page("pinterest_pin.html", 404, shown=None, up="../../")


async def script_fault(request: Request) -> Response:
    return await pages.script_fault(_pinterest(request), FAULTS, request)


async def show_pin(request: Request) -> Response:
    pinterest = _pinterest(request)
    pin = pinterest.find_pin(request.path_params["id"])
    up = "../../../" if request.url.path.endswith("/") else "../../"
    shown = _view(pinterest, pin) if pin else None
    return page("pinterest_pin.html", 200 if pin else 404, shown=shown, up=up)


async def show_media(request: Request) -> Response:
    pinterest, media_id = _pinterest(request), request.path_params["id"]
    image, video = pinterest.pictures.get(media_id), pinterest.media.get(media_id)
    mime_type = image.mime_type if image else video.mime_type if video else ""
    return media_response(request, pinterest.cache.get(media_id), mime_type)


def _pinterest(request: Request) -> PinterestSandbox:
    pinterest: PinterestSandbox = request.app.state.world.pinterest
    return pinterest


def _view(pinterest: PinterestSandbox, pin: Pin) -> PinView:
    board = pinterest.boards[pin.board_id]
    ids = [*(one.id for one in pin.pictures), *([pin.film_id] if pin.film_id else [])]
    video = pinterest.media.get(pin.film_id or "")
    return PinView(
        pin,
        board,
        board.sections.get(pin.section_id or "", ""),
        pinterest.accounts[pin.account_id].business_name,
        pin.film_id or "",
        video.mime_type if video else "",
        (urlsplit(pin.link).hostname or "").removeprefix("www.") if pin.link else "",
        frozenset(one for one in ids if pinterest.cache.get(one) is not None),
    )
