"""Read-backs of a board: our pin is found, other pins are ignored, and only a complete list counts."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.providers.base import CannotTell, Published, Readback
from socialpub.providers.responses import AppRefused, AuthExpired, HttpResponse, NoAnswer, Rejected, Throttled
from tests.support.scripted_calls import NOW
from tests.unit.providers.pinterest.script import ADAPTER, BOARD, SECTION, Script, answer, error, image, job, video

COMMIT = NOW - timedelta(minutes=1)
SINCE = COMMIT - timedelta(minutes=2)


def shown(pin_id: str, seconds: float = 1.0, **fields: Any) -> dict[str, Any]:
    made = (COMMIT + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    empty = {"title": None, "description": None, "link": None, "alt_text": None}
    return {"id": pin_id, "created_at": made, "media": {"media_type": "image"}, **empty, **fields}


def page(*pins: Any, bookmark: str | None = None) -> HttpResponse:
    return answer(200, {"items": list(pins), "bookmark": bookmark})


def read_back(tmp_path: Path, script: Script, **more: Any) -> Readback | CannotTell:
    media = more.pop("media", (image(tmp_path, alt=more.pop("alt", None)),))
    since = more.pop("since", lambda: SINCE)
    found = ADAPTER.recover(job(script, *media, since=since, **more))
    assert isinstance(found, Readback | CannotTell)
    return found


def found(tmp_path: Path, *pins: Any, **more: Any) -> list[str | None]:
    outcome = read_back(tmp_path, Script(page(*pins)), **more)
    assert isinstance(outcome, Readback)
    return [pin.post_id for pin in outcome.candidates]


def similar(tmp_path: Path, *pins: Any, **more: Any) -> tuple[str, ...]:
    outcome = read_back(tmp_path, Script(page(*pins)), **more)
    assert isinstance(outcome, Readback)
    assert outcome.candidates == ()
    return outcome.similar


def test_one_page_of_the_board_is_one_read_back(tmp_path):
    script = Script(page(shown("9", title="Poster")))
    outcome = read_back(tmp_path, script, title="Poster")
    assert outcome == Readback((Published("9", "https://www.pinterest.com/pin/9/"),))
    assert script.asked == [f"GET /boards/{BOARD}/pins"]
    assert script.calls[0].params == {"page_size": "250"}


def test_an_empty_board_means_absent_now(tmp_path):
    assert read_back(tmp_path, Script(page())) == Readback(())


def test_there_is_no_read_back_before_a_commit(tmp_path):
    with pytest.raises(ValueError, match="commit"):
        ADAPTER.recover(job(Script(), image(tmp_path)))


TEXTS: dict[str, Any] = {
    "text": "Two colours.\n\n30 × 40",
    "title": "Poster",
    "link": "https://Studio.example/p/",
    "alt": "A",
}
SAME = {"title": "Poster", "description": "Two colours. 30 × 40", "link": "http://studio.example/p", "alt_text": " A "}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"description": "  Two colours.\r\n\r\n30 &times; 40 "},
        {"description": "Two colours. 30 \u200b×\ufe0f 40"},
        {"link": "https://www.studio.example/p/#top"},
        {"link": "https://STUDIO.example:443/p"},
        {"title": None, "description": None, "link": None, "alt_text": None},
        {"alt_text": None},
        {"media": {"media_type": "something new"}},
        {"media": None},
        {"board_id": BOARD, "board_section_id": None},
        {"board_id": None},
    ],
)
def test_a_pin_is_ours_when_none_of_its_fields_differs(tmp_path, changed):
    assert found(tmp_path, shown("9", **{**SAME, **changed}), **TEXTS) == ["9"]


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Another"},
        {"title": ""},
        {"description": "Two colours."},
        {"link": "https://studio.example/p?x=1"},
        {"alt_text": "B"},
    ],
)
def test_a_pin_of_our_kind_with_other_texts_rules_out_absent(tmp_path, changed):
    assert similar(tmp_path, shown("9", **{**SAME, **changed}), **TEXTS) == ("9",)


def test_a_pin_of_another_member_is_not_ours(tmp_path):
    assert similar(tmp_path, shown("9", is_owner=False, **SAME), **TEXTS) == ("9",)
    assert found(tmp_path, shown("9", is_owner=True, **SAME), **TEXTS) == ["9"]


def test_a_text_where_none_was_sent_differs(tmp_path):
    for name in ("title", "description", "link", "alt_text"):
        assert similar(tmp_path, shown("9", **{name: "https://a.test"})) == ("9",)


@pytest.mark.parametrize(
    "changed",
    [
        {"media": {"media_type": "video"}},
        {"media": {"media_type": "multiple_images"}},
        {"media": {"media_type": "multiple_mixed"}},
        {"board_id": "2000000000000000009"},
        {"board_section_id": "2100000000000000009"},
        {"created_at": "2026-11-21T11:56:59"},
    ],
)
def test_a_pin_of_another_kind_place_or_time_is_not_ours(tmp_path, changed):
    for words in ({}, {"title": "Another"}):
        assert similar(tmp_path, shown("9", **{**SAME, **changed, **words}), **TEXTS, boardSectionId=SECTION) == ()


def test_a_pin_in_a_section_is_found_in_the_list_of_its_board(tmp_path):
    script = Script(page(shown("9", board_section_id=SECTION), shown("8", board_section_id=None)))
    outcome = read_back(tmp_path, script, boardSectionId=SECTION)
    assert isinstance(outcome, Readback)
    assert [pin.post_id for pin in outcome.candidates] == ["8", "9"]
    assert read_back(tmp_path, Script(page()), boardSectionId=SECTION) == Readback(())


def test_of_several_pictures_a_pin_with_as_many_is_ours(tmp_path):
    media = (image(tmp_path, 0), image(tmp_path, 1), image(tmp_path, 2))

    def carousel(pin_id: str, items: Any) -> dict[str, Any]:
        return shown(pin_id, media={"media_type": "multiple_images", "items": items})

    pins = [carousel("1", [{}, {}]), carousel("2", [{}, {}, {}]), carousel("3", None), shown("4")]
    assert found(tmp_path, *pins, media=media) == ["2", "3"]


def test_absent_fields_prove_nothing(tmp_path):
    assert found(tmp_path, {"id": "9"}, **TEXTS) == ["9"]


def test_letters_written_in_two_ways_are_the_same(tmp_path):
    assert found(tmp_path, shown("9", title="café"), title="cafe\u0301") == ["9"]


@pytest.mark.parametrize(
    ("made", "is_ours"),
    [
        ("2026-11-21T11:59:01", True),
        ("2026-11-21T11:57:00", True),
        ("2026-11-21T11:56:59", False),
        ("2026-11-21T11:59:01Z", True),
        ("2026-11-21T12:59:01.123456+01:00", True),
        ("2026-11-20T23:59:01", False),
        ("yesterday", True),
        (None, True),
    ],
)
def test_an_older_pin_with_the_same_texts_is_not_ours(tmp_path, made, is_ours):
    assert bool(found(tmp_path, shown("9", created_at=made))) is is_ours


@pytest.mark.parametrize("made", ["yesterday", None, 5])
def test_a_pin_without_a_date_may_be_ours_and_narrows_nothing(tmp_path, made):
    assert similar(tmp_path, shown("9", created_at=made, title="Another")) == ("9",)
    script = Script(page(shown("9", 5), shown("8", created_at=made), shown("7", -4000), bookmark="more"))
    assert [pin.post_id for pin in read_back(tmp_path, script).candidates] == ["8", "9"]  # type: ignore[union-attr]


def test_dates_are_compared_with_the_clock_of_the_responses(tmp_path):
    script = Script(page(shown("9", -4000), shown("8", -5000), bookmark="a"), page())

    def since() -> Any:
        return SINCE if script.calls else SINCE - timedelta(days=1)

    assert read_back(tmp_path, script, since=since) == Readback(())
    assert len(script.calls) == 1, "all that follows is older still"


def test_several_candidates_are_returned_oldest_first(tmp_path):
    assert found(tmp_path, shown("30", 9), shown("200", 5), shown("9", 5)) == ["9", "200", "30"]


def test_a_pin_with_our_texts_comes_before_older_pins_without_texts(tmp_path):
    assert found(tmp_path, shown("8", 5), shown("9", 9, title="Poster"), title="Poster") == ["9", "8"]


def test_malformed_items_of_the_list_are_ignored(tmp_path):
    assert found(tmp_path, "noise", None, {"id": "x"}, {}, shown("9")) == ["9"]


def test_a_video_matches_only_videos(tmp_path):
    shown_video = {"media": {"media_type": "video"}}
    assert found(tmp_path, shown("8"), shown("9", **shown_video), media=(video(),)) == ["9"]


def test_a_list_from_new_to_old_is_left_once_it_is_past_the_commit(tmp_path):
    script = Script(page(shown("9", 5), shown("8", -4000), bookmark="more"))
    assert read_back(tmp_path, script) == Readback((Published("9", "https://www.pinterest.com/pin/9/"),))
    assert script.over


@pytest.mark.parametrize("first", [[-5000.0, -4000.0], [-4000.0], [-5000.0, -4000.0, -6000.0], [-4000.0, -4000.0]])
def test_a_board_in_any_other_order_is_read_to_its_end(tmp_path, first):
    pins = [shown(str(n), seconds) for n, seconds in enumerate(first, 100)]
    script = Script(page(*pins, bookmark="a"), page(shown("9")))
    outcome = read_back(tmp_path, script)
    assert isinstance(outcome, Readback)
    assert [pin.post_id for pin in outcome.candidates] == ["9"]
    assert script.calls[1].params["bookmark"] == "a"


def test_a_board_too_large_to_read_is_no_read_back(tmp_path):
    pages = [page(shown(str(n), n - 100_000), bookmark=str(n)) for n in range(10)]
    outcome = read_back(tmp_path, Script(*pages))
    assert isinstance(outcome, CannotTell)
    assert "https://www.pinterest.com/studio_nord/" in outcome.hint


def test_a_found_pin_counts_on_a_board_of_any_size(tmp_path):
    pages = [page(shown("9"), bookmark="0"), *(page(shown(str(n), -90_000), bookmark=str(n)) for n in range(1, 3))]
    outcome = read_back(tmp_path, Script(*pages))
    assert isinstance(outcome, Readback)
    assert [pin.post_id for pin in outcome.candidates] == ["9"]


@pytest.mark.parametrize("reply", [error(403, 29, "PINNER_DATA_ACCESS_DENIED"), error(404, 40), error(404, 404)])
def test_a_board_that_cannot_be_read_never_means_absent(tmp_path, reply):
    outcome = read_back(tmp_path, Script(reply))
    assert isinstance(outcome, CannotTell)
    assert BOARD in outcome.hint


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, 2), AuthExpired),
        (error(401, 3), AppRefused),
        (error(403, 403), Rejected),
        (error(429, 8), Throttled),
        (error(500, 0), NoAnswer),
        (error(400, 2787), NoAnswer),
        (answer(200, b"<html>"), NoAnswer),
        (answer(200, {"bookmark": None}), NoAnswer),
        (answer(404, b"<html>"), NoAnswer),
        (answer(403, b""), NoAnswer),
        (answer(401, b"<html>"), NoAnswer),
        (NoAnswer("cut"), NoAnswer),
    ],
)
def test_a_read_back_without_a_response_is_an_error(tmp_path, reply, kind):
    with pytest.raises(kind):
        read_back(tmp_path, Script(reply))
    with pytest.raises(kind):
        read_back(tmp_path, Script(page(shown("8", 9), bookmark="a"), reply), title="Poster")
