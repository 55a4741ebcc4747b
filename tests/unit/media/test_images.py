"""Images are decoded frame by frame. Damaged and too large images are rejected."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from socialpub.media.decoder import resize
from socialpub.media.types import CannotFit, FitLimits, MediaLimits
from tests.samples import hostile, media
from tests.unit.media.inspection import inspected, rejection
from tests.unit.media.test_resize import corners, looks_like

Make = Callable[[Path], Path]


STILLS = {
    "image/jpeg": [
        media.jpeg, media.jpeg_progressive, media.jpeg_cmyk, media.jpeg_grey, media.jpeg_mpo, media.jpeg_mpo_beheaded,
        media.jpeg_samsung, media.motion_photo,
    ],
    "image/png": [media.png, media.png_alpha, media.png_palette, media.png_16bit],
    "image/webp": [media.webp],
    "image/gif": [media.gif],
}  # fmt: skip


@pytest.mark.parametrize(("make", "mime_type"), [(make, name) for name, makers in STILLS.items() for make in makers])
def test_a_real_still_passes_with_its_size_in_pixels(tmp_path: Path, make: Make, mime_type: str) -> None:
    path = make(tmp_path / "still")
    facts = inspected(path, mime_type)
    assert (facts.kind, facts.mime_type, facts.size_bytes) == ("image", mime_type, path.stat().st_size)
    assert (facts.facts["width"], facts.facts["height"], facts.facts["frames"]) == (320, 240, 1)


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [(media.gif_animated, "image/gif"), (media.webp_animated, "image/webp"), (media.png_animated, "image/png")],
)
def test_the_frames_of_an_animation_are_counted(tmp_path: Path, make: Make, mime_type: str) -> None:
    assert inspected(make(tmp_path / "moving"), mime_type).facts == {"width": 64, "height": 48, "frames": 3}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_width_and_height_are_those_of_the_upright_image(tmp_path: Path, orientation: int) -> None:
    facts = inspected(media.jpeg(tmp_path / "phone.jpg", 320, 240, orientation), "image/jpeg").facts
    assert (facts["width"], facts["height"]) == (320, 240)
    assert facts.get("orientation", 1) == orientation


def test_a_damaged_chunk_of_a_png_is_noticed(tmp_path: Path) -> None:
    path = media.png(tmp_path / "a.png", noise=True)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(whole))
    assert "checksum" in rejection(path, "image/png")


def test_one_pixel_too_many_is_rejected_and_none_too_many_is_not(tmp_path: Path) -> None:
    path = media.png(tmp_path / "a.png", 100, 100)
    assert inspected(path, "image/png", MediaLimits(image_pixels=10_000))
    assert "9999 pixels" in rejection(path, "image/png", MediaLimits(image_pixels=9_999))


def test_the_frames_of_an_animation_are_limited_together(tmp_path: Path) -> None:
    path = media.gif_animated(tmp_path / "a.gif")
    assert inspected(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3))
    assert "At most 9215" in rejection(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3 - 1))


def test_a_jpeg_may_have_a_hundred_scans_and_not_one_more(tmp_path: Path) -> None:
    assert inspected(hostile.jpeg_scans(tmp_path / "a.jpg", 100), "image/jpeg").facts["width"] == 320
    assert "more than 100 scans" in rejection(hostile.jpeg_scans(tmp_path / "b.jpg", 101), "image/jpeg")


def test_a_bomb_of_scans_is_rejected_before_it_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("it was decoded"))
    path = hostile.jpeg_scans(tmp_path / "a.jpg", 5000)
    assert "more than 100 scans" in rejection(path, "image/jpeg")


def test_scans_of_embedded_and_appended_images_do_not_count(tmp_path: Path) -> None:
    path = media.jpeg(tmp_path / "a.jpg")
    hostile.with_tail(path, hostile.jpeg_scans(tmp_path / "b.jpg", 150).read_bytes())
    assert inspected(path, "image/jpeg").facts["frames"] == 1


def test_the_limits_do_not_change_the_decoder(tmp_path: Path) -> None:
    from PIL import Image

    before = Image.MAX_IMAGE_PIXELS
    rejection(hostile.png_bomb(tmp_path / "a.png", 20_000, 200), "image/png", MediaLimits(image_pixels=1))
    assert before == Image.MAX_IMAGE_PIXELS


# --- thumbnails -------------------------------------------------------------------------------------------------------


LIMITS = FitLimits(("image/jpeg",), 64 * 1024, 320, 320, rewrite=True)


def made_of(source: Path) -> Image.Image:
    target = source.with_suffix(".thumbnail")
    answer = resize.write_thumbnail(source, target, LIMITS)
    assert answer["size_bytes"] == target.stat().st_size <= LIMITS.max_bytes
    image = Image.open(io.BytesIO(target.read_bytes()))
    assert (image.format, image.size) == ("JPEG", (answer["width"], answer["height"]))
    return image


@pytest.mark.parametrize("make", [media.jpeg, media.png, media.webp, media.gif, media.png_alpha])
def test_an_image_becomes_a_small_jpeg(tmp_path: Path, make: Callable[..., Path]) -> None:
    assert made_of(make(tmp_path / "a", 1280, 960)).size == (320, 240)


def test_a_rotated_photo_becomes_upright(tmp_path: Path) -> None:
    image = made_of(media.jpeg(tmp_path / "a.jpg", 960, 1280, orientation=6))
    assert image.size == (240, 320)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


VIDEOS = [media.video_mp4, media.video_mov, media.video_webm, media.video_fragmented, media.video_matroska]


@pytest.mark.parametrize("make", VIDEOS)
def test_the_thumbnail_of_a_video_shows_its_first_frame(tmp_path: Path, make: Callable[..., Path]) -> None:
    image = made_of(make(tmp_path / "video", 0.25))
    assert image.size == (128, 96)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda path: media.png(path, 1000, 1000, noise=True), (320, 320)),
        (lambda path: media.gif_animated(path, 64, 48), (64, 48)),
        (lambda path: media.video_mp4(path, 0.1, width=1280, height=720), (320, 180)),
    ],
)
def test_a_thumbnail_is_as_large_as_its_limits_allow(tmp_path: Path, make: Make, size: tuple[int, int]) -> None:
    assert made_of(make(tmp_path / "a")).size == size


@pytest.mark.parametrize(
    ("rotation", "size", "shown"),
    [
        (90, (96, 128), (media.GREEN, media.WHITE, media.RED, media.BLUE)),
        (180, (128, 96), (media.WHITE, media.BLUE, media.GREEN, media.RED)),
        (270, (96, 128), (media.BLUE, media.RED, media.WHITE, media.GREEN)),
    ],
)
def test_the_thumbnail_of_a_video_has_its_rotation(
    tmp_path: Path, rotation: int, size: tuple[int, int], shown: tuple[tuple[int, ...], ...]
) -> None:
    image = made_of(media.video_mov(tmp_path / "a.mov", 0.1, rotation=rotation))
    assert image.size == size
    assert all(map(looks_like, corners(image), shown))


def test_other_files_have_no_thumbnail(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Hello")
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.txt")
    (tmp_path / "a.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(2000))
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.mp4")
