"""The estimated memory for a file, from its first bytes."""

import pytest
from PIL import Image

from socialpub.media.decoder.client import estimate_memory
from socialpub.media.decoder.memory import ORDINARY_BYTES as SLOT_BYTES
from tests.samples import hostile, media

MOST = 2 * 1024**3
CHILD = 32 * 1024**2


@pytest.mark.parametrize(
    ("make", "bytes_per_pixel"),
    [
        (media.jpeg, 13),
        (lambda path: media.jpeg(path, orientation=6), 13),
        (media.jpeg_progressive, 13),
        (media.jpeg_with_profile, 13),
        (media.jpeg_mpo, 13),
        (media.jpeg_samsung, 13),
        (media.gif, 13),
        (media.png, 17),
        (media.heic, 17),
        (lambda path: media.heic(path, tile_size=128), 17),
        (media.avif, 17),
        (media.webp, 22),
        (lambda path: (Image.new("RGBA", (320, 240)).save(path, "WEBP", lossless=True), path)[1], 22),
        (lambda path: (Image.new("RGBA", (320, 240)).save(path, "WEBP"), path)[1], 22),
    ],
)
def test_an_image_needs_memory_by_its_pixels(tmp_path, make, bytes_per_pixel):
    assert estimate_memory(make(tmp_path / "a"), MOST) == CHILD + 320 * 240 * bytes_per_pixel


def test_an_ordinary_photo_needs_one_slot_and_the_largest_several(tmp_path):
    Image.new("L", (4000, 3000)).save(tmp_path / "a.jpg")
    assert estimate_memory(tmp_path / "a.jpg", MOST) <= SLOT_BYTES
    assert estimate_memory(hostile.png_bomb(tmp_path / "b.png", 12_000, 8_000), MOST) > 6 * SLOT_BYTES


@pytest.mark.parametrize(
    "make", [lambda path: media.video_mp4(path, 0.1), lambda path: media.video_webm(path, 0.1), media.video_mov]
)
def test_a_video_needs_one_slot_as_one_frame_of_it_is_decoded(tmp_path, make):
    assert CHILD < estimate_memory(make(tmp_path / "a"), MOST) <= SLOT_BYTES


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8\xff", b"GIF89a" + b"\0" * 4, b"\xff\xd8" + b"\xff" * 9000, b"<html>"]
)
def test_an_unknown_file_has_the_maximum_estimate(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert estimate_memory(tmp_path / "a", MOST) == MOST


def test_no_estimate_is_above_the_maximum(tmp_path):
    assert estimate_memory(hostile.png_bomb(tmp_path / "a.png", 60_000, 60_000), MOST) == MOST


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        estimate_memory(tmp_path / "gone", MOST)
    assert estimate_memory(tmp_path, MOST) == MOST
