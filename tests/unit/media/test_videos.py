"""Videos are inspected through their container."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.samples import media
from tests.unit.media.inspection import inspected, rejection

Make = Callable[[Path], Path]


@pytest.mark.parametrize(
    ("make", "mime_type", "codec"),
    [
        (media.video_mp4, "video/mp4", "h264"),
        (media.video_m4v, "video/mp4", "h264"),
        (media.video_3gp, "video/mp4", "h264"),
        (media.video_fragmented, "video/mp4", "h264"),
        (lambda path: media.video_mp4(path, faststart=False), "video/mp4", "h264"),
        (lambda path: media.video_mp4(path, codec="mpeg4"), "video/mp4", "mpeg4"),
        (lambda path: media.video_mp4(path, brand="MSNV"), "video/mp4", "h264"),
        (lambda path: media.video_mp4(path, brand="XAVC"), "video/mp4", "h264"),
        (media.video_mov, "video/quicktime", "h264"),
        (media.video_webm, "video/webm", "vp8"),
        (lambda path: media.video_webm(path, codec="libvpx-vp9"), "video/webm", "vp9"),
        (lambda path: media.video_webm(path, live=True), "video/webm", "vp8"),
        (media.video_matroska, "video/webm", "vp8"),
    ],
)
def test_a_real_video_has_its_facts(tmp_path: Path, make: Make, mime_type: str, codec: str) -> None:
    path = make(tmp_path / "video")
    found = inspected(path, mime_type)
    assert (found.kind, found.mime_type, found.size_bytes) == ("video", mime_type, path.stat().st_size)
    facts = found.facts
    assert (facts["width"], facts["height"], facts["video_codec"], facts["has_audio"]) == (128, 96, codec, True)
    assert facts["duration_seconds"] == pytest.approx(1, abs=0.05)
    # The first frame of a short fragmented video lasts longer, because its sound begins later.
    assert facts["frame_rate"] == pytest.approx(24, abs=0.6 if make is media.video_fragmented else 0.01)
    assert facts["frames"] == 24


def test_a_video_without_sound_has_no_audio(tmp_path: Path) -> None:
    facts = inspected(media.video_mp4(tmp_path / "a.mp4", 0.25, audio=False), "video/mp4").facts
    assert facts["has_audio"] is False and "audio_codec" not in facts


def test_a_rotated_video_has_the_shown_width_and_height(tmp_path: Path) -> None:
    facts = inspected(media.video_mov(tmp_path / "a.mov", 0.25, rotation=90), "video/quicktime").facts
    assert (facts["width"], facts["height"]) == (96, 128)


def test_a_padded_video_has_exactly_the_size_asked_for(tmp_path: Path) -> None:
    path = media.video_mp4(tmp_path / "a.mp4", 0.25, size=150_000_000)
    assert inspected(path, "video/mp4").size_bytes == 150_000_000


def test_a_file_with_only_sound_is_not_a_video(tmp_path: Path) -> None:
    assert "no video track" in rejection(media.sound_mp4(tmp_path / "a.mp4"), "video/mp4")


def test_a_video_track_that_does_not_decode_is_rejected(tmp_path: Path) -> None:
    path = media.video_mp4(tmp_path / "a.mp4", faststart=False, audio=False)
    whole = bytearray(path.read_bytes())
    start = whole.index(b"mdat") + 4
    stop = whole.index(b"moov") - 4
    whole[start:stop] = b"\xa5" * (stop - start)
    path.write_bytes(bytes(whole))
    assert "can be decoded" in rejection(path, "video/mp4")
