"""Images are decoded frame by frame. Damaged and too large images are rejected."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    "image/heic": [media.heic, media.heic_burst, media.heif],
    "image/heif": [media.heic, media.heif, media.avif, lambda path: media.heif(path, make=media.avif)],
    "image/avif": [media.avif, lambda path: media.heif(path, make=media.avif)],
}  # fmt: skip


@pytest.mark.parametrize(("make", "mime_type"), [(make, name) for name, makers in STILLS.items() for make in makers])
def test_a_real_still_passes_with_its_size_in_pixels(tmp_path, make, mime_type):
    path = make(tmp_path / "still")
    facts = inspected(path, mime_type)
    assert (facts.kind, facts.mime_type, facts.size_bytes) == ("image", mime_type, path.stat().st_size)
    assert (facts.facts["width"], facts.facts["height"], facts.facts["frames"]) == (320, 240, 1)


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (media.gif_animated, "image/gif"),
        (media.webp_animated, "image/webp"),
        (media.png_animated, "image/png"),
        (media.avif_animated, "image/avif"),
    ],
)
def test_the_frames_of_an_animation_are_counted(tmp_path, make, mime_type):
    assert inspected(make(tmp_path / "moving"), mime_type).facts == {"width": 64, "height": 48, "frames": 3}


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize(("make", "mime_type"), [(media.heic, "image/heic"), (media.avif, "image/avif")])
def test_a_photo_of_a_phone_becomes_an_upright_jpeg(tmp_path, make, mime_type, orientation):
    source, target = make(tmp_path / "a", 320, 240, orientation), tmp_path / "b"
    facts = inspected(source, mime_type).facts
    assert (facts["width"], facts["height"]) == (320, 240)
    answer = resize.fit(source, target, FitLimits(("image/webp", "image/png", "image/jpeg"), 5_000_000))
    assert answer["mime_type"] == "image/jpeg" and b"Samplephone" not in target.read_bytes()
    with Image.open(target) as image:
        assert image.size == (320, 240)
        assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


def test_a_burst_shows_its_primary_image(tmp_path):
    image = made_of(media.heic_burst(tmp_path / "a"))
    assert image.size == (320, 240)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


@pytest.mark.parametrize("share", [0.3, 0.98])
@pytest.mark.parametrize(("make", "mime_type"), [(media.heic, "image/heic"), (media.avif, "image/avif")])
def test_a_part_of_a_heic_or_avif_is_rejected(tmp_path, make, mime_type, share):
    assert "The image is incomplete" in rejection(hostile.cut(make(tmp_path / "a"), share), mime_type)


@pytest.mark.parametrize(("make", "mime_type"), [(media.heic, "image/heic"), (media.avif, "image/avif")])
def test_the_pixels_of_a_heic_or_avif_are_limited(tmp_path, make, mime_type):
    assert inspected(make(tmp_path / "a"), mime_type, MediaLimits(image_pixels=320 * 240))
    assert "76799 pixels" in rejection(tmp_path / "a", mime_type, MediaLimits(image_pixels=320 * 240 - 1))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_width_and_height_are_those_of_the_upright_image(tmp_path, orientation):
    facts = inspected(media.jpeg(tmp_path / "phone.jpg", 320, 240, orientation), "image/jpeg").facts
    assert (facts["width"], facts["height"]) == (320, 240)
    assert facts.get("orientation", 1) == orientation


def test_a_damaged_chunk_of_a_png_is_noticed(tmp_path):
    path = media.png(tmp_path / "a.png", noise=True)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(whole))
    assert "checksum" in rejection(path, "image/png")


JPEGS: list[dict[str, Any]] = [
    {}, {"restart_marker_rows": 1}, {"progressive": True}, {"progressive": True, "restart_marker_rows": 1},
]  # fmt: skip


@pytest.mark.parametrize("save", JPEGS)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.999])
def test_a_part_of_a_jpeg_with_an_end_marker_is_incomplete(tmp_path, share, save):
    assert "incomplete" in rejection(hostile.jpeg_ended(tmp_path / "a", share, **save), "image/jpeg")


@pytest.mark.parametrize("damage", [b"\xff\xd9", b"\xff\xe5", b"\xff\xfe", b"\xff\xd8"])
@pytest.mark.parametrize("save", JPEGS)
def test_damage_that_makes_viewers_stop_leaves_an_incomplete_jpeg(tmp_path, damage, save):
    assert "incomplete" in rejection(hostile.jpeg_damaged(tmp_path / "a", damage, **save), "image/jpeg")


def test_a_jpeg_without_the_scan_of_a_color_is_incomplete(tmp_path):
    media.picture(320, 240).save(tmp_path / "a", "JPEG")
    whole = (tmp_path / "a").read_bytes()
    head = whole[: whole.index(b"\xff\xda")]
    (tmp_path / "a").write_bytes(head + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + bytes(40_000) + b"\xff\xd9")
    assert "incomplete" in rejection(tmp_path / "a", "image/jpeg")


@pytest.mark.parametrize("save", JPEGS)
@pytest.mark.parametrize("tail", [b"", b"\0\0\x01\x0aImage_UTC_Data1767225600000", b"\0\0\xff\xd8\xff\xe1ab"])
def test_a_jpeg_without_an_end_marker_is_complete_if_its_pixels_are(tmp_path, tail, save):
    path = media.jpeg(tmp_path / "a", noise=True, **save)
    path.write_bytes(path.read_bytes().removesuffix(b"\xff\xd9") + tail)
    assert inspected(path, "image/jpeg").facts["width"] == 320


@pytest.mark.parametrize(
    ("make", "mime_type", "end", "insert"),
    [
        (media.gif, "image/gif", b";", b""),
        (media.gif_animated, "image/gif", b";", b""),
        (media.gif_animated, "image/gif", b";", bytes(3) + b";"),
        (media.png, "image/png", b"IEND\xaeB`\x82", b""),
        (media.png_animated, "image/png", b"\0\0\0\0IEND\xaeB`\x82", b""),
    ],
)
def test_an_image_without_its_end_is_complete_if_all_frames_decode(tmp_path, make, mime_type, end, insert):
    path = make(tmp_path / "a")
    facts = inspected(path, mime_type).facts
    path.write_bytes(path.read_bytes().removesuffix(end) + insert)
    assert inspected(path, mime_type).facts == facts


def test_an_orientation_in_xmp_alone_is_ignored(tmp_path):
    xmp = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>'
    )
    for form in ("JPEG", "WEBP"):
        media.picture(320, 240).save(tmp_path / "a", form, xmp=xmp)
        facts = inspected(tmp_path / "a", f"image/{form.lower()}").facts
        assert facts == {"width": 320, "height": 240, "frames": 1}


def test_one_pixel_too_many_is_rejected_and_none_too_many_is_not(tmp_path):
    path = media.png(tmp_path / "a.png", 100, 100)
    assert inspected(path, "image/png", MediaLimits(image_pixels=10_000))
    assert "9999 pixels" in rejection(path, "image/png", MediaLimits(image_pixels=9_999))


def test_the_frames_of_an_animation_are_limited_together(tmp_path):
    path = media.gif_animated(tmp_path / "a.gif")
    assert inspected(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3))
    assert "At most 9215" in rejection(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3 - 1))


def test_a_jpeg_may_have_a_hundred_scans_and_not_one_more(tmp_path):
    assert inspected(hostile.jpeg_scans(tmp_path / "a.jpg", 100), "image/jpeg").facts["width"] == 320
    assert "more than 100 scans" in rejection(hostile.jpeg_scans(tmp_path / "b.jpg", 101), "image/jpeg")


def test_a_bomb_of_scans_is_rejected_before_it_is_decoded(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("it was decoded"))
    path = hostile.jpeg_scans(tmp_path / "a.jpg", 5000)
    assert "more than 100 scans" in rejection(path, "image/jpeg")


def test_scans_of_embedded_and_appended_images_do_not_count(tmp_path):
    path = media.jpeg(tmp_path / "a.jpg")
    hostile.with_tail(path, hostile.jpeg_scans(tmp_path / "b.jpg", 150).read_bytes())
    assert inspected(path, "image/jpeg").facts["frames"] == 1


def test_the_limits_do_not_change_the_decoder(tmp_path):
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
def test_an_image_becomes_a_small_jpeg(tmp_path, make):
    assert made_of(make(tmp_path / "a", 1280, 960)).size == (320, 240)


def test_a_rotated_photo_becomes_upright(tmp_path):
    image = made_of(media.jpeg(tmp_path / "a.jpg", 960, 1280, orientation=6))
    assert image.size == (240, 320)
    assert all(map(looks_like, corners(image), (media.RED, media.GREEN, media.BLUE, media.WHITE)))


VIDEOS = [media.video_mp4, media.video_mov, media.video_webm, media.video_fragmented, media.video_matroska]


@pytest.mark.parametrize("make", VIDEOS)
def test_the_thumbnail_of_a_video_shows_its_first_frame(tmp_path, make):
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
def test_a_thumbnail_is_as_large_as_its_limits_allow(tmp_path, make, size):
    assert made_of(make(tmp_path / "a")).size == size


@pytest.mark.parametrize(
    ("rotation", "size", "shown"),
    [
        (90, (96, 128), (media.GREEN, media.WHITE, media.RED, media.BLUE)),
        (180, (128, 96), (media.WHITE, media.BLUE, media.GREEN, media.RED)),
        (270, (96, 128), (media.BLUE, media.RED, media.WHITE, media.GREEN)),
    ],
)
def test_the_thumbnail_of_a_video_has_its_rotation(tmp_path, rotation, size, shown):
    image = made_of(media.video_mov(tmp_path / "a.mov", 0.1, rotation=rotation))
    assert image.size == size
    assert all(map(looks_like, corners(image), shown))


def test_other_files_have_no_thumbnail(tmp_path):
    (tmp_path / "a.txt").write_text("Hello")
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.txt")
    (tmp_path / "a.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(2000))
    with pytest.raises(CannotFit):
        made_of(tmp_path / "a.mp4")
