"""Pins, boards and videos on the sandbox's Pinterest."""

import hashlib
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.pinterest.api import PinterestSandbox
from tests.samples import media
from tests.sandbox.clients import PinterestClient, refusal
from tests.sandbox.files import MP4, base64_text, picture
from tests.support.hand_clock import HandClock

# --- pins and boards --------------------------------------------------------------------------------------------------


JPEG = {"source_type": "image_base64", "content_type": "image/jpeg", "data": base64_text(picture())}


def test_a_carousel_holds_two_to_five_pictures_of_one_size(world: World, pinterest: PinterestClient) -> None:
    def carousel(*sizes: tuple[int, int]) -> dict[str, Any]:
        items = [
            {"content_type": "image/png", "data": base64_text(picture(*size, "PNG")), "title": f"No. {number}"}
            for number, size in enumerate(sizes, 1)
        ]
        return {"source_type": "multiple_image_base64", "items": items}

    made = pinterest.pin(carousel((200, 300), (200, 300))).json()
    assert (made["creative_type"], made["media"]["media_type"]) == ("CAROUSEL", "multiple_images")
    assert [item["title"] for item in made["media"]["items"]] == ["No. 1", "No. 2"]
    assert refusal(pinterest.pin(carousel((200, 300), (300, 200)))) == (400, 1)
    for count in (1, 6):
        answer = pinterest.pin(carousel(*[(200, 300)] * count))
        assert refusal(answer) == (400, 1)
        assert "Items=" in answer.json()["message"]
    assert len(world.pinterest.pins) == 1


def test_boards_are_found_allowed_and_have_the_section(
    world: World, web: TestClient, pinterest: PinterestClient
) -> None:
    studio = PinterestClient(web, world, "studio")
    assert refusal(pinterest.pin(board_id="9999")) == (404, 40)
    assert refusal(pinterest.pin(board_id=studio.board_id)) == (403, 29)
    assert refusal(pinterest.pin(board_section_id="9999")) == (404, 2031)
    (section,) = pinterest.call("GET", f"/boards/{pinterest.board_id}/sections").json()["items"]
    assert pinterest.pin(board_section_id=section["id"]).json()["board_section_id"] == section["id"]
    shared = world.pinterest.add_board(
        world.pinterest.existing_account("studio"), "Together", collaborators=["1000000000000000001"]
    )
    assert pinterest.pin(board_id=shared.id).json()["board_owner"] == {"username": "studio"}
    secret = world.pinterest.add_board(world.pinterest.existing_account("demo"), "Hidden", privacy="SECRET")
    assert refusal(pinterest.pin(board_id=secret.id)) == (403, 29)
    assert "Hidden" not in pinterest.call("GET", "/boards").text
    insider = PinterestClient(
        web,
        world,
        "demo",
        (*PinterestSandbox.default_scopes, "boards:read_secret", "boards:write_secret", "pins:write_secret"),
    )
    assert insider.pin(board_id=secret.id).status_code == 201
    assert "Hidden" in insider.call("GET", "/boards").text


def test_boards_and_sections_can_be_made_and_listed_in_pages(world: World, pinterest: PinterestClient) -> None:
    made = pinterest.call("POST", "/boards", json={"name": "New", "description": "Fresh"})
    assert made.status_code == 201
    assert refusal(pinterest.call("POST", "/boards", json={"name": "new"})) == (400, 400)
    assert refusal(pinterest.call("POST", "/boards", json={})) == (400, 400)
    path = f"/boards/{made.json()['id']}/sections"
    assert pinterest.call("POST", path, json={"name": "Part"}).json()["name"] == "Part"
    assert refusal(pinterest.call("POST", path, json={"name": "Part"})) == (409, 409)
    names, bookmark = [], ""
    while bookmark is not None:
        page = pinterest.call("GET", "/boards", params={"page_size": "1", "bookmark": bookmark}).json()
        names += [board["name"] for board in page["items"]]
        bookmark = page["bookmark"]
    assert names == ["Summer prints", "Ideas", "New"]
    assert refusal(pinterest.call("GET", "/boards", params={"page_size": "251"})) == (400, 1)
    assert refusal(pinterest.call("GET", "/boards", params={"bookmark": "?"})) == (400, 1)


def test_lists_can_lag(world: World, pinterest: PinterestClient, clock: HandClock) -> None:
    world.pinterest.list_lag_seconds, world.pinterest.board_lag_seconds = 10, 5
    world.pinterest.add_board(world.pinterest.existing_account("demo"), "Late")
    made = pinterest.pin().json()["id"]
    assert pinterest.pins() == []
    assert "Late" not in pinterest.call("GET", "/boards").text
    clock.forward(5)
    assert "Late" in pinterest.call("GET", "/boards").text
    assert pinterest.pins() == []
    clock.forward(5)
    assert [pin["id"] for pin in pinterest.pins()] == [made]


def test_a_missing_scope_is_named(world: World, web: TestClient) -> None:
    narrow = PinterestClient(web, world, "demo", ("boards:read", "boards:write", "pins:read"))
    answer = narrow.pin()
    assert refusal(answer) == (403, 3)
    assert "pins:write" in answer.json()["message"]


def test_writes_and_reads_have_windows_of_their_own(world: World, pinterest: PinterestClient, clock: HandClock) -> None:
    world.pinterest.limits["org_write"] = 2
    first = pinterest.pin()
    assert first.headers["x-ratelimit-limit"] == "2, 2;w=60"
    assert (first.headers["x-ratelimit-remaining"], first.headers["x-ratelimit-reset"]) == ("1", "60")
    clock.forward(20)
    pinterest.pin()
    limited = pinterest.pin()
    assert refusal(limited) == (429, 8)
    assert (limited.headers["x-ratelimit-remaining"], limited.headers["x-ratelimit-reset"]) == ("0", "40")
    assert limited.headers["x-pinterest-rid"]
    assert pinterest.call("GET", "/boards").status_code == 200
    clock.forward(40)
    assert pinterest.pin().status_code == 201
    assert world.pinterest.category_counts == {"org_write": 4, "org_read": 1}


# --- videos -----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.pinterest.probes_video = False


def source(media_id: str, **cover: object) -> dict[str, object]:
    return {"source_type": "video_id", "media_id": media_id, **(cover or {"cover_image_key_frame_time": 0})}


def test_a_video_is_registered_uploaded_processed_and_pinned_as_a_pin(world: World, pinterest: PinterestClient) -> None:
    registered = pinterest.register()
    media_id = registered["media_id"]
    assert registered["upload_parameters"]["Content-Type"] == "multipart/form-data"
    assert pinterest.look(media_id) == "registered"
    taken = pinterest.upload(registered)
    assert (taken.status_code, taken.content) == (204, b"")
    early = pinterest.pin(source(media_id))
    assert refusal(early) == (400, 1)
    assert [pinterest.look(media_id) for _ in range(3)] == ["processing", "processing", "succeeded"]
    cover = {"cover_image_content_type": "image/jpeg", "cover_image_data": base64_text(picture())}
    pin = pinterest.pin(source(media_id, **cover), title="Printing day").json()
    assert (pin["creative_type"], pin["media"]["media_type"]) == ("VIDEO", "video")
    (kept,) = world.pinterest.pins
    film = world.pinterest.media[kept.video_id or ""]
    assert (film.size, film.sha256) == (len(MP4), hashlib.sha256(MP4).hexdigest())
    assert kept.pictures[0].width == 200


def test_the_form_must_come_back_unchanged_and_the_file_last(web: TestClient, pinterest: PinterestClient) -> None:
    registered = pinterest.register()
    for changed in ({"policy": "x"}, {"x-amz-date": ""}, {"Content-Type": "video/mp4"}, {"extra": "1"}):
        refused = pinterest.upload(registered, **changed)
        assert (refused.status_code, "<Code>AccessDenied</Code>" in refused.text) == (403, True)
    path, form = urlsplit(registered["upload_url"]).path, registered["upload_parameters"]
    late = dict(form)
    policy = late.pop("policy")
    parts = [
        *((name, (None, value)) for name, value in late.items()),
        ("file", ("a.mp4", MP4)),
        ("policy", (None, policy)),
    ]
    assert "last field" in web.post(path, files=parts).text
    header = {"authorization": "Bearer x"}
    assert web.post(path, data=form, files={"file": MP4}, headers=header).status_code == 400
    assert web.post(path, data=form).status_code == 400
    assert web.post(path, data=form, files={"file": ("a.mp4", b"")}).text.count("EntityTooSmall") == 1

    def trickle() -> object:
        request = web.build_request("POST", path, data=form, files={"file": ("a.mp4", io.BytesIO(MP4))})
        yield request.read()

    kind = web.build_request("POST", path, data=form, files={"file": MP4}).headers["content-type"]
    unmeasured = web.post(path, content=trickle(), headers={"content-type": kind})  # type: ignore[arg-type]
    assert (unmeasured.status_code, "MissingContentLength" in unmeasured.text) == (411, True)
    assert pinterest.upload(registered).status_code == 204


def test_a_form_is_good_for_an_hour(pinterest: PinterestClient, clock: HandClock) -> None:
    registered = pinterest.register()
    clock.forward(3600)
    assert "Policy expired" in pinterest.upload(registered).text


def test_a_video_belongs_to_the_user_who_registered_it(
    world: World, web: TestClient, pinterest: PinterestClient
) -> None:
    world.pinterest.processing_ticks = 0
    media_id = pinterest.video()
    studio = PinterestClient(web, world, "studio")
    assert refusal(studio.call("GET", f"/media/{media_id}")) == (404, 404)
    assert refusal(studio.pin(source(media_id))) == (404, 404)
    assert pinterest.pin(source(media_id)).status_code == 201
    world.pinterest.media_reuse_allowed = False
    assert refusal(pinterest.pin(source(media_id))) == (400, 1)


def test_videos_are_decoded(world: World, pinterest: PinterestClient, tmp_path: Path) -> None:
    world.pinterest.probes_video = True
    world.pinterest.processing_ticks = 0
    fine = media.video_mp4(tmp_path / "fine.mp4", 4.5, rate=10)
    short = media.video_mp4(tmp_path / "short.mp4", 1.0)
    narrow = media.video_mp4(tmp_path / "narrow.mp4", 4.5, width=64, height=192, rate=10)
    assert [pinterest.look(pinterest.video(path.read_bytes())) for path in (fine, short, narrow)] == [
        "succeeded",
        "failed",
        "failed",
    ]
    assert pinterest.look(pinterest.video(MP4)) == "failed"


def test_a_large_video_is_counted_and_hashed_but_not_stored(world: World, pinterest: PinterestClient) -> None:
    world.pinterest.cache.capacity = 1000
    data = MP4 + bytes(3_000_000)
    media_id = pinterest.video(data)
    film = world.pinterest.media[media_id]
    assert (film.size, film.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert world.pinterest.cache.get(media_id) is None
