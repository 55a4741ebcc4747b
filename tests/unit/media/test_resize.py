"""A fitted image is upright, has an accepted type, and is as large and good as the limits allow."""

import io
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageCms

from socialpub.media.decoder.resize import fit
from socialpub.media.types import CannotFit, FitLimits
from tests.samples import hostile, media
from tests.unit.media.inspection import inspected

JPEG_OR_PNG = ("image/jpeg", "image/png")


def fitted(source: Path, types: tuple[str, ...] = JPEG_OR_PNG, max_bytes: int = 5_000_000, **limits: Any) -> Any:
    """Return the result, and the written image (None: the source fits)."""
    target = source.with_suffix(".fitted")
    answer = fit(source, target, FitLimits(types, max_bytes, **limits))
    if not answer["changed"]:
        assert not target.exists()
        return answer, None
    assert answer["size_bytes"] == target.stat().st_size <= max_bytes
    image = Image.open(io.BytesIO(target.read_bytes()))
    image.load()
    assert (answer["width"], answer["height"]) == image.size
    assert answer["mime_type"] == Image.MIME[image.format or ""]
    return answer, image


def looks_like(pixel: Any, colour: tuple[int, ...]) -> bool:
    return all(abs(a - b) < 30 for a, b in zip(pixel, colour, strict=True))


def corners(image: Image.Image) -> list[Any]:
    width, height = image.size
    shown = image.convert("RGB")
    return [shown.getpixel((x, y)) for y in (4, height - 5) for x in (4, width - 5)]


def test_an_image_that_fits_is_left_alone(tmp_path):
    answer, image = fitted(media.jpeg_grey(tmp_path / "a.jpg"), max_width=320, max_height=240)
    assert image is None
    assert answer["mime_type"] == "image/jpeg" and (answer["width"], answer["height"]) == (320, 240)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_image_is_set_upright(tmp_path, orientation):
    answer, image = fitted(media.jpeg(tmp_path / "a.jpg", 320, 240, orientation))
    assert image.size == (320, 240) and answer["mime_type"] == "image/jpeg"
    wanted = (media.RED, media.GREEN, media.BLUE, media.WHITE)
    assert all(looks_like(pixel, colour) for pixel, colour in zip(corners(image), wanted, strict=True))


def test_location_and_device_are_removed_and_the_color_profile_stays(tmp_path):
    source = media.jpeg_with_profile(tmp_path / "a.jpg")
    with Image.open(source) as original:
        profile = original.info["icc_profile"]
    _, image = fitted(source)
    assert not image.getexif() and "exif" not in image.info and "comment" not in image.info
    assert image.info["icc_profile"] == profile
    assert b"Samplephone" not in source.with_suffix(".fitted").read_bytes()


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({"max_width": 160}, (160, 120)),
        ({"max_height": 60}, (80, 60)),
        ({"max_short_side": 180}, (240, 180)),
        ({"max_width": 200, "max_height": 200, "max_short_side": 100}, (133, 100)),
    ],
)
@pytest.mark.parametrize("orientation", [1, 6])
def test_it_is_scaled_only_as_far_as_needed(tmp_path, limits, size, orientation):
    _, image = fitted(media.jpeg(tmp_path / "a.jpg", 320, 240, orientation), **limits)
    assert image.size == size


def test_limits_are_those_of_the_upright_image(tmp_path):
    _, image = fitted(media.jpeg(tmp_path / "a.jpg", 240, 320, 6), max_width=240, max_height=320)
    assert image.size == (240, 320)


def test_too_many_bytes_cost_quality_before_they_cost_pixels(tmp_path):
    source = media.jpeg(tmp_path / "a.jpg", 400, 300, noise=True, quality=100)
    answer, image = fitted(source, max_bytes=100_000)
    assert image.size == (400, 300)
    assert answer["size_bytes"] > 90_000, "it could have been better"


def test_an_image_is_scaled_if_the_lowest_quality_is_too_large(tmp_path):
    source = media.jpeg(tmp_path / "a.jpg", 400, 300, noise=True, quality=100)
    answer, image = fitted(source, max_bytes=20_000)
    assert 100 < image.width < 400 and answer["size_bytes"] > 12_000
    assert image.width / image.height == pytest.approx(4 / 3, rel=0.02)


def test_transparency_stays_for_a_type_that_supports_it(tmp_path):
    answer, image = fitted(media.png_alpha(tmp_path / "a.png"), max_width=160)
    assert answer["mime_type"] == "image/png" and image.mode == "RGBA"
    assert image.getpixel((4, 4))[3] == 0


def test_transparency_becomes_white_for_other_types(tmp_path):
    answer, image = fitted(media.png_alpha(tmp_path / "a.png"), ("image/jpeg",))
    assert answer["mime_type"] == "image/jpeg"
    assert looks_like(image.getpixel((4, 4)), (255, 255, 255))
    assert looks_like(image.getpixel((300, 4)), media.GREEN)


def test_transparency_is_removed_before_pixels_are(tmp_path):
    source = tmp_path / "a.png"
    image = media.picture(200, 200, noise=True).convert("RGBA")
    image.putpixel((0, 0), (0, 0, 0, 0))
    image.save(source)
    answer, image = fitted(source, max_bytes=60_000)
    assert answer["mime_type"] == "image/jpeg" and image.size == (200, 200)


@pytest.mark.parametrize(
    ("types", "max_bytes", "mime_type", "keeps_size"),
    [
        (JPEG_OR_PNG, 90_000, "image/jpeg", True),
        (("image/png",), 90_000, "image/png", False),
        (("image/jpeg", "image/webp"), 5_000_000, "image/webp", True),
        (("image/jpeg",), 5_000_000, "image/jpeg", True),
        (("image/webp", "image/jpeg"), 5_000_000, "image/webp", True),
    ],
)
def test_the_first_type_that_fits_is_used(tmp_path, types, max_bytes, mime_type, keeps_size):
    answer, image = fitted(media.png(tmp_path / "a.png", 300, 200, noise=True), types, max_bytes)
    assert answer["mime_type"] == mime_type and (image.size == (300, 200)) == keeps_size


def test_sixteen_bits_keep_their_greys(tmp_path):
    _, image = fitted(media.png_16bit(tmp_path / "a.png"), ("image/jpeg",))
    middle = image.convert("L").getpixel((160, 100))
    assert 120 < middle < 136


def test_a_palette_keeps_its_colors(tmp_path):
    source = tmp_path / "a.gif"
    media.gif(source)
    _, image = fitted(source, ("image/jpeg",))
    assert looks_like(corners(image)[0], media.RED) and looks_like(corners(image)[2], media.BLUE)


def test_cmyk_keeps_its_colors(tmp_path):
    _, image = fitted(media.jpeg_cmyk(tmp_path / "a.jpg"), max_width=160)
    assert image.mode == "RGB"
    assert looks_like(corners(image)[1], media.GREEN)


def test_a_grey_profile_is_not_put_on_a_colored_image(tmp_path):
    source = tmp_path / "a.png"
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[16:20] = b"GRAY"
    media.picture(320, 240).save(source, icc_profile=bytes(profile))
    _, image = fitted(source, ("image/jpeg",))
    assert "icc_profile" not in image.info


@pytest.mark.parametrize("types", [("image/jpeg",), ("image/png",), ("image/webp",)])
def test_comments_are_removed(tmp_path, types):
    source = hostile.jpeg_with_comment(tmp_path / "a.jpg", b"my home address")
    fitted(source, types, max_width=100)
    assert b"my home address" not in source.with_suffix(".fitted").read_bytes()


def test_a_multi_picture_jpeg_becomes_its_first_image(tmp_path):
    _, image = fitted(media.jpeg_mpo(tmp_path / "a.jpg"), max_width=100)
    assert image.size == (100, 75) and image.format == "JPEG"


@pytest.mark.parametrize("make", [media.gif_animated, media.webp_animated])
def test_an_animation_becomes_its_first_frame_if_only_stills_are_accepted(tmp_path, make):
    answer, image = fitted(make(tmp_path / "a"), ("image/jpeg", "image/png"))
    assert answer["mime_type"] == "image/png" and looks_like(corners(image)[0], media.RED)


def test_an_animated_gif_is_never_changed(tmp_path):
    source = media.gif_animated(tmp_path / "a.gif")
    _, image = fitted(source, ("image/gif", "image/jpeg"))
    assert image is None
    with pytest.raises(CannotFit, match="64 × 48"):
        fitted(source, ("image/gif", "image/jpeg"), max_width=32)
    with pytest.raises(CannotFit, match="At most 100 bytes"):
        fitted(source, ("image/gif", "image/jpeg"), max_bytes=100)


def test_a_still_gif_may_become_another_type(tmp_path):
    answer, image = fitted(media.gif(tmp_path / "a.gif"), ("image/gif", "image/jpeg"), max_width=100)
    assert answer["mime_type"] == "image/jpeg" and image.size == (100, 75)


@pytest.mark.parametrize("make", [hostile.html, hostile.empty, lambda path: hostile.cut(media.png(path, noise=True))])
def test_what_is_no_image_cannot_be_made_to_fit(tmp_path, make):
    with pytest.raises(CannotFit):
        fitted(make(tmp_path / "a"), max_width=10)
    assert not (tmp_path / "a.fitted").exists()


def striped(path: Path, form: str, size: tuple[int, int] = (200, 160), **save: Any) -> Path:
    """A drawing: red and blue columns of one pixel, which a JPEG without 4:4:4 mixes."""
    image = Image.new("RGB", size, (0, 0, 255))
    for x in range(0, size[0], 2):
        image.paste((255, 0, 0), (x, 0, x + 1, size[1]))
    (image.quantize(4) if form == "GIF" else image).save(path, form, **save)
    return path


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("types", "mime_type"),
    [
        (("image/jpeg", "image/png", "image/webp"), "image/png"),
        (JPEG_OR_PNG, "image/png"),
        (("image/jpeg", "image/webp"), "image/webp"),
        (("image/jpeg",), "image/jpeg"),
    ],
)
def test_a_drawing_keeps_its_colors(tmp_path, form, types, mime_type):
    source = striped(tmp_path / "a", form, **({"lossless": True} if form == "WEBP" else {}))
    # Turned, so that the pixels cannot be copied.
    if form != "GIF":
        exif = Image.Exif()
        exif[0x0112] = 3
        striped(source, form, exif=exif.tobytes(), **({"lossless": True} if form == "WEBP" else {}))
    answer, image = fitted(source, types)
    assert answer["mime_type"] == mime_type
    most = 40 if mime_type == "image/jpeg" else 0
    with Image.open(source) as original:
        before = original.convert("RGB") if form == "GIF" else original.convert("RGB").rotate(180)
    assert max(high for _, high in ImageChops.difference(before, image.convert("RGB")).getextrema()) <= most


def test_few_colors_stay_a_palette(tmp_path):
    answer, image = fitted(striped(tmp_path / "a.gif", "GIF", (1200, 1000)), max_bytes=20_000)
    assert image.mode == "P" and image.size == (1200, 1000) and answer["mime_type"] == "image/png"


def test_a_color_profile_above_a_mebibyte_becomes_srgb(tmp_path):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    large = (len(profile) + 1_500_000).to_bytes(4) + profile[4:] + random.Random(1).randbytes(1_500_000)
    for form, types in (("JPEG", JPEG_OR_PNG), ("PNG", JPEG_OR_PNG), ("PNG", ("image/webp",))):
        source = tmp_path / f"a.{form}"
        media.picture(320, 240).save(source, form, icc_profile=large)
        mime_type = f"image/{form.lower()}"
        assert inspected(source, mime_type).facts["width"] == 320
        answer, image = fitted(source, types)
        assert "icc_profile" not in image.info and looks_like(corners(image)[1], media.GREEN)
        assert inspected(source.with_suffix(".fitted"), answer["mime_type"]).facts["width"] == 320


def test_impossible_limits_are_an_error(tmp_path):
    with pytest.raises(CannotFit, match="at most 50 bytes"):
        fitted(media.jpeg(tmp_path / "a.jpg"), max_bytes=50)
    with pytest.raises(CannotFit, match="image/gif"):
        fitted(media.jpeg(tmp_path / "b.jpg"), ("image/gif",))


def test_an_image_above_the_largest_side_of_a_jpeg_fits(tmp_path):
    source = tmp_path / "a.png"
    Image.new("RGB", (70_000, 100), (10, 20, 30)).save(source)
    answer, image = fitted(source, ("image/jpeg",))
    assert answer["mime_type"] == "image/jpeg" and image.width == 65_500
