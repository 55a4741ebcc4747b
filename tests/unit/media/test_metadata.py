"""Metadata are removed from an image file, and its pixels stay byte for byte."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageCms, ImageSequence, JpegImagePlugin, PngImagePlugin

from socialpub.media.decoder import jpeg as jpeg_segments
from socialpub.media.decoder.resize import fit
from socialpub.media.decoder.structure import strip_metadata
from socialpub.media.types import FitLimits
from tests.samples import hostile, media

PLACE = b"52.5163,13.3777"
"""As EXIF, XMP, IPTC and comments may say it."""
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><exif:GPSLatitude>' + PLACE + b"</exif:GPSLatitude></x:xmpmeta>"
TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif")
EVERYTHING = FitLimits(TYPES, 20_000_000)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def exif() -> bytes:
    found = Image.Exif()
    found[0x010E] = PLACE.decode()
    found.get_ifd(0x8825)[1] = "N"
    found.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    return found.tobytes()


def jpeg(path: Path, **save: Any) -> Path:
    media.picture(320, 240).save(path, "JPEG", exif=exif(), xmp=XMP, comment=PLACE, icc_profile=PROFILE, **save)
    iptc = b"Photoshop 3.0\08BIM\x04\x04\0\0" + struct.pack(">I", len(PLACE)) + PLACE
    credentials = b"JP\0\x01\0\0\0\x01" + PLACE
    return media.inserted(path, segment(0xED, iptc) + segment(0xEB, credentials))


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def multi_picture(path: Path) -> Path:
    whole = media.jpeg_mpo(path).read_bytes()
    media.inserted(path, segment(0xFE, PLACE), whole.index(b"\xff\xd9\xff\xd8") + 4)
    return media.inserted(path, segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP))


def motion_photo(path: Path) -> Path:
    jpeg(path).write_bytes(path.read_bytes() + b"\0\0\0\x18ftypmp42" + PLACE)
    return path


def with_metadata_between_scans(path: Path) -> Path:
    whole = jpeg(path, progressive=True).read_bytes()
    second = whole.index(b"\xff\xda", whole.index(b"\xff\xda") + 2)
    return media.inserted(path, segment(0xFE, PLACE), second)


def png(path: Path) -> Path:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Location", PLACE.decode())
    texts.add_text("Comment", PLACE.decode() * 9, zip=True)
    texts.add_itxt("XML:com.adobe.xmp", XMP.decode())
    media.picture(320, 240).save(path, "PNG", exif=exif(), pnginfo=texts, icc_profile=PROFILE, dpi=(72, 72))
    private = b"spAt" + PLACE
    return media.inserted(path, struct.pack(">I", len(PLACE)) + private + struct.pack(">I", zlib.crc32(private)), 33)


def png_animated(path: Path) -> Path:
    first, *rest = (media.picture(64, 48).rotate(90 * number) for number in range(3))
    first.save(path, "PNG", save_all=True, append_images=rest, duration=100, exif=exif())
    return path


def webp(path: Path) -> Path:
    media.picture(320, 240).save(path, "WEBP", exif=exif(), xmp=XMP, icc_profile=PROFILE)
    return path


def webp_animated(path: Path) -> Path:
    first, *rest = (media.picture(64, 48).rotate(90 * number) for number in range(3))
    first.save(path, "WEBP", save_all=True, append_images=rest, duration=100, exif=exif(), xmp=XMP)
    return path


def gif_animated(path: Path) -> Path:
    first, *rest = (media.picture(64, 48).rotate(90 * number) for number in range(3))
    first.save(path, "GIF", save_all=True, append_images=rest, duration=100, loop=0, comment=PLACE)
    # An XMP packet is written as it is; 257 bytes behind it let every decoder find the end of the block.
    packet = b"!\xff\x0bXMP DataXMP" + XMP + b"\x01" + bytes(range(255, -1, -1)) + b"\0"
    return media.inserted(path, packet, path.read_bytes().index(b"!\xff\x0bNETSCAPE"))


MAKERS = [jpeg, multi_picture, motion_photo]
MAKERS += [png, webp, gif_animated]


def shown(data: bytes) -> list[tuple[Any, ...]]:
    """Return what a viewer shows of the file: frames, durations, colors."""
    with Image.open(io.BytesIO(data)) as image:
        # Behind the first image of a JPEG are others, which no viewer shows.
        frames = [image] if image.format in ("JPEG", "MPO") else ImageSequence.Iterator(image)
        return [_frame(frame, image.format) for frame in frames]


def _frame(frame: Image.Image, form: str | None) -> tuple[Any, ...]:
    kept = ["duration", "loop", "icc_profile", *(["dpi"] if form == "PNG" else [])]
    return frame.convert("RGBA").tobytes(), *(frame.info.get(name) for name in kept)


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_that_fits_loses_its_metadata_and_nothing_else(tmp_path, make):
    source, target = make(tmp_path / "a"), tmp_path / "b"
    original = source.read_bytes()
    assert PLACE in original
    answer = fit(source, target, EVERYTHING)
    plain = target.read_bytes()
    assert answer["changed"] and not answer["reencoded"] and answer["size_bytes"] == len(plain)
    assert PLACE not in plain and b"xmp" not in plain.lower() and b"Exif" not in plain and b"EXIF" not in plain
    assert shown(plain) == shown(original)
    with Image.open(io.BytesIO(plain)) as image:
        assert not image.getexif()
    assert source.read_bytes() == original, "what was uploaded stays as it is"


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_without_metadata_is_left_alone(tmp_path, make):
    path = make(tmp_path / "a")
    mime_type = fit(path, tmp_path / "b", EVERYTHING)["mime_type"]
    plain = (tmp_path / "b").read_bytes()
    assert strip_metadata(plain, mime_type) == plain
    answer = fit(tmp_path / "b", tmp_path / "c", EVERYTHING)
    assert not answer["changed"] and not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (media.jpeg_grey, "image/jpeg"),
        (media.png_palette, "image/png"),
        (media.webp, "image/webp"),
        (media.gif, "image/gif"),
        (media.gif_animated, "image/gif"),
    ],
)
def test_files_of_programs_without_metadata_do_not_change(tmp_path, make, mime_type):
    whole = make(tmp_path / "a").read_bytes()
    assert strip_metadata(whole, mime_type) == whole


@pytest.mark.parametrize(
    "save", [{"restart_marker_rows": 1}, {"restart_marker_blocks": 3}, {"restart_marker_rows": 1, "progressive": True}]
)
@pytest.mark.parametrize("damage", [b"\xff\x9f", b"\xff\x02", b"\xff\x01", b"\xff\xd3", b"\x12\x34"])
def test_a_damaged_photo_is_published_as_viewers_show_it(tmp_path, damage, save):
    source, target = hostile.jpeg_damaged(tmp_path / "a", damage, **save), tmp_path / "b"
    answer = fit(source, target, EVERYTHING)
    assert not answer["reencoded"] and b"Samplephone" not in target.read_bytes()
    assert shown(target.read_bytes()) == shown(source.read_bytes())


def test_a_photo_that_would_look_different_without_metadata_is_encoded_again(tmp_path, monkeypatch):
    source, target = jpeg(tmp_path / "a"), tmp_path / "b"
    other = media.jpeg(tmp_path / "c", noise=True).read_bytes()
    monkeypatch.setattr(jpeg_segments, "strip_metadata", lambda _: other)
    assert fit(source, target, EVERYTHING)["reencoded"]
    assert PLACE not in target.read_bytes()
    with Image.open(source) as before, Image.open(target) as after:
        assert max(high for _, high in ImageChops.difference(before, after).getextrema()) < 16
        assert JpegImagePlugin.get_sampling(after) == 0, "colors have the full resolution"


@pytest.mark.parametrize("tail", [b"", b"\0\0\x01\x0aImage_UTC_Data" + PLACE])
def test_metadata_between_scans_and_a_missing_end_need_a_new_encoding(tmp_path, tail):
    for source in (with_metadata_between_scans(tmp_path / "a"), jpeg(tmp_path / "b")):
        if source.name == "b":
            source.write_bytes(source.read_bytes().removesuffix(b"\xff\xd9") + tail)
        target = tmp_path / "c"
        assert fit(source, target, EVERYTHING)["reencoded"]
        assert PLACE not in target.read_bytes() and target.read_bytes().endswith(b"\xff\xd9")


def test_a_gif_without_its_end_and_with_bytes_between_its_blocks_stays_an_animation(tmp_path):
    whole = gif_animated(tmp_path / "a.gif").read_bytes().removesuffix(b";")
    frame = whole.index(b"\0!\xf9", 900) + 1
    for data in (whole, whole[:frame] + bytes(3) + whole[frame:] + b";"):
        (tmp_path / "a.gif").write_bytes(data)
        assert not fit(tmp_path / "a.gif", tmp_path / "b.gif", EVERYTHING)["reencoded"]
        plain = (tmp_path / "b.gif").read_bytes()
        assert shown(plain) == shown(data) and plain.endswith(b"\0;") and PLACE not in plain


@pytest.mark.parametrize("make", [png_animated, webp_animated])
def test_other_animations_than_gifs_become_their_first_frame(tmp_path, make):
    source, target = make(tmp_path / "a"), tmp_path / "b"
    answer = fit(source, target, EVERYTHING)
    assert answer["mime_type"] == "image/png" and b"Exif" not in target.read_bytes()
    first, plain = shown(source.read_bytes())[0], shown(target.read_bytes())
    assert len(plain) == 1 and plain[0][0] == first[0]


def test_a_file_that_is_too_large_only_with_its_metadata_keeps_its_pixels(tmp_path):
    source = jpeg(tmp_path / "a.jpg")
    source.write_bytes(source.read_bytes() + bytes(100_000))
    answer = fit(source, tmp_path / "b.jpg", FitLimits(("image/jpeg",), 90_000))
    assert not answer["reencoded"]
    assert shown((tmp_path / "b.jpg").read_bytes()) == shown(source.read_bytes())


def test_an_invalid_file_is_encoded_again(tmp_path):
    source = png(tmp_path / "a.png")
    whole = bytearray(source.read_bytes())
    whole[whole.index(b"pHYs") + 4] ^= 1
    assert strip_metadata(bytes(whole), "image/png") is None


def test_cmyk_becomes_rgb(tmp_path):
    source = media.jpeg_cmyk(tmp_path / "a.jpg")
    answer = fit(source, tmp_path / "b.jpg", EVERYTHING)
    assert answer["changed"] and answer["reencoded"] and (answer["width"], answer["height"]) == (320, 240)
    with Image.open(tmp_path / "b.jpg") as image:
        assert image.mode == "RGB"
        assert all(abs(a - b) < 30 for a, b in zip(image.getpixel((300, 20)), media.GREEN, strict=True))
