"""Pinterest as Pinterest's own Python library sees it: it asks over a socket, and it reads every answer.

Its models are made from Pinterest's API document and check the types of what comes back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from socialpub.sandbox import World
from tests.sandbox.files import MP4, base64_text, picture
from tests.sandbox.pinterest_sdk import PinterestRefusal, PinterestSdk

BOARD, IDEAS = "2000000000000000001", "2000000000000000002"
"""The boards of the account `demo`."""


@pytest.fixture
def sdk(world: World, server: str, tmp_path: Path) -> Iterator[PinterestSdk]:
    """The account `demo` with every scope but those for secret boards."""
    token = world.pinterest.grant("demo")["accessToken"]
    with PinterestSdk(tmp_path, f"{server}/pinterest/v5", access_token=token) as sdk:
        yield sdk


def image(**texts: str) -> dict[str, Any]:
    return {"content_type": "image/jpeg", "data": base64_text(picture()), **texts}


def pin(sdk: PinterestSdk, source: dict[str, Any] | None = None, **texts: str) -> Any:
    chosen = source or {"source_type": "image_base64", **image()}
    return sdk.call("create_pin", board_id=BOARD, media_source=chosen, **texts)


def test_the_account_and_its_boards(sdk: PinterestSdk) -> None:
    account = sdk.call("account")
    assert (account["username"], account["account_type"], account["board_count"]) == ("demo", "BUSINESS", 2)
    (boards,) = sdk.call("boards")
    assert [(board["id"], board["name"]) for board in boards] == [
        (BOARD, "Summer prints"),
        ("2000000000000000002", "Ideas"),
    ]
    board = sdk.call("board", board_id=BOARD)
    assert boards[0].items() <= board.items()
    assert board["created_at"] == "2026-01-05T09:00:00"


def test_the_library_walks_through_the_pages_of_boards(sdk: PinterestSdk) -> None:
    for name in ("Third", "Fourth", "Fifth"):
        sdk.call("create_board", name=name, description="Made by the library")
    pages = sdk.call("boards", page_size=2)
    assert [[board["name"] for board in page] for page in pages] == [
        ["Summer prints", "Ideas"],
        ["Third", "Fourth"],
        ["Fifth"],
    ]


def test_a_section_is_made_and_pinned_to(sdk: PinterestSdk) -> None:
    section = sdk.call("create_section", board_id=BOARD, name="Lino")
    ((posters, lino),) = sdk.call("sections", board_id=BOARD)
    assert (posters["name"], lino) == ("Posters", section)
    assert pin(sdk, board_section_id=section["id"])["board_section_id"] == section["id"]


def test_a_pin_is_made_and_listed(sdk: PinterestSdk, world: World) -> None:
    texts = {
        "title": "Poster no. 4",
        "description": "Two colours, 30 × 40 cm",
        "alt_text": "A lighthouse",
        "link": "https://studio.example/4",
        "dominant_color": "#6E7874",
    }
    made = pin(sdk, **texts)
    assert [one.id for one in world.pinterest.pins] == [made["id"]]
    assert texts.items() <= made.items()
    assert (made["board_id"], made["board_owner"], made["creative_type"]) == (BOARD, {"username": "demo"}, "REGULAR")
    assert made["media"]["images"]["originals"]["width"] == 200
    assert made["created_at"] == "2026-10-12T09:00:00"
    ((listed,),) = sdk.call("pins", board_id=BOARD)
    assert {"id": made["id"], **texts}.items() <= listed.items()


def test_several_images_make_one_pin_and_pages_of_pins_are_walked(sdk: PinterestSdk) -> None:
    series = {"source_type": "multiple_image_base64", "items": [image(title="One"), image(title="Two")]}
    first = pin(sdk, series, title="The series")
    assert (first["creative_type"], [one["title"] for one in first["media"]["items"]]) == ("CAROUSEL", ["One", "Two"])
    made = [first["id"], *(pin(sdk, title=f"Number {number}")["id"] for number in range(2))]
    pages = sdk.call("pins", board_id=BOARD, page_size=2)
    assert [[one["id"] for one in page] for page in pages] == [made[:0:-1], made[:1]]


def test_a_video_is_registered_uploaded_processed_and_pinned(sdk: PinterestSdk, world: World) -> None:
    world.pinterest.probes_video = False
    registered = sdk.call("register", media_type="video")
    media_id = registered["media_id"]
    assert sdk.call("media", media_id=media_id)["status"] == "registered"
    # The library stops here: the form goes to another host, without the library's token.
    sent = httpx2.post(
        registered["upload_url"],
        data=registered["upload_parameters"],
        files={"file": ("video.mp4", MP4)},
        trust_env=False,
    )
    assert sent.status_code == 204, sent.text
    assert [sdk.call("media", media_id=media_id)["status"] for _ in range(3)] == ["processing"] * 2 + ["succeeded"]
    made = pin(sdk, {"source_type": "video_id", "media_id": media_id, "cover_image_key_frame_time": 2})
    assert (made["creative_type"], made["media"]["media_type"]) == ("VIDEO", "video")


def test_a_refusal_reaches_the_caller_with_pinterests_code(sdk: PinterestSdk, world: World) -> None:
    with pytest.raises(PinterestRefusal) as refusal:
        sdk.call("create_pin", board_id="404", media_source={"source_type": "image_base64", **image()})
    assert (refusal.value.status, refusal.value.body["code"]) == (404, 40)
    world.pinterest.remove_access("demo")
    with pytest.raises(PinterestRefusal) as refusal:
        sdk.call("account")
    assert (refusal.value.status, refusal.value.body["code"]) == (401, 2)


def test_the_library_gets_an_access_token_for_its_refresh_token(world: World, server: str, tmp_path: Path) -> None:
    world.pinterest.add_app("1234567", "secret")
    old = world.pinterest.grant("demo", client_id="1234567")
    settings = {"app_id": "1234567", "app_secret": "secret", "refresh_access_token": old["refreshToken"]}
    with PinterestSdk(tmp_path, f"{server}/pinterest/v5", **settings) as sdk:
        assert sdk.call("account")["username"] == "demo"
    spent = world.pinterest.tokens.by_refresh(old["refreshToken"])
    assert spent is not None
    assert spent.spent
