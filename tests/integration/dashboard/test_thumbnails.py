"""Thumbnails of uploads, and the choice of a cover image."""

import io
import json
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image

from socialpub.media.decoder import client
from socialpub.media.decoder.client import DecoderFailed
from socialpub.media.files import THUMBNAILS
from socialpub.publishing.media import thumbnails
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.sandbox_http import artifact
from tests.support.select import select_value
from tests.support.tab import Element, Page


def address(artifact_id: str) -> str:
    return f"/artifacts/{artifact_id}/thumbnail"


def kept(rt: Runtime) -> list[Path]:
    return [path for path in (rt.files.root / THUMBNAILS).rglob("*") if path.is_file()]


@pytest.mark.decoder_child
def test_a_thumbnail_is_made_once(rt, owner, tmp_path, monkeypatch):
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg", 1600, 1200), "image/jpeg")
    first = owner.ask("GET", address(photo))
    assert (first.status, first.headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(first.body)).size == (320, 240)
    assert first.headers["cache-control"].startswith("private, max-age=")
    assert "sandbox" in first.headers["content-security-policy"]

    monkeypatch.setattr(client, "thumbnail_async", None)
    assert owner.ask("GET", address(photo)).body == first.body


@pytest.mark.decoder_child
def test_a_video_is_shown_by_its_first_frame(rt, owner, tmp_path):
    video = artifact(rt, media.video_mp4(tmp_path / "a.mp4", 0.25), "video/mp4")
    assert Image.open(io.BytesIO(owner.ask("GET", address(video)).body)).size == (128, 96)


def test_the_still_of_a_video_has_square_pixels(rt, owner, tmp_path):
    path = media.video_mp4(tmp_path / "a.mp4", 0.25, pixel_aspect=Fraction(4, 3), rotation=90)
    video = artifact(rt, path, "video/mp4")
    assert Image.open(io.BytesIO(owner.ask("GET", address(video)).body)).size == (96, 171)


def test_a_file_without_an_image_shows_a_placeholder(rt, owner, tmp_path):
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    path = rt.files.path(select_value(rt.db, "SELECT storage_key FROM artifact"))
    path.write_bytes(path.read_bytes()[:300])  # the disk lost the rest
    for _ in range(2):
        reply = owner.ask("GET", address(photo))
        assert (reply.status, "no_image" in reply.headers["location"]) == (303, True)
    (empty,) = kept(rt)
    assert empty.stat().st_size == 0, "it is not tried again and again"
    assert "no_image" in owner.ask("GET", address("not-an-id")).headers["location"]


def test_a_thumbnail_is_removed_with_its_file(rt, owner, tmp_path):
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    owner.ask("GET", address(photo))
    assert thumbnails.clean(rt) == 0 and len(kept(rt)) == 1
    rt.files.remove(select_value(rt.db, "SELECT storage_key FROM artifact"))
    assert thumbnails.clean(rt) == 1 and not kept(rt)


def test_a_decoder_that_cannot_start_does_not_condemn_the_image(rt, owner, tmp_path, monkeypatch):
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    with monkeypatch.context() as broken:

        async def fail(*_: object, **__: object) -> None:
            raise DecoderFailed("no memory")

        broken.setattr(client, "thumbnail_async", fail)
        assert owner.ask("GET", address(photo)).status == 503
    assert not kept(rt) and not list((rt.files.root / "incoming").glob("*.part"))
    assert owner.ask("GET", address(photo)).status == 200


FIELD = "#options.pinterest.coverArtifactId"
UPLOAD = f"{FIELD}.file"


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return media.video_mp4(tmp_path / "waves.mp4", 4.0, width=320, height=240)


def radios(page: Page) -> dict[str, Element]:
    return {(box.within("label") or box).text: box for box in page.boxes(FIELD[1:])}


def chosen(page: Page) -> str:
    (one,) = [name for name, box in radios(page).items() if "checked" in box.attributes]
    return one


def options_of(rt: Runtime) -> dict[str, object]:
    found: dict[str, object] = json.loads(select_value(rt.db, "SELECT options FROM delivery ORDER BY id DESC LIMIT 1"))
    return found


def test_uploaded_images_are_offered_newest_first(owner, rt, tmp_path, video, pins):
    shown = [artifact(rt, media.jpeg(tmp_path / f"{name}.jpg"), "image/jpeg") for name in ("first", "second")]
    artifact(rt, video, "video/mp4")
    page = owner.open("/compose")
    assert list(radios(page)) == ["None", "second.jpg", "first.jpg"]
    assert chosen(page) == "None"
    pictures = [one.attributes["src"] for one in page.root.all("img") if "/thumbnail" in one.attributes["src"]]
    assert [src.split("/")[-2] for src in pictures] == shown[::-1]
    assert "artifact" not in page.text.lower()


def test_a_chosen_cover_is_published_with_the_video(owner, rt, world, clock, tmp_path, video, pins):
    cover = artifact(rt, media.jpeg(tmp_path / "cover.jpg"), "image/jpeg")
    owner.open("/compose")
    board = owner.page.field("Board").all("option")[1].attributes["value"]
    page = owner.press("Check", {"Text": "Waves", "Media": video, "Board": board, FIELD: cover})
    assert (page.role("alert"), chosen(page)) == ("", "cover.jpg")
    owner.press("Publish")
    assert options_of(rt)["coverArtifactId"] == cover
    drain(rt, clock)
    assert len(world.pinterest.pins) == 1


def test_an_uploaded_cover_stays_chosen(owner, rt, tmp_path, video, pins):
    owner.open("/compose")
    board = owner.page.field("Board").all("option")[1].attributes["value"]
    sent = {"Text": "Waves", "Media": video, "Board": board, UPLOAD: media.jpeg(tmp_path / "cover.jpg")}
    page = owner.press("Check", sent)
    assert (page.role("alert"), chosen(page)) == ("", "cover.jpg")
    items = [one for one in page.root.all("li") if one.attributes.get("data-artifact")]
    assert len(items) == 1, "a cover is not one of the post's media"
    owner.press("Publish")
    assert options_of(rt)["coverArtifactId"] == radios(page)["cover.jpg"].attributes["value"]


def test_an_edit_keeps_or_removes_the_cover(owner, rt, tmp_path, video, pins):
    cover = artifact(rt, media.jpeg(tmp_path / "cover.jpg"), "image/jpeg")
    options = {"pinterest": {"boardId": "1", "coverArtifactId": cover}}
    video = artifact(rt, video, "video/mp4")
    at = rt.now() + timedelta(days=1)
    post = accept(rt, pins, body="Waves", media=(DraftMedia(video),), at=at, options=options)
    page = owner.open(f"/posts/{post}/edit")
    assert chosen(page) == "cover.jpg"
    owner.press("Save", {FIELD: ""})
    assert "coverArtifactId" not in options_of(rt)


def test_without_pinterest_no_cover_is_offered(owner, x):
    assert radios(owner.open("/compose")) == {}
