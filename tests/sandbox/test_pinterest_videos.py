"""Films on the sandbox's Pinterest: the form, the wait, the pin."""

import hashlib
import io
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.samples import media
from tests.sandbox.files import MP4, base64_text, picture
from tests.sandbox.pinterest_client import PinterestClient, refusal
from tests.support.hand_clock import HandClock


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.pinterest.probes_video = False


def source(media_id: str, **cover: object) -> dict[str, object]:
    return {"source_type": "video_id", "media_id": media_id, **(cover or {"cover_image_key_frame_time": 0})}


def test_a_film_is_registered_uploaded_awaited_and_pinned(world: World, pinterest: PinterestClient) -> None:
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
    film = world.pinterest.media[kept.film_id or ""]
    assert (film.size, film.sha256) == (len(MP4), hashlib.sha256(MP4).hexdigest())
    assert kept.pictures[0].width == 200


def test_a_form_can_be_good_for_one_upload(world: World, pinterest: PinterestClient) -> None:
    registered = pinterest.register()
    assert [pinterest.upload(registered).status_code for _ in range(2)] == [204, 204]
    world.pinterest.forms_good_once = True
    assert pinterest.upload(registered).status_code == 403
    assert pinterest.upload(pinterest.register()).status_code == 204


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


def test_fates_of_films(world: World, pinterest: PinterestClient) -> None:
    world.pinterest.next_fate("fails")
    world.pinterest.next_fate("never_ends")
    failed, stuck, text = pinterest.video(), pinterest.video(), pinterest.video(b"no film at all")
    for media_id, end in ((failed, "failed"), (stuck, "processing"), (text, "failed")):
        assert [pinterest.look(media_id) for _ in range(5)][-1] == end
    assert refusal(pinterest.pin(source(failed))) == (400, 1)
    world.pinterest.processing_ticks = 0
    assert pinterest.look(pinterest.video()) == "succeeded"


def test_films_belong_to_whoever_registered_them(world: World, web: TestClient, pinterest: PinterestClient) -> None:
    world.pinterest.processing_ticks = 0
    media_id = pinterest.video()
    studio = PinterestClient(web, world, "studio")
    assert refusal(studio.call("GET", f"/media/{media_id}")) == (404, 404)
    assert refusal(studio.pin(source(media_id))) == (404, 404)
    assert pinterest.pin(source(media_id)).status_code == 201
    world.pinterest.media_reuse_allowed = False
    assert refusal(pinterest.pin(source(media_id))) == (400, 1)


def test_one_cover_and_no_more(pinterest: PinterestClient, world: World) -> None:
    world.pinterest.processing_ticks = 0
    media_id = pinterest.video()
    cover = {"cover_image_data": base64_text(picture()), "cover_image_content_type": "image/jpeg"}
    assert refusal(pinterest.pin(source(media_id, **cover, cover_image_key_frame_time=3))) == (400, 1)
    assert pinterest.pin(source(media_id, **cover)).status_code == 201
    assert pinterest.pin(source(media_id, cover_image_key_frame_time=3)).status_code == 201
    assert world.pinterest.pins[-1].key_frame_seconds == 3


def test_films_are_looked_into(world: World, pinterest: PinterestClient, tmp_path: Path) -> None:
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


def test_a_large_film_is_counted_and_hashed_but_not_kept(
    world: World, pinterest: PinterestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from socialpub.sandbox import messages

    monkeypatch.setattr(messages, "KEPT_BYTES", 1000)
    data = MP4 + bytes(3_000_000)
    media_id = pinterest.video(data)
    film = world.pinterest.media[media_id]
    assert (film.size, film.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert world.pinterest.cache.get(media_id) is None
