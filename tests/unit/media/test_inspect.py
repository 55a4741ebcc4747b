"""Real files keep their type, and hostile files are rejected with a reason."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from socialpub.media.decoder import inspect
from socialpub.media.decoder.inspect import inspect_file
from socialpub.media.types import MediaLimits, MediaRejected, canonical_type, media_kind
from tests.samples import hostile, media
from tests.unit.media.inspection import inspected, rejection

Make = Callable[[Path], Path]


def test_image_jpg_counts_as_image_jpeg(tmp_path):
    assert inspected(media.jpeg(tmp_path / "a"), "image/jpg").mime_type == "image/jpeg"


@pytest.mark.parametrize(
    ("make", "declared", "found"),
    [
        (hostile.html, "image/png", "text/html"),
        (hostile.pdf, "image/jpeg", "application/pdf"),
        (hostile.html, "video/mp4", "text/html"),
        (media.png, "image/jpeg", "image/png"),
        (media.jpeg, "image/png", "image/jpeg"),
        (media.video_mp4, "image/jpeg", "video/mp4"),
        (media.heic, "image/jpeg", "image/heic"),
        (media.heic, "image/avif", "image/heic"),
        (media.avif, "image/heic", "image/avif"),
        (media.heic, "video/mp4", "image/heic"),
        (media.video_mp4, "image/heic", "video/mp4"),
        (media.jpeg, "video/mp4", "image/jpeg"),
        (media.video_mov, "video/mp4", "video/quicktime"),
        (media.video_mp4, "video/quicktime", "video/mp4"),
        (media.video_webm, "video/mp4", "video/webm"),
        (media.video_mp4, "video/webm", "video/mp4"),
        (
            lambda p: media.video_matroska(p, codec="libx264", audio_codec="aac"),
            "video/webm",
            "Matroska with h264 and aac",
        ),
    ],
)
def test_the_error_for_a_wrong_type_names_both_types(tmp_path, make, declared, found):
    reason = rejection(make(tmp_path / "liar"), declared)
    assert declared in reason and found in reason


@pytest.mark.parametrize(
    ("make", "mime_type"), [(media.heic, "image/heic"), (media.heif, "image/heif"), (media.avif, "image/avif")]
)
def test_a_heic_or_avif_without_a_declared_type_is_recognized(tmp_path, make, mime_type):
    assert inspect_file(make(tmp_path / "a"), None, MediaLimits()).mime_type == mime_type


def test_an_empty_file_is_rejected(tmp_path):
    assert "empty" in rejection(hostile.empty(tmp_path / "a"), "image/png")


def test_a_type_that_is_not_accepted_is_rejected_with_the_conversion_that_helps(tmp_path):
    reason = rejection(media.png(tmp_path / "a"), "image/tiff")
    assert "image/tiff" in reason and "Save it as JPEG or PNG" in reason
    media.picture(64, 48).save(tmp_path / "b", "TIFF")
    assert "image/tiff. Save it as JPEG or PNG." in rejection(tmp_path / "b", "image/png")
    assert "H.264 and AAC" in rejection(media.video_mp4(tmp_path / "c", 0.1), "video/x-msvideo")


def test_a_segment_of_a_stream_is_called_a_segment(tmp_path):
    whole = media.video_fragmented(tmp_path / "a", 0.5).read_bytes()
    fragment = whole.index(b"moof") - 4
    for first in (b"", b"\0\0\0\x10styp" + b"msdh\0\0\0\0"):
        (tmp_path / "a").write_bytes(first + whole[fragment:])
        for declared in ("video/mp4", None):
            with pytest.raises(MediaRejected, match="one segment of a stream"):
                inspect_file(tmp_path / "a", declared, MediaLimits())


@pytest.mark.parametrize("share", [0.3, 0.98])
@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (lambda path: media.jpeg(path, noise=True), "image/jpeg"),
        (media.jpeg_progressive, "image/jpeg"),
        (lambda path: media.png(path, noise=True), "image/png"),
        (media.gif_animated, "image/gif"),
        (media.webp, "image/webp"),
        (media.video_mp4, "video/mp4"),
        (lambda path: media.video_mp4(path, faststart=False), "video/mp4"),
        (media.video_webm, "video/webm"),
    ],
)
def test_an_incomplete_file_is_rejected(tmp_path, make, mime_type, share):
    assert rejection(hostile.cut(make(tmp_path / "a"), share), mime_type)


def test_each_kind_has_its_own_limit_in_bytes(tmp_path):
    limits = MediaLimits(image_bytes=500, video_bytes=1000)
    assert "at most 500" in rejection(media.jpeg(tmp_path / "a"), "image/jpeg", limits)
    assert "at most 1000" in rejection(media.video_mp4(tmp_path / "b", 0.1), "video/mp4", limits)


# --- Files that are two things at once are rejected; what phones leave behind the end of a picture is not -------------


@pytest.mark.parametrize("junk", [bytes(4096), b"\r\n", b'{"cameraInfo": {"lens": 2}}', bytes(range(256)) * 64])
def test_known_data_after_the_end_of_an_image_is_accepted(tmp_path, junk):
    assert inspected(hostile.with_tail(media.jpeg(tmp_path / "a"), junk), "image/jpeg")
    assert inspected(hostile.with_tail(media.png(tmp_path / "b"), junk), "image/png")


@pytest.mark.parametrize(
    ("tail", "other"),
    [
        (hostile.archive(), "ZIP"),
        (hostile.PAGE, "HTML"),
        (bytes(64) + b"<ScRiPt src=//x>", "HTML or a script"),
        (b"<?php system($_GET['c']); ?>", "script"),
        (b"%PDF-1.7\n", "PDF"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "program"),
    ],
)
@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (media.jpeg, "image/jpeg"),
        (media.motion_photo, "image/jpeg"),
        (media.png, "image/png"),
        (media.gif, "image/gif"),
        (media.webp, "image/webp"),
        (lambda path: media.video_mp4(path, 0.1), "video/mp4"),
        (lambda path: media.video_webm(path, 0.1), "video/webm"),
    ],
)
def test_a_file_with_another_file_after_its_end_is_rejected(tmp_path, make, mime_type, tail, other):
    reason = rejection(hostile.with_tail(make(tmp_path / "two"), tail), mime_type)
    assert other in reason and "also" in reason


@pytest.mark.parametrize(
    ("comment", "other"), [(hostile.PAGE, "HTML"), (b"%PDF-1.4\n", "PDF"), (b"<?php id ?>", "script")]
)
def test_an_image_with_another_file_in_its_head_is_rejected(tmp_path, comment, other):
    assert other in rejection(hostile.jpeg_with_comment(tmp_path / "a.jpg", comment), "image/jpeg")


def test_a_gif_that_is_a_script_is_rejected(tmp_path):
    assert "script" in rejection(hostile.gif_script(tmp_path / "a.gif"), "image/gif")


def test_an_ordinary_comment_is_accepted(tmp_path):
    path = hostile.jpeg_with_comment(tmp_path / "a.jpg", b"Sunset <3, taken with <b>love</b> & PDF-like quality")
    assert inspected(path, "image/jpeg")


# --- The accepted types and their names -------------------------------------------------------------------------------


def test_a_type_has_one_canonical_name_and_a_kind():
    assert canonical_type("Image/JPG") == "image/jpeg"
    assert canonical_type("image/tiff") is None
    assert media_kind("video/webm") == "video"


LIBRARIES = """
import ctypes, sys
from pathlib import Path
from socialpub.media.decoder import inspect
inspect._usable_version = lambda library, data: {versions}[data is not None]
print(inspect.detect_type(Path(sys.argv[1])), inspect.describe_libmagic())
"""


@pytest.mark.parametrize(
    ("system", "included", "wins"),
    [(999, 540, "system"), (540, 999, "pylibmagic"), (540, 540, "pylibmagic"), (0, 999, "pylibmagic")],
)
def test_the_newer_libmagic_recognizes_types(tmp_path, system, included, wins):
    """A library without its data file has version 0."""
    if system == 999 and not inspect._usable_version("libmagic.so.1", None):
        pytest.skip("this system has no libmagic")
    code = LIBRARIES.format(versions=(system, included))
    command = [sys.executable, "-c", code, media.png(tmp_path / "a.png")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert printed.startswith("image/png 5.")
    assert printed.endswith(f"{wins})")


def test_a_libmagic_that_is_missing_or_has_no_data_is_not_usable(tmp_path):
    library = str(Path(str(find_spec("pylibmagic").origin)).with_name("libmagic.so"))  # type: ignore[union-attr]
    assert inspect._usable_version(library, str(tmp_path / "magic.mgc")) == 0
    assert inspect._usable_version(str(tmp_path / "libmagic.so"), None) == 0
    assert inspect._usable_version("libc.so.6", None) == 0
