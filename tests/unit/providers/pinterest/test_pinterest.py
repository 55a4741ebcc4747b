"""The checks and notes of a pin, and the account's identity."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.pinterest import Pinterest
from socialpub.providers.pinterest.client import SANDBOX_API
from socialpub.providers.responses import (
    AppRefused,
    AuthExpired,
    HttpResponse,
    NoAnswer,
    ProviderError,
    Rejected,
    Throttled,
)
from tests.support.scripted_http import Answering

OWNER = Account("1", "owner")
BOARD = {"boardId": "2000000000000000001"}
ALL = frozenset({"user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write"})


@pytest.fixture
def pinterest() -> Pinterest:
    return Pinterest(
        PinterestSection(client_id="app", client_secret=SecretStr("app-secret"), api_url="https://pin.test/v5")
    )


def image(position: int = 0, **facts: Any) -> MediaFile:
    mime_type, alt = facts.pop("mime_type", "image/jpeg"), facts.pop("alt", None)
    size = {"width": 1000, "height": 1500, **facts}
    return MediaFile(position, "image", mime_type, 1000, Path("image"), "image.jpg", alt=alt, facts=size)


def video(mime_type: str = "video/mp4", **facts: Any) -> MediaFile:
    good = {"width": 1080, "height": 1920, "duration_seconds": 30.0}
    return MediaFile(0, "video", mime_type, 1000, Path("video"), "video.mp4", facts={**good, **facts})


def found(
    pinterest: Pinterest, content: Content, options: dict[str, Any], account: Account = OWNER
) -> list[FieldError]:
    return pinterest.check(content, options, account)


@pytest.mark.parametrize("media", [("image",), ("image", "image"), ("image",) * 5, ("video",)])
def test_a_pin_without_any_fault_has_no_problem_and_no_note(pinterest, media):
    items = tuple(video() if kind == "video" else image(position) for position, kind in enumerate(media))
    content = Content("A poster", items)
    assert found(pinterest, content, BOARD) == []
    assert pinterest.notes(content, BOARD) == []


def test_a_pin_needs_a_board(pinterest):
    (problem,) = found(pinterest, Content("", (image(),)), {})
    assert problem.path == ("providerOptions", "pinterest", "boardId")


@pytest.mark.parametrize("board", ["Summer prints", "", 2000, "12a"])
def test_a_boards_name_is_not_its_id(pinterest, board):
    options, (problem,) = pinterest.read_options({"board_id": board})
    assert options == {}
    assert "list-boards" in problem.message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"link": "example.com"}, "complete http or https URL"),
        ({"link": "javascript:alert(1)"}, "complete http or https URL"),
        ({"link": "http://[::1"}, "complete http or https URL"),
        ({"link": "https://example.com/" + "x" * 2048}, "at most 2048"),
        ({"dominantColor": "red"}, "#6E7874"),
        ({"title": "x" * 101}, "at most 100 characters, but has 101"),
        ({"coverImageKeyFrameTime": 1.5}, "whole seconds"),
        ({"aiDisclosures": ["AI_MODIFED"]}, "did you mean AI_MODIFIED?"),
    ],
)
def test_a_wrong_value_is_named(pinterest, given, says):
    options, (problem,) = pinterest.read_options(given)
    assert options == {}
    assert says in problem.message


@pytest.mark.parametrize(
    ("media", "path", "says"),
    [
        ((), ("media",), "has no media"),
        (tuple(image(i) for i in range(6)), ("media",), "has 6 images"),
        ((video(), image(1)), ("media",), "a video among 2 media items"),
        ((image(0), image(1, width=900)), ("media", 1), "900×1500"),
        ((video("video/webm"),), ("media", 0), "not video/webm"),
        ((video(duration_seconds=2.0),), ("media", 0), "lasts 2.0"),
        ((video(duration_seconds=901.0),), ("media", 0), "lasts 901.0"),
        ((video(width=2000, height=1000),), ("media", 0), "2000×1000"),
        ((video(video_codec="av1"),), ("media", 0), "H.264 or HEVC (H.265), not in AV1"),
        ((image(alt="x" * 501),), ("media", 0, "alt"), "at most 500 characters. This alt text has 501"),
    ],
)
def test_media_beyond_the_limits_are_named_with_limit_and_found_value(pinterest, media, path, says):
    (problem,) = found(pinterest, Content("", media), BOARD)
    assert problem.path == path
    assert says in problem.message


@pytest.mark.parametrize("facts", [{"video_codec": "h264"}, {"video_codec": "hevc"}, {}])
def test_a_video_of_a_codec_that_pinterest_takes_or_that_is_not_known_has_no_problem(pinterest, facts):
    assert found(pinterest, Content("", (video(**facts),)), BOARD) == []


@pytest.mark.parametrize(
    ("link", "host"),
    [
        *(("https://bit.ly/a", "bit.ly"), ("HTTP://WWW.TinyURL.com/a", "tinyurl.com"), ("https://t.co", "t.co")),
        *(("https://maps.app.goo.gl/a", "maps.app.goo.gl"), ("http://localhost:8000/a", "localhost")),
        *(("http://nas/a", "nas"), ("http://nas.local/a", "nas.local"), ("https://a.lan./", "a.lan.")),
        *(("http://192.168.1.5/a", "192.168.1.5"), ("http://[fe80::1]:80/a", "fe80::1"), ("http://1.1.1.1", "1.1.1.1")),
        *(
            ("http://2130706433/", "2130706433"),
            ("http://0x7f.0.0.0x1/", "0x7f.0.0.0x1"),
            ("http://a.home.arpa", "a.home.arpa"),
        ),
    ],
)
def test_a_short_link_and_a_link_to_a_private_host_are_notes(pinterest, link, host):
    one, *more = pinterest.notes(Content("", (image(),)), {**BOARD, "link": link})
    assert one.startswith("The option link ")
    assert f"{host})" in one or f"{host}," in one
    assert "“Blocked links and websites”" in one
    in_text = pinterest.notes(Content(f"See（{link}）, {link}?a=1", (image(),)), BOARD)
    assert [note.replace("The description", "The option link") for note in in_text] == [one]
    assert more == []


@pytest.mark.parametrize(
    "link", ["https://example.com/bit.ly", "https://notbit.ly.example.com", "https://münchen.de/a", ""]
)
def test_a_link_to_a_public_page_is_no_note(pinterest, link):
    assert pinterest.notes(Content(link, (image(),)), {**BOARD, "link": link}) == []


def test_lost_details_are_notes(pinterest):
    for mime_type in ("image/gif", "image/png", "image/webp"):
        moving = image(mime_type=mime_type, frames=2)
        assert found(pinterest, Content("", (moving,)), BOARD) == []
        assert "first frame" in pinterest.notes(Content("", (moving,)), BOARD)[0]
    pair = (image(0, alt="One"), image(1, alt="x" * 501))
    assert found(pinterest, Content("", pair), BOARD) == []
    assert "Media item 2: a pin has only one alt text" in pinterest.notes(Content("", pair), BOARD)[0]
    assert "150×150" in pinterest.notes(Content("", (image(width=150, height=150),)), BOARD)[0]


def test_pinterests_own_sandbox_accepts_no_videos():
    there = Pinterest(PinterestSection(api_url=SANDBOX_API))
    assert found(there, Content("", (image(),)), BOARD) == []
    (problem,) = found(there, Content("", (video(),)), BOARD)
    assert problem.path == ("media", 0)


def test_a_long_description_is_named(pinterest):
    (problem,) = found(pinterest, Content("x" * 801, (image(),)), BOARD)
    assert problem.path == ("post", "body")
    assert "801" in problem.message


def test_a_cover_beyond_the_end_is_only_a_note(pinterest):
    content = Content("", (video(),))
    options = {**BOARD, "coverImageKeyFrameTime": 3000}
    assert found(pinterest, content, options) == []
    assert "last frame" in pinterest.notes(content, options)[0]


def test_all_four_scopes_are_needed_and_the_missing_one_is_named(pinterest):
    assert pinterest.auth.can_publish(ALL)
    assert pinterest.auth.can_publish(frozenset())
    lacking = ALL - {"pins:write"}
    assert not pinterest.auth.can_publish(lacking)
    assert "pins:write" in pinterest.auth.missing_scopes(lacking)[0]
    (problem,) = found(pinterest, Content("", (image(),)), BOARD, Account("1", scopes=lacking))
    assert "pins:write" in problem.message


def test_an_account_is_known_by_its_id_or_else_by_its_name(pinterest):
    account = {"id": "10", "username": "studio", "business_name": "Studio Nord", "account_type": "BUSINESS"}
    http = Answering(account, {"username": "old"})
    identity = pinterest.auth.identify(http, Account("", scopes=ALL), "pina_1")
    assert (identity.account_id, identity.username, identity.name) == ("10", "studio", "Studio Nord")
    assert identity.facts == {"account_type": "BUSINESS"}
    assert http.calls[0]["url"] == "https://pin.test/v5/user_account"
    assert pinterest.auth.identify(http, Account("", scopes=ALL), "pina_1").account_id == "old"


@pytest.mark.parametrize(
    ("status", "body", "kind", "reauth"),
    [
        (401, {"code": 2, "message": "Authentication failed."}, AuthExpired, None),
        (401, {"code": 3, "message": "consumer type is not supported"}, AppRefused, None),
        (401, {"code": 3, "message": "Missing scopes: pins:read"}, Rejected, True),
        (403, {"code": 3, "message": "Missing scopes"}, Rejected, True),
        (403, {"code": 29, "message": "not permitted"}, Rejected, False),
        (404, {"code": 40, "message": "Board not found."}, Rejected, False),
        (500, {"code": 0, "message": "?"}, NoAnswer, None),
        (503, {"code": 4197, "message": "ramped down"}, Throttled, None),
    ],
)
def test_an_error_is_read_by_status_and_code_together(pinterest, status, body, kind, reauth):
    answer = HttpResponse(status, {"x-pinterest-rid": "rid1"}, json.dumps(body).encode())
    with pytest.raises(ProviderError) as caught:
        pinterest.auth.identify(Answering(answer), Account("", scopes=ALL), "pina_1")
    assert type(caught.value) is kind
    assert caught.value.request_id == "rid1"
    assert getattr(caught.value, "reauth", None) == reauth
