"""Boards: what a pin is put on. Named by id, which nobody knows by heart, so that a wrong one is found before anything
is uploaded; and listed for the owner to choose from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.error_table import Reason
from socialpub.providers.errors import NoAnswer, Rejected
from socialpub.providers.http import Http
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome, Refused
from socialpub.providers.pinterest.client import GetPage, call, id_of, pages, refusal
from socialpub.providers.pinterest.errors import DENIED, FROM_LIST, REQUEST_ID, TABLE
from socialpub.providers.responses import HttpResponse, json_object, text_at

OWNER_SECONDS = 15.0
"""Of a call that an owner waits for: nobody looks at an empty page for longer."""


@dataclass(frozen=True, slots=True)
class Board:
    id: str
    name: str
    privacy: str | None = None
    """`PUBLIC`, `PROTECTED`, `SECRET`; None when Pinterest did not say."""
    pin_count: int | None = None


@dataclass(frozen=True, slots=True)
class BoardSection:
    id: str
    name: str


def list_boards(http: Http, api: str, token: str) -> list[Board]:
    """Every board that a pin can be put on, in Pinterest's order. Boards for ads only are left out. Raises `errors.py`.

    A board that was made a moment ago may be missing.
    """
    return [
        Board(
            board_id,
            text_at(found, "name") or "",
            text_at(found, "privacy"),
            _count(found, "pin_count"),
        )
        for found in _items(_getter(http, token), f"{api}/boards")
        if (board_id := id_of(found, "id")) and found.get("is_ads_only") is not True
    ]


def list_sections(http: Http, api: str, token: str, board_id: str) -> list[BoardSection]:
    """The sections of one board. Raises `errors.py`."""
    return [
        BoardSection(section_id, text_at(found, "name") or "")
        for found in _items(_getter(http, token), f"{api}/boards/{board_id}/sections")
        if (section_id := id_of(found, "id"))
    ]


def check_board(job: Job, section: PinterestSection) -> Outcome:
    """Whether the board, and the section where one is named, are there."""
    api, board_id = section.api_url, job.options["boardId"]
    response = call(job, "GET", f"{api}/boards/{board_id}")
    if not response.ok:
        rejection = TABLE.classify(response)
        if rejection.reason is Reason.DENIED:
            # Apps may write where they may not read: the pin itself will tell.
            return Done(job.memo)
        if rejection.reason is Reason.GONE:
            return Refused(
                f"Pinterest knows no board {board_id}: it was deleted, belongs to the other environment (sandbox or "
                f"production), or boardId is wrong. {FROM_LIST}",
                rejection.code,
            )
        return refusal(job, rejection)
    found = json_object(response)
    if id_of(found, "id") is None:
        raise NoAnswer("Pinterest's board could not be read.", request_id=response.headers.get(REQUEST_ID))
    if found.get("is_ads_only") is True:
        return Refused(f"Board {board_id} is for ads only: choose another one. {FROM_LIST}")
    section_id = job.options.get("boardSectionId")
    return Done(job.memo) if section_id is None else _check_section(job, api, board_id, section_id)


def _check_section(job: Job, api: str, board_id: str, section_id: str) -> Outcome:
    def get(url: str, params: dict[str, str]) -> HttpResponse:
        return call(job, "GET", url, params=params)

    try:
        known = {id_of(found, "id") for found in _items(get, f"{api}/boards/{board_id}/sections")}
    except Rejected as error:
        if DENIED in error.message:
            return Done(job.memo)
        return Refused(error.message, error.code, error.reauth)
    if section_id in known:
        return Done(job.memo)
    return Refused(
        f"Board {board_id} has no section {section_id}: leave out boardSectionId or give the id of one of its "
        f"{len(known)} sections.",
        "2031",
    )


def _items(get: GetPage, url: str) -> Iterator[dict[str, Any]]:
    for items, _ in pages(get, url):
        yield from items


def _getter(http: Http, token: str) -> GetPage:
    def get(url: str, params: dict[str, str]) -> HttpResponse:
        return http.call("GET", url, token=token, params=params, deadline_seconds=OWNER_SECONDS)

    return get


def _count(found: dict[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int else None
