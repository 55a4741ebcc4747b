"""Files that are two things at once are rejected; what phones leave behind the end of a picture is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.samples import hostile, media
from tests.unit.media.inspection import inspected, rejection

Make = Callable[[Path], Path]


@pytest.mark.parametrize("junk", [bytes(4096), b"\r\n", b'{"cameraInfo": {"lens": 2}}', bytes(range(256)) * 64])
def test_what_makers_leave_behind_the_end_of_a_picture_is_tolerated(tmp_path: Path, junk: bytes) -> None:
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
def test_a_file_with_another_behind_it_is_refused(
    tmp_path: Path, make: Make, mime_type: str, tail: bytes, other: str
) -> None:
    reason = rejection(hostile.with_tail(make(tmp_path / "two"), tail), mime_type)
    assert other in reason and "also" in reason


@pytest.mark.parametrize(
    ("comment", "other"), [(hostile.PAGE, "HTML"), (b"%PDF-1.4\n", "PDF"), (b"<?php id ?>", "script")]
)
def test_a_picture_with_another_file_in_its_head_is_refused(tmp_path: Path, comment: bytes, other: str) -> None:
    assert other in rejection(hostile.jpeg_with_comment(tmp_path / "a.jpg", comment), "image/jpeg")


def test_a_gif_that_is_a_script_is_refused(tmp_path: Path) -> None:
    assert "script" in rejection(hostile.gif_script(tmp_path / "a.gif"), "image/gif")


def test_an_honest_comment_is_no_reason(tmp_path: Path) -> None:
    path = hostile.jpeg_with_comment(tmp_path / "a.jpg", b"Sunset <3, taken with <b>love</b> & PDF-like quality")
    assert inspected(path, "image/jpeg")
