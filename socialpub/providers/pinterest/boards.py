"""Lists and creates boards for their owner, and checks the board of a post.

A post contains the id of its board. The check comes before any upload.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import LABELS, Done, Job, Outcome, Refused
from socialpub.providers.http import Http
from socialpub.providers.pinterest.client import REQUEST_ID, TABLE, GetPage, board_ids, call, pages, read_id, refusal
from socialpub.providers.responses import HttpResponse, NoAnswer, Reason, Rejected, json_object, label_at, text_at

PUBLIC, SECRET = "PUBLIC", "SECRET"
OWNER_SECONDS = 15.0
"""The timeout of a call for a page."""


@dataclass(frozen=True, slots=True)
class Board:
    id: str
    name: str
    privacy: str | None = None
    """`PUBLIC`, `PROTECTED` or `SECRET`; None: not in Pinterest's response."""
    pin_count: int | None = None
    owner: str | None = None
    """The username of the owner, which may be another account. None: not in Pinterest's response."""


@dataclass(frozen=True, slots=True)
class BoardSection:
    id: str
    name: str


class BoardApi:
    """The part of Pinterest that lists and creates boards for their owner. Every method raises `ProviderError`."""

    section: PinterestSection

    def list_boards(self, http: Http, token: str) -> list[Board]:
        """Return the boards that accept pins, in Pinterest's order, without boards for ads only.

        A new board may be missing for a moment.
        """
        return [
            board
            for item in _items(_getter(http, token), f"{self.section.api_url}/boards")
            if (board := _read_board(item)) is not None and item.get("is_ads_only") is not True
        ]

    def list_sections(self, http: Http, token: str, board_id: str) -> list[BoardSection]:
        return [
            BoardSection(section_id, label_at(item, "name") or "")
            for item in _items(_getter(http, token), f"{self.section.api_url}/boards/{board_id}/sections")
            if (section_id := read_id(item, "id"))
        ]

    def create_board(self, http: Http, token: str, name: str, *, secret: bool) -> Board:
        """Create a board. Pinterest refuses a name that the account already uses.

        The call has no idempotency key: after `NoAnswer` the board may exist.
        """
        body = {"name": name, "privacy": SECRET if secret else PUBLIC}
        board = _read_board(_created(http, f"{self.section.api_url}/boards", token, body))
        if board is None:
            raise NoAnswer("Pinterest's response does not contain the board's id.")
        return board

    def create_section(self, http: Http, token: str, board_id: str, name: str) -> BoardSection:
        section = _created(http, f"{self.section.api_url}/boards/{board_id}/sections", token, {"name": name})
        section_id = read_id(section, "id")
        if section_id is None:
            raise NoAnswer("Pinterest's response does not contain the section's id.")
        return BoardSection(section_id, label_at(section, "name") or name)


def _created(http: Http, url: str, token: str, body: dict[str, str]) -> dict[str, Any]:
    response = http.call("POST", url, token=token, json=body, deadline_seconds=OWNER_SECONDS)
    if not response.ok:
        raise TABLE.classify(response)
    return json_object(response)


def _read_board(found: dict[str, Any]) -> Board | None:
    board_id, owner = read_id(found, "id"), found.get("owner")
    if board_id is None:
        return None
    username = label_at(owner, "username") if isinstance(owner, dict) else None
    name, privacy, count = label_at(found, "name") or "", text_at(found, "privacy"), found.get("pin_count")
    return Board(board_id, name, privacy, count if type(count) is int else None, username)


def check_board(job: Job, section: PinterestSection) -> Outcome:
    api, board_id = section.api_url, job.options["boardId"]
    response = call(job, "GET", f"{api}/boards/{board_id}")
    if not response.ok:
        rejection = TABLE.classify(response)
        if _decides_nothing(rejection):
            return Done(job.memo)
        if rejection.reason is Reason.GONE:
            return Refused(
                f"Board {board_id} does not exist. The board was deleted, belongs to the other environment (sandbox or "
                f"production), or boardId is wrong. {board_ids()}",
                rejection.code,
                content=True,
            )
        return refusal(job, rejection)
    board = json_object(response)
    if read_id(board, "id") is None:
        raise NoAnswer("Pinterest's board could not be read.", request_id=response.headers.get(REQUEST_ID))
    if board.get("is_ads_only") is True:
        return Refused(f"Board {board_id} is only for ads. Choose another board. {board_ids()}", content=True)
    labels = {"boardId": label_at(board, "name") or board_id}
    section_id = job.options.get("boardSectionId")
    if section_id is None:
        return Done({**job.memo, LABELS: labels})
    return _check_section(job, api, board_id, section_id, labels)


def _decides_nothing(refused: Rejected) -> bool:
    """Return whether to let the call that creates the pin decide: an app may write where it may not read."""
    return refused.status == 403 and not refused.reauth


def _check_section(job: Job, api: str, board_id: str, section_id: str, labels: dict[str, str]) -> Outcome:
    def get(url: str, params: dict[str, str]) -> HttpResponse:
        return call(job, "GET", url, params=params)

    try:
        names = {
            read_id(section, "id"): label_at(section, "name")
            for section in _items(get, f"{api}/boards/{board_id}/sections")
        }
    except Rejected as error:
        if _decides_nothing(error):
            return Done({**job.memo, LABELS: labels})
        return Refused(error.message, error.code, error.reauth, content=error.content)
    if section_id in names:
        return Done({**job.memo, LABELS: {**labels, "boardSectionId": names[section_id] or section_id}})
    return Refused(
        f"Board {board_id} does not contain section {section_id}. Remove boardSectionId, or use the id of one "
        f"of the board's {len(names)} sections.",
        "2031",
        content=True,
    )


def _items(get: GetPage, url: str) -> Iterator[dict[str, Any]]:
    for items, _ in pages(get, url):
        yield from items


def _getter(http: Http, token: str) -> GetPage:
    def get(url: str, params: dict[str, str]) -> HttpResponse:
        return http.call("GET", url, token=token, params=params, deadline_seconds=OWNER_SECONDS)

    return get
