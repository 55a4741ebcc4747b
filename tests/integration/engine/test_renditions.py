"""Versions made for a delivery: whole or not there at all, and gone when it is settled, however it ended."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from socialpub.core.errors import Unavailable
from socialpub.media.decoder import client
from socialpub.media.files import RENDITIONS
from socialpub.providers.base import ImageLimits, MediaFile, Unfit
from socialpub.publishing.media import renditions
from tests.samples import media as samples
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.select import select_all

SMALLER = ImageLimits(("image/jpeg",), 100_000, max_width=160)
AS_IT_IS = ImageLimits(("image/jpeg",), 10_000_000)


@pytest.fixture
def photo(rt):
    path = rt.files.path("aa/photo.jpg")
    path.parent.mkdir()
    samples.jpeg_grey(path)
    return MediaFile(0, "image", "image/jpeg", path.stat().st_size, path, "photo.jpg", facts={"width": 320})


@pytest.fixture
def fits(monkeypatch):
    """Where versions were written, one for each time that a picture was made to fit."""
    targets = []
    real = client.fit

    def fit(source, target, limits, **options):
        targets.append(target)
        return real(source, target, limits, **options)

    monkeypatch.setattr(client, "fit", fit)
    return targets


def key_of(rt, version):
    return version.path.relative_to(rt.files.root).as_posix()


def whole(version):
    return version.path.stat().st_size == version.size_bytes > 0 and version.path.read_bytes()[:2] == b"\xff\xd8"


@pytest.mark.decoder_child
def test_a_version_is_made_once(rt, photo, fits):
    first = renditions.fit_media(rt, "d1", photo, SMALLER)
    assert renditions.fit_media(rt, "d1", photo, SMALLER) == first
    assert whole(first) and first.facts["width"] == 160
    assert renditions.fit_media(rt, "d1", photo, AS_IT_IS) == photo == renditions.fit_media(rt, "d1", photo, AS_IT_IS)
    assert len(fits) == 2


@pytest.mark.parametrize(
    "damage",
    [b"", b'{"mime_type": "image/jpeg", "wid', b"\0" * 90, b"[]", b"{}", b'{"changed": false}', b"\xff\xfe"],
)
def test_a_damaged_verdict_is_made_again(rt, photo, fits, damage):
    first = renditions.fit_media(rt, "d1", photo, SMALLER)
    first.path.with_suffix(".json").write_bytes(damage)
    assert renditions.rendition_type(rt, key_of(rt, first)) is None
    assert renditions.fit_media(rt, "d1", photo, SMALLER) == first
    assert whole(first) and len(fits) == 2
    assert renditions.rendition_type(rt, key_of(rt, first)) == "image/jpeg"


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), Path.unlink, lambda path: os.truncate(path, 9)])
def test_a_damaged_rendition_is_made_again(rt, photo, fits, damage):
    first = renditions.fit_media(rt, "d1", photo, SMALLER)
    damage(first.path)
    assert renditions.rendition_type(rt, key_of(rt, first)) is None, "a network is handed no empty picture"
    assert renditions.fit_media(rt, "d1", photo, SMALLER) == first
    assert whole(first) and len(fits) == 2
    assert renditions.rendition_type(rt, key_of(rt, first)) == "image/jpeg"


def test_a_verdict_counts_only_if_the_image_is_on_the_disk(rt, photo, monkeypatch):
    events = []
    fsync, rename = os.fsync, Path.replace

    def what(path):
        if path.is_dir():
            return "folder"
        return "verdict" if path.read_bytes().startswith(b"{") else "picture"

    def flushed(fd):
        fsync(fd)
        events.append("flush " + what(Path(f"/proc/self/fd/{fd}").readlink()))

    def named(path, target):
        events.append("name " + what(path))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", named)
    renditions.fit_media(rt, "d1", photo, SMALLER)
    assert events == [
        "flush picture",
        "name picture",
        "flush folder",
        "flush verdict",
        "name verdict",
        "flush folder",
    ]


def test_a_death_before_the_verdict_leaves_no_usable_rendition(rt, photo, fits, monkeypatch):
    class Dead(BaseException):
        pass

    def die(*_):
        raise Dead

    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", die)
        patched.setattr(client, "fit", lambda _s, target, _l: target.write_bytes(b"half") and {"changed": True})
        with pytest.raises(Dead):
            renditions.fit_media(rt, "d1", photo, SMALLER)
    assert whole(renditions.fit_media(rt, "d1", photo, SMALLER)) and len(fits) == 1


def test_threads_that_make_the_same_rendition_do_not_damage_it(rt, photo, fits):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: renditions.fit_media(rt, "d1", photo, SMALLER), range(4)))
    assert all(version == made[0] for version in made) and whole(made[0])
    assert len(set(fits)) == len(fits), "each wrote to a file of its own"
    assert sorted(path.suffix for path in made[0].path.parent.iterdir()) == ["", ".json"]


@pytest.mark.decoder_child
def test_a_killed_decoder_leaves_no_verdict(rt, photo, monkeypatch):
    real = client._result
    with monkeypatch.context() as patched:
        patched.setattr(client, "_result", lambda _code, *rest: real(-signal.SIGKILL, *rest))
        with pytest.raises(Unavailable):
            renditions.fit_media(rt, "d1", photo, SMALLER)
    assert not list((rt.files.root / RENDITIONS).rglob("*.part"))
    assert whole(renditions.fit_media(rt, "d1", photo, SMALLER))


def test_an_unwritable_disk_leaves_no_verdict(rt, photo, monkeypatch):
    def full(_fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(Unavailable):
            renditions.fit_media(rt, "d1", photo, SMALLER)
    assert whole(renditions.fit_media(rt, "d1", photo, SMALLER))


def test_versions_removed_while_one_is_made_do_not_mean_that_the_original_is_gone(rt, photo, monkeypatch):
    real = client.fit

    def fit(*arguments):
        made = real(*arguments)
        renditions.forget(rt, "d1")
        return made

    monkeypatch.setattr(client, "fit", fit)
    with pytest.raises(Unavailable):
        renditions.fit_media(rt, "d1", photo, SMALLER)


@pytest.mark.decoder_child
def test_an_unfit_image_and_a_missing_file_are_reported(rt, photo):
    with pytest.raises(Unfit, match=r"photo\.jpg: .*at most 50 bytes"):
        renditions.fit_media(rt, "d1", photo, ImageLimits(("image/jpeg",), 50))
    renditions.fit_media(rt, "d1", photo, SMALLER)
    photo.path.unlink()
    with pytest.raises(FileNotFoundError):
        renditions.fit_media(rt, "d1", photo, SMALLER)
    with pytest.raises(FileNotFoundError):
        renditions.fit_media(rt, "d1", replace(photo, file_name="other"), AS_IT_IS)


def test_renditions_of_ended_deliveries_are_removed_and_others_stay(rt, profile):
    accept(rt, profile, body="ended")
    drain(rt)
    accept(rt, profile, body="waits")
    ended, waits = (row[0] for row in select_all(rt.db, "SELECT id FROM delivery ORDER BY id"))
    for delivery in (ended, waits):
        (rt.files.root / RENDITIONS / delivery).mkdir(parents=True)
    assert renditions.clean(rt) == 1
    assert [folder.name for folder in (rt.files.root / RENDITIONS).iterdir()] == [waits]
