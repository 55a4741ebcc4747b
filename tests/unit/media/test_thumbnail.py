"""A thumbnail shows what the file shows, upright and small, whatever kind of file it is."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from socialpub.media.decoder import resize
from socialpub.media.types import CannotFit, FitLimits
from tests.samples import media
from tests.unit.media.test_resize import corners, looks_like

LIMITS = FitLimits(("image/jpeg",), 64 * 1024, 320, 320, rewrite=True)


def made_of(source: Path) -> Image.Image:
    target = source.with_suffix(".thumbnail")
    answer = resize.write_thumbnail(source, target, LIMITS)
    assert answer["size_bytes"] == target.stat().st_size <= LIMITS.max_bytes
    image = Image.open(io.BytesIO(target.read_bytes()))
    assert (image.format, image.size) == ("JPEG", (answer["width"], answer["height"]))
    return image


@pytest.mark.parametrize("make", [media.jpeg, media.png, media.webp, media.gif, media.png_alpha])
def test_a_picture_becomes_a_small_jpeg(tmp_path: Path, make: Callable[..., Path]) -> None:
    assert made_of(make(tmp_path / "a", 1280, 960)).size == (320, 240)


def test_noise_fits_as_well(tmp_path: Path) -> None:
    assert max(made_of(media.png(tmp_path / "a.png", 1000, 1000, noise=True)).size) <= 320


def test_a_photo_of_a_phone_held_upright_stands_upright(tmp_path: Path) -> None:
    image = made_of(media.jpeg(tmp_path / "a.jpg", 960, 1280, orientation=6))
    assert image.size == (240, 320)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


def test_an_animation_shows_its_first_picture(tmp_path: Path) -> None:
    assert made_of(media.gif_animated(tmp_path / "a.gif", 64, 48)).size == (64, 48)


FILMS = [media.video_mp4, media.video_mov, media.video_webm, media.video_fragmented, media.video_matroska]


@pytest.mark.parametrize("make", FILMS)
def test_a_film_shows_how_it_begins(tmp_path: Path, make: Callable[..., Path]) -> None:
    image = made_of(make(tmp_path / "film", 0.25))
    assert image.size == (128, 96)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


def test_a_large_film_is_made_small(tmp_path: Path) -> None:
    assert made_of(media.video_mp4(tmp_path / "a.mp4", 0.1, width=1280, height=720)).size == (320, 180)


@pytest.mark.parametrize(
    ("rotation", "size", "shown"),
    [
        (90, (96, 128), (media.GREEN, media.WHITE, media.RED, media.BLUE)),
        (180, (128, 96), (media.WHITE, media.BLUE, media.GREEN, media.RED)),
        (270, (96, 128), (media.BLUE, media.RED, media.WHITE, media.GREEN)),
    ],
)
def test_a_film_is_turned_as_players_turn_it(
    tmp_path: Path, rotation: int, size: tuple[int, int], shown: tuple[tuple[int, ...], ...]
) -> None:
    image = made_of(media.video_mov(tmp_path / "a.mov", 0.1, rotation=rotation))
    assert image.size == size
    assert all(map(looks_like, corners(image), shown))


def test_what_is_neither_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Hello")
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.txt")
    (tmp_path / "a.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(2000))
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.mp4")
