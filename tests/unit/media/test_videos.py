"""Videos are inspected through their container."""

import os
import struct
from collections.abc import Callable
from fractions import Fraction
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
def test_a_real_video_has_its_facts(tmp_path, make, mime_type, codec):
    path = make(tmp_path / "video")
    found = inspected(path, mime_type)
    assert (found.kind, found.mime_type, found.size_bytes) == ("video", mime_type, path.stat().st_size)
    facts = found.facts
    assert (facts["width"], facts["height"], facts["video_codec"], facts["has_audio"]) == (128, 96, codec, True)
    assert facts["duration_seconds"] == pytest.approx(1, abs=0.05)
    # The first frame of a short fragmented video lasts longer, because its sound begins later.
    assert facts["frame_rate"] == pytest.approx(24, abs=0.6 if make is media.video_fragmented else 0.01)
    assert facts["frames"] == 24


def test_a_video_without_sound_has_no_audio(tmp_path):
    facts = inspected(media.video_mp4(tmp_path / "a.mp4", 0.25, audio=False), "video/mp4").facts
    assert facts["has_audio"] is False and "audio_codec" not in facts


def test_a_rotated_video_has_the_shown_width_and_height(tmp_path):
    facts = inspected(media.video_mov(tmp_path / "a.mov", 0.25, rotation=90), "video/quicktime").facts
    assert (facts["width"], facts["height"]) == (96, 128)


def test_a_padded_video_has_exactly_the_size_asked_for(tmp_path):
    path = media.video_mp4(tmp_path / "a.mp4", 0.25, size=150_000_000)
    assert inspected(path, "video/mp4").size_bytes == 150_000_000


def test_facts_have_the_names_of_codecs_and_not_of_decoders(tmp_path):
    policy = os.sched_getscheduler(0)
    av1 = media.video_webm(tmp_path / "a.webm", 0.25, codec="libsvtav1")
    assert os.sched_getscheduler(0) == policy, "the encoder took real-time priority"
    facts = inspected(av1, "video/webm").facts
    assert (facts["video_codec"], facts["audio_codec"]) == ("av1", "opus")
    mp3 = media.video_mp4(tmp_path / "a.mp4", 0.25, audio_codec="libmp3lame")
    assert inspected(mp3, "video/mp4").facts["audio_codec"] == "mp3"


@pytest.mark.parametrize(("codec", "audio_codec"), [("libsvtav1", "libopus"), ("libvpx-vp9", "libopus")])
def test_matroska_with_the_codecs_of_webm_is_accepted_as_webm(tmp_path, codec, audio_codec):
    path = media.video_matroska(tmp_path / "a.mkv", 0.25, codec=codec, audio_codec=audio_codec)
    assert inspected(path, "video/webm").mime_type == "video/webm"


@pytest.mark.parametrize(
    ("aspect", "rotation", "shown"),
    [
        (Fraction(4, 3), 0, (171, 96)),
        (Fraction(4, 3), 90, (96, 171)),
        (Fraction(8, 9), 0, (114, 96)),
    ],
)
def test_a_video_without_square_pixels_has_the_shown_width_and_height(tmp_path, aspect, rotation, shown):
    path = media.video_mp4(tmp_path / "a.mp4", 0.25, pixel_aspect=aspect, rotation=rotation)
    facts = inspected(path, "video/mp4").facts
    assert (facts["width"], facts["height"]) == shown
    assert facts["pixel_aspect"] == f"{aspect.numerator}:{aspect.denominator}"


def test_facts_have_the_number_of_audio_channels(tmp_path):
    surround = media.video_mp4(tmp_path / "a.mp4", 0.25, layout="5.1")
    assert inspected(surround, "video/mp4").facts["audio_channels"] == 6


H264, MJPEG = "libx264", "mjpeg"


@pytest.mark.parametrize(
    ("tracks", "width"),
    [
        ([(MJPEG, 160, 120, 1, False), (H264, 128, 96, 6, False)], 128),
        ([(MJPEG, 160, 120, 3, False), (H264, 128, 96, 6, False)], 128),
        ([(H264, 160, 120, 1, False), (H264, 128, 96, 6, False)], 128),
        ([(H264, 64, 48, 6, False), (H264, 128, 96, 6, True)], 128),
        ([(H264, 64, 48, 6, True), (H264, 128, 96, 6, False)], 64),
        ([(H264, 64, 48, 6, True), (H264, 128, 96, 6, True)], 128),
        ([(MJPEG, 64, 48, 6, False)], 64),
    ],
)
def test_the_default_track_counts_else_the_largest_and_never_a_thumbnail(tmp_path, tracks, width):
    facts = inspected(media.video_tracks(tmp_path / "a.mp4", *tracks), "video/mp4").facts
    assert facts["width"] == width


def test_without_a_default_track_the_largest_counts(tmp_path):
    tracks = [("libvpx", 64, 48, 6, False), ("libvpx", 128, 96, 6, False)]
    path = media.video_tracks(tmp_path / "a.webm", *tracks, muxer="webm")
    assert inspected(path, "video/webm").facts["width"] == 128


@pytest.mark.parametrize("interval", [50, 90, 250])
def test_a_video_that_begins_between_two_key_frames_is_decoded_from_the_first_one(tmp_path, interval):
    facts = inspected(media.video_cut(tmp_path / "a.mp4", 10, interval), "video/mp4").facts
    assert (facts["width"], facts["height"], facts["frames"]) == (64, 48, interval)


@pytest.mark.parametrize(
    ("make", "mime_type", "tags"),
    [
        (media.video_mp4, "video/mp4", {"location": "+48.1351+011.5820/"}),
        (media.video_3gp, "video/mp4", {"location": "+48.1351+011.5820/"}),
        (media.video_mov, "video/quicktime", {"com.apple.quicktime.location.ISO6709": "+48.1351+011.5820+520/"}),
    ],
)
def test_facts_say_whether_a_video_contains_a_position(tmp_path, make, mime_type, tags):
    keys = {"movflags": "+use_metadata_tags"} if make is media.video_mov else {}
    with_position = make(tmp_path / "a", 0.25, tags=tuple(tags.items()), **keys)
    assert inspected(with_position, mime_type).facts["has_position"] is True
    others = (("title", "A location"), ("timecode", "01:00:00:00"))  # a time code is a track of data in QuickTime
    without = make(tmp_path / "b", 0.25, tags=others, **keys)
    assert "has_position" not in inspected(without, mime_type).facts


@pytest.mark.parametrize(("place", "has_position"), [("exif:GPSLatitude='48,8.1N'", True), ("dc:title='GPS'", None)])
def test_a_position_in_xmp_counts(tmp_path, place, has_position):
    path = media.video_mp4(tmp_path / "a.mp4", 0.25)
    xmp = bytes.fromhex("be7acfcb97a942e89c71999491e3afac") + f"<rdf:Description {place}/>".encode()
    path.write_bytes(path.read_bytes() + struct.pack(">I4s", len(xmp) + 8, b"uuid") + xmp)
    assert inspected(path, "video/mp4").facts.get("has_position") is has_position


def test_a_file_with_only_sound_is_not_a_video(tmp_path):
    assert "no video track" in rejection(media.sound_mp4(tmp_path / "a.mp4"), "video/mp4")


def test_a_video_track_that_does_not_decode_is_rejected(tmp_path):
    path = media.video_mp4(tmp_path / "a.mp4", faststart=False, audio=False)
    whole = bytearray(path.read_bytes())
    start = whole.index(b"mdat") + 4
    stop = whole.index(b"moov") - 4
    whole[start:stop] = b"\xa5" * (stop - start)
    path.write_bytes(bytes(whole))
    assert "can be decoded" in rejection(path, "video/mp4")
