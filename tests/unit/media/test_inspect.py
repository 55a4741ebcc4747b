"""What a file is: real ones keep their type, hostile are rejected with a reason that names it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from socialpub.media.types import MediaLimits
from tests.samples import hostile, media
from tests.unit.media.inspection import inspected, rejection

Make = Callable[[Path], Path]


def test_image_jpg_counts_as_image_jpeg(tmp_path: Path) -> None:
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
def test_a_file_that_is_something_else_is_refused_naming_both(
    tmp_path: Path, make: Make, declared: str, found: str
) -> None:
    reason = rejection(make(tmp_path / "liar"), declared)
    assert declared in reason and found in reason


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "empty" in rejection(hostile.empty(tmp_path / "a"), "image/png")


def test_a_type_that_is_not_accepted_is_refused(tmp_path: Path) -> None:
    assert "image/tiff" in rejection(media.png(tmp_path / "a"), "image/tiff")


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
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, make: Make, mime_type: str, share: float) -> None:
    assert rejection(hostile.cut(make(tmp_path / "a"), share), mime_type)


def test_each_kind_has_its_own_limit_in_bytes(tmp_path: Path) -> None:
    limits = MediaLimits(image_bytes=500, video_bytes=1000)
    assert "at most 500" in rejection(media.jpeg(tmp_path / "a"), "image/jpeg", limits)
    assert "at most 1000" in rejection(media.video_mp4(tmp_path / "b", 0.1), "video/mp4", limits)
