"""The public pages of Pinterest: a feed by boards, and a page for each pin."""

from typing import Any, ClassVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from socialpub.sandbox.feeds import FaultChoices, NetworkPages
from socialpub.sandbox.pages import page
from socialpub.sandbox.pinterest.models import Pin
from socialpub.sandbox.pinterest.network import PinterestSandbox

CREATE = "create_pin"
SHOWN_PINS, SHOWN_EMPTY_BOARDS = 200, 20


class PinterestPages(NetworkPages[PinterestSandbox]):
    name = "pinterest"
    faults: ClassVar[FaultChoices] = {
        "2787": (
            CREATE, "creates the pin, but responds with 400 code 2787", "refuses",
            {"code": "2787", "after_effect": True},
        ),
        "timeout_after": (CREATE, "creates the pin, but never responds", "times_out_after_effect", {}),
        "timeout_before": (CREATE, "creates no pin and never responds", "times_out_before_effect", {}),
        "conflict": (CREATE, "conflicts with another write to the board (409)", "refuses", {"code": "conflict"}),
        "spam": (CREATE, "is blocked as spam", "refuses", {"code": "spam"}),
        "limited": (CREATE, "is rate-limited for 60 seconds", "rate_limited", {"seconds": 60}),
        "trial": (CREATE, "is refused: a trial app cannot create pins here", "refuses", {"code": "trial"}),
    }  # fmt: skip

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
            by_board.setdefault(pin.board_id, []).append(_pin_view(pinterest, pin))
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
        shown = _pin_view(self.network(request), pin) if pin else None
        return page("pinterest_pin.html", 200 if pin else 404, shown=shown, up=up)


def _pin_view(pinterest: PinterestSandbox, pin: Pin) -> dict[str, Any]:
    board = pinterest.boards[pin.board_id]
    return {
        "pin": pin,
        "board": board,
        "section": board.sections.get(pin.section_id or "", ""),
        "author": pinterest.accounts[pin.account_id].business_name,
        "film_id": pin.film_id or "",
        "link_host": (urlsplit(pin.link).hostname or "").removeprefix("www.") if pin.link else "",
        "available": pinterest.cache,
    }
