"""Pages show small pictures of what was uploaded: made once, for the owner alone, and gone with the file."""

import io
from pathlib import Path

import pytest
from PIL import Image

from socialpub.media.decoder import client
from socialpub.media.decoder.client import DecoderFailed
from socialpub.media.files import THUMBNAILS
from socialpub.publishing.media import thumbnails
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.sandbox_http import artifact


def address(artifact_id: str) -> str:
    return f"/artifacts/{artifact_id}/thumbnail"


def kept(rt: Runtime) -> list[Path]:
    return [path for path in (rt.files.root / THUMBNAILS).rglob("*") if path.is_file()]


def test_a_picture_is_shown_small_and_made_once(
    rt: Runtime, owner: DashboardBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg", 1600, 1200), "image/jpeg")
    first = owner.ask("GET", address(photo))
    assert (first.status, first.headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(first.body)).size == (320, 240)
    assert first.headers["cache-control"].startswith("private, max-age=")
    assert "sandbox" in first.headers["content-security-policy"]

    monkeypatch.setattr(client, "thumbnail_async", None)
    assert owner.ask("GET", address(photo)).body == first.body


def test_a_film_is_shown_by_its_first_picture(rt: Runtime, owner: DashboardBrowser, tmp_path: Path) -> None:
    film = artifact(rt, media.video_mp4(tmp_path / "a.mp4", 0.25), "video/mp4")
    assert Image.open(io.BytesIO(owner.ask("GET", address(film)).body)).size == (128, 96)


def test_nobody_else_sees_it(rt: Runtime, stranger: DashboardBrowser, owner: DashboardBrowser, tmp_path: Path) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    assert owner.ask("GET", address(photo)).status == 200
    assert stranger.open(address(photo)).heading == "Sign in"


def test_what_has_no_picture_shows_a_sign(rt: Runtime, owner: DashboardBrowser, tmp_path: Path) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    path = rt.files.path(rt.reader.value("SELECT storage_key FROM artifact"))
    path.write_bytes(path.read_bytes()[:300])  # the disk lost the rest
    for _ in range(2):
        reply = owner.ask("GET", address(photo))
        assert (reply.status, "no_picture" in reply.headers["location"]) == (303, True)
    (empty,) = kept(rt)
    assert empty.stat().st_size == 0, "it is not tried again and again"
    assert "no_picture" in owner.ask("GET", address("not-an-id")).headers["location"]


def test_it_goes_with_what_it_shows(rt: Runtime, owner: DashboardBrowser, tmp_path: Path) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    owner.ask("GET", address(photo))
    assert thumbnails.clean(rt) == 0 and len(kept(rt)) == 1
    rt.files.remove(rt.reader.value("SELECT storage_key FROM artifact"))
    assert thumbnails.clean(rt) == 1 and not kept(rt)


def test_a_decoder_that_cannot_begin_says_nothing_about_the_picture(
    rt: Runtime, owner: DashboardBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    with monkeypatch.context() as broken:

        async def fail(*_: object, **__: object) -> None:
            raise DecoderFailed("no memory")

        broken.setattr(client, "thumbnail_async", fail)
        assert owner.ask("GET", address(photo)).status == 503
    assert not kept(rt) and not list((rt.files.root / "incoming").glob("*.part"))
    assert owner.ask("GET", address(photo)).status == 200
