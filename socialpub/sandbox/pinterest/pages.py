"""Pinterest as its readers see it: boards with their pins, and a page for each pin."""

from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.pages import NetworkPages, page
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox

SHOWN_PINS, SHOWN_EMPTY_BOARDS = 200, 20


class PinterestPages(NetworkPages[PinterestSandbox]):
    name = "pinterest"
    faults = {  # noqa: RUF012  # read only
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

    def own_routes(self) -> list[Route]:
        return [
            Route("/pin/{id}/", self.show_pin),
            Route("/pin/{id}", self.show_pin),
            Route("/{username}/", self.show_account),
        ]

    async def show_feed(self, request: Request) -> Response:
        pinterest = self.network(request)
        by_board: dict[str, list[dict[str, Any]]] = {}
        for pin in pinterest.pins[: -SHOWN_PINS - 1 : -1]:
            by_board.setdefault(pin.board_id, []).append(_view(pinterest, pin))
        empty = [board for board in pinterest.boards.values() if not pinterest.pins_on(board)]
        return page(
            "pinterest_feed.html",
            boards=[
                (pins[0]["board"], pinterest.accounts[pins[0]["board"].owner_id], pins) for pins in by_board.values()
            ],
            empty=[(board, pinterest.accounts[board.owner_id]) for board in empty[:SHOWN_EMPTY_BOARDS]],
            up="../",
            **self.fault_form(request),
        )

    async def show_account(self, request: Request) -> Response:
        """Redirect to the feed: it shows the boards of all accounts."""
        found = self.network(request).account_named(request.path_params["username"])
        return RedirectResponse("../feed", 303) if found else page("pinterest_pin.html", 404, shown=None, up="../../")

    async def show_pin(self, request: Request) -> Response:
        pin = self.network(request).find_pin(request.path_params["id"])
        up = "../../../" if request.url.path.endswith("/") else "../../"
        shown = _view(self.network(request), pin) if pin else None
        return page("pinterest_pin.html", 200 if pin else 404, shown=shown, up=up)

    def media(self, network: PinterestSandbox, media_id: str) -> tuple[bytes | None, str]:
        found = network.pictures.get(media_id) or network.media.get(media_id)
        return network.cache.get(media_id), found.mime_type if found else ""


def _view(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    ids = [*(one.id for one in pin.pictures), *([pin.film_id] if pin.film_id else [])]
    return {
        "pin": pin,
        "board": board,
        "section": board.sections.get(pin.section_id or "", ""),
        "author": pinterest.accounts[pin.account_id].business_name,
        "film_id": pin.film_id or "",
        "link_host": (urlsplit(pin.link).hostname or "").removeprefix("www.") if pin.link else "",
        "available": {one for one in ids if pinterest.cache.get(one) is not None},
    }
