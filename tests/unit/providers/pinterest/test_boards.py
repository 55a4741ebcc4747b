"""Boards: a wrong board is refused before any upload, and boards are listed."""

from pathlib import Path
from typing import Any, cast

import pytest

from socialpub.providers.base import Done, Refused, Wait
from socialpub.providers.http import Http
from socialpub.providers.pinterest.boards import Board, BoardSection
from socialpub.providers.pinterest.client import MAX_PAGES
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, Rejected, Throttled
from tests.unit.providers.pinterest.script import ADAPTER, BOARD, SECTION, Script, answer, error, image, run

FOUND = answer(200, {"id": BOARD, "name": "Summer prints", "is_ads_only": False})
DENIED = error(403, 29, "PINNER_DATA_ACCESS_DENIED: no")
NOT_PERMITTED = error(403, 29, "You are not permitted to access that resource.")


def page(*items: dict[str, Any], bookmark: str | None = None) -> HttpResponse:
    return answer(200, {"items": list(items), "bookmark": bookmark})


def check(tmp_path: Path, script: Script, **options: Any) -> Any:
    return run("board", script, image(tmp_path), **options)


def test_an_existing_board_lets_the_post_continue(tmp_path):
    script = Script(FOUND)
    assert check(tmp_path, script) == Done({"labels": {"boardId": "Summer prints"}})
    assert script.asked == [f"GET /boards/{BOARD}"]


def test_a_missing_board_is_named_with_the_place_of_the_ids(tmp_path):
    outcome = check(tmp_path, Script(error(404, 40, "Board not found.")))
    assert isinstance(outcome, Refused)
    assert BOARD in outcome.message
    assert "admin list-boards" in outcome.message
    assert outcome.code == "40"


def test_a_board_only_for_ads_accepts_no_posts(tmp_path):
    outcome = check(tmp_path, Script(answer(200, {"id": BOARD, "is_ads_only": True})))
    assert isinstance(outcome, Refused)
    assert "ads" in outcome.message


def test_a_section_is_searched_on_every_page(tmp_path):
    script = Script(FOUND, page({"id": "1", "name": "a"}, bookmark="b=1&"), page({"id": SECTION, "name": "b"}))
    labels = {"boardId": "Summer prints", "boardSectionId": "b"}
    assert check(tmp_path, script, boardSectionId=SECTION) == Done({"labels": labels})
    assert [call.params for call in script.calls[1:]] == [
        {"page_size": "250"},
        {"page_size": "250", "bookmark": "b=1&"},
    ]


def test_a_section_of_another_board_is_refused(tmp_path):
    outcome = check(tmp_path, Script(FOUND, page({"id": "1", "name": "a"})), boardSectionId=SECTION)
    assert isinstance(outcome, Refused)
    assert SECTION in outcome.message
    assert "boardSectionId" in outcome.message


@pytest.mark.parametrize("refusal", [DENIED, NOT_PERMITTED, error(403, 403, "Not authorized."), error(403, 2626)])
@pytest.mark.parametrize(("before", "memo"), [([], {}), ([FOUND], {"labels": {"boardId": "Summer prints"}})])
def test_after_a_refused_read_of_the_board_the_create_call_decides(tmp_path, before, memo, refusal):
    assert check(tmp_path, Script(*before, refusal), boardSectionId=SECTION) == Done(memo)


def test_other_refusals_of_the_section_list_end_the_post(tmp_path):
    outcome = check(tmp_path, Script(FOUND, error(403, 3, "Missing scope boards:read")), boardSectionId=SECTION)
    assert isinstance(outcome, Refused)
    assert outcome.reauth


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, 2), AuthExpired),
        (error(429, 8), Throttled),
        (error(502, 0), NoAnswer),
        (answer(200, b"<html>"), NoAnswer),
        (answer(404, b"<html>"), NoAnswer),
        (answer(403, b""), NoAnswer),
        (answer(401, {"message": "Unauthorized"}), NoAnswer),
    ],
)
def test_an_error_of_the_board_query_is_no_verdict(tmp_path, reply, kind):
    with pytest.raises(kind):
        check(tmp_path, Script(reply))
    with pytest.raises(kind):
        check(tmp_path, Script(FOUND, reply), boardSectionId=SECTION)


def test_a_busy_board_is_waited_for(tmp_path):
    assert isinstance(check(tmp_path, Script(error(409, 409))), Wait)


def test_boards_are_listed_from_every_page_without_those_for_ads():
    script = Script(
        page({"id": "2", "name": "Prints", "privacy": "PUBLIC", "pin_count": 14}, bookmark="next"),
        page({"id": "3", "name": "Ads", "is_ads_only": True}, {"id": "4", "name": None, "pin_count": None}, "noise"),  # type: ignore[arg-type]
    )
    boards = ADAPTER.list_boards(cast(Http, script), "pina_1")
    assert boards == [Board("2", "Prints", "PUBLIC", 14), Board("4", "", None, None)]
    assert script.asked == ["GET /boards", "GET /boards"]
    assert all(call.request["token"] == "pina_1" for call in script.calls)


def test_sections_are_listed():
    script = Script(page({"id": "7", "name": "Blue"}))
    assert ADAPTER.list_sections(cast(Http, script), "pina_1", BOARD) == [BoardSection("7", "Blue")]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, 2), AuthExpired),
        (error(403, 403), Rejected),
        (DENIED, Rejected),
        (answer(200, b"<html>"), NoAnswer),
        (answer(200, {"items": None}), NoAnswer),
        (answer(403, b"<html>"), NoAnswer),
        (answer(401, b""), NoAnswer),
    ],
)
def test_a_list_that_was_not_answered_is_an_error(reply, kind):
    with pytest.raises(kind):
        ADAPTER.list_boards(cast(Http, Script(reply)), "pina_1")


def test_a_list_with_a_loop_or_without_an_end_is_an_error():
    with pytest.raises(NoAnswer):
        ADAPTER.list_boards(cast(Http, Script(page(bookmark="a"), page(bookmark="a"))), "pina_1")
    endless = Script(*(page({"id": str(n), "name": "x"}, bookmark=str(n)) for n in range(MAX_PAGES)))
    assert len(ADAPTER.list_boards(cast(Http, endless), "pina_1")) == MAX_PAGES


@pytest.mark.parametrize(("secret", "privacy"), [(False, "PUBLIC"), (True, "SECRET")])
@pytest.mark.parametrize("status", [200, 201])
def test_a_board_is_created_as_the_document_describes_it(secret, privacy, status):
    found = {"id": "2", "name": "Prints", "privacy": privacy, "owner": {"username": "studio"}, "pin_count": 0}
    script = Script(answer(status, found))
    assert ADAPTER.create_board(cast(Http, script), "pina_1", "Prints", secret=secret) == Board(
        "2", "Prints", privacy, 0, "studio"
    )
    assert script.asked == ["POST /boards"]
    assert script.calls[0].json == {"name": "Prints", "privacy": privacy}


def test_a_section_is_created():
    script = Script(answer(201, {"id": "7", "name": "Blue"}))
    assert ADAPTER.create_section(cast(Http, script), "pina_1", BOARD, "Blue") == BoardSection("7", "Blue")
    assert script.asked == [f"POST /boards/{BOARD}/sections"]
    assert script.calls[0].json == {"name": "Blue"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(400, 400, "Invalid board parameters: duplicate name."), Rejected),
        (error(409, 409), Rejected),
        (error(401, 2), AuthExpired),
        (error(429, 8), Throttled),
        (error(500, 500), NoAnswer),
        (answer(201, {"name": "Prints"}), NoAnswer),
        (answer(201, b"<html>"), NoAnswer),
        (answer(400, b"<html>"), NoAnswer),
    ],
)
def test_only_a_refusal_in_pinterests_own_form_means_that_nothing_was_created(reply, kind):
    with pytest.raises(kind):
        ADAPTER.create_board(cast(Http, Script(reply)), "pina_1", "Prints", secret=False)
    with pytest.raises(kind):
        ADAPTER.create_section(cast(Http, Script(reply)), "pina_1", BOARD, "Blue")
