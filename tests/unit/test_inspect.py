"""Looking inside a file: real ones pass with true figures, liars are refused with a reason that names them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from socialpub.media import inspect
from socialpub.media.types import Facts, MediaLimits, MediaRejected, canonical_type, kind_of
from tests.samples import liars, media

Make = Callable[[Path], Path]


def examined(path: Path, declared: str, limits: MediaLimits | None = None) -> Facts:
    return inspect.inspect_file(path, declared, limits or MediaLimits())


def refusal(path: Path, declared: str, limits: MediaLimits | None = None) -> str:
    with pytest.raises(MediaRejected) as caught:
        examined(path, declared, limits)
    assert str(path.parent) not in caught.value.reason
    return caught.value.reason


# --- real pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (media.jpeg, "image/jpeg"),
        (media.jpeg_progressive, "image/jpeg"),
        (media.jpeg_cmyk, "image/jpeg"),
        (media.jpeg_grey, "image/jpeg"),
        (media.jpeg_mpo, "image/jpeg"),
        (media.jpeg_mpo_beheaded, "image/jpeg"),
        (media.jpeg_samsung, "image/jpeg"),
        (media.motion_photo, "image/jpeg"),
        (media.png, "image/png"),
        (media.png_alpha, "image/png"),
        (media.png_palette, "image/png"),
        (media.png_16bit, "image/png"),
        (media.webp, "image/webp"),
        (media.gif, "image/gif"),
    ],
)
def test_a_real_still_passes_with_its_size_in_pixels(tmp_path: Path, make: Make, mime_type: str) -> None:
    path = make(tmp_path / "still")
    facts = examined(path, mime_type)
    assert (facts.kind, facts.mime_type, facts.size_bytes) == ("image", mime_type, path.stat().st_size)
    assert (facts.facts["width"], facts.facts["height"], facts.facts["frames"]) == (320, 240, 1)


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [(media.gif_animated, "image/gif"), (media.webp_animated, "image/webp"), (media.png_animated, "image/png")],
)
def test_the_frames_of_an_animation_are_counted(tmp_path: Path, make: Make, mime_type: str) -> None:
    assert examined(make(tmp_path / "moving"), mime_type).facts == {"width": 64, "height": 48, "frames": 3}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_width_and_height_are_those_of_the_upright_picture(tmp_path: Path, orientation: int) -> None:
    facts = examined(media.jpeg(tmp_path / "phone.jpg", 320, 240, orientation), "image/jpeg").facts
    assert (facts["width"], facts["height"]) == (320, 240)
    assert facts.get("orientation", 1) == orientation


def test_image_jpg_counts_as_image_jpeg(tmp_path: Path) -> None:
    assert examined(media.jpeg(tmp_path / "a"), "image/jpg").mime_type == "image/jpeg"
    assert canonical_type("Image/JPG") == "image/jpeg"
    assert canonical_type("image/tiff") is None
    assert kind_of("video/webm") == "video"


@pytest.mark.parametrize("junk", [bytes(4096), b"\r\n", b'{"cameraInfo": {"lens": 2}}', bytes(range(256)) * 64])
def test_what_makers_leave_behind_the_end_of_a_picture_is_tolerated(tmp_path: Path, junk: bytes) -> None:
    assert examined(liars.with_tail(media.jpeg(tmp_path / "a"), junk), "image/jpeg")
    assert examined(liars.with_tail(media.png(tmp_path / "b"), junk), "image/png")


# --- real films ------------------------------------------------------------------------------------------------------


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
def test_a_real_film_passes_with_its_figures(tmp_path: Path, make: Make, mime_type: str, codec: str) -> None:
    path = make(tmp_path / "film")
    found = examined(path, mime_type)
    assert (found.kind, found.mime_type, found.size_bytes) == ("video", mime_type, path.stat().st_size)
    facts = found.facts
    assert (facts["width"], facts["height"], facts["video_codec"], facts["has_audio"]) == (128, 96, codec, True)
    assert facts["duration_seconds"] == pytest.approx(1, abs=0.05)
    # The first frame of a short fragmented film lasts longer, as its sound begins later.
    assert facts["frame_rate"] == pytest.approx(24, abs=0.6 if make is media.video_fragmented else 0.01)
    assert facts["frames"] == 24


def test_a_film_without_sound_says_so(tmp_path: Path) -> None:
    facts = examined(media.video_mp4(tmp_path / "a.mp4", 0.25, audio=False), "video/mp4").facts
    assert facts["has_audio"] is False and "audio_codec" not in facts


def test_a_film_held_upright_is_as_high_as_it_is_shown(tmp_path: Path) -> None:
    facts = examined(media.video_mov(tmp_path / "a.mov", 0.25, rotation=90), "video/quicktime").facts
    assert (facts["width"], facts["height"]) == (96, 128)


def test_a_padded_film_has_exactly_the_size_asked_for(tmp_path: Path) -> None:
    path = media.video_mp4(tmp_path / "a.mp4", 0.25, size=150_000_000)
    assert examined(path, "video/mp4").size_bytes == 150_000_000


# --- liars -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "declared", "found"),
    [
        (liars.html, "image/png", "text/html"),
        (liars.pdf, "image/jpeg", "application/pdf"),
        (liars.html, "video/mp4", "text/html"),
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
    reason = refusal(make(tmp_path / "liar"), declared)
    assert declared in reason and found in reason


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "empty" in refusal(liars.empty(tmp_path / "a"), "image/png")


def test_a_type_that_is_not_accepted_is_refused(tmp_path: Path) -> None:
    assert "image/tiff" in refusal(media.png(tmp_path / "a"), "image/tiff")


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
    assert refusal(liars.cut(make(tmp_path / "a"), share), mime_type)


def test_a_damaged_chunk_of_a_png_is_noticed(tmp_path: Path) -> None:
    path = media.png(tmp_path / "a.png", noise=True)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(whole))
    assert "checksum" in refusal(path, "image/png")


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    assert "no video track" in refusal(media.sound_mp4(tmp_path / "a.mp4"), "video/mp4")


def test_a_video_track_that_does_not_decode_is_refused(tmp_path: Path) -> None:
    path = media.video_mp4(tmp_path / "a.mp4", faststart=False, audio=False)
    whole = bytearray(path.read_bytes())
    start = whole.index(b"mdat") + 4
    stop = whole.index(b"moov") - 4
    whole[start:stop] = b"\xa5" * (stop - start)
    path.write_bytes(bytes(whole))
    assert "no picture that can be decoded" in refusal(path, "video/mp4")


# --- two things at once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "other"),
    [
        (liars.archive(), "ZIP"),
        (liars.PAGE, "HTML"),
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
    reason = refusal(liars.with_tail(make(tmp_path / "two"), tail), mime_type)
    assert other in reason and "also" in reason


@pytest.mark.parametrize(
    ("comment", "other"), [(liars.PAGE, "HTML"), (b"%PDF-1.4\n", "PDF"), (b"<?php id ?>", "script")]
)
def test_a_picture_with_another_file_in_its_head_is_refused(tmp_path: Path, comment: bytes, other: str) -> None:
    assert other in refusal(liars.jpeg_with_comment(tmp_path / "a.jpg", comment), "image/jpeg")


def test_a_gif_that_is_a_script_is_refused(tmp_path: Path) -> None:
    assert "script" in refusal(liars.gif_script(tmp_path / "a.gif"), "image/gif")


def test_an_honest_comment_is_no_reason(tmp_path: Path) -> None:
    path = liars.jpeg_with_comment(tmp_path / "a.jpg", b"Sunset <3, taken with <b>love</b> & PDF-like quality")
    assert examined(path, "image/jpeg")


# --- limits ----------------------------------------------------------------------------------------------------------


def test_each_kind_has_its_own_limit_in_bytes(tmp_path: Path) -> None:
    limits = MediaLimits(image_bytes=500, video_bytes=1000)
    assert "at most 500" in refusal(media.jpeg(tmp_path / "a"), "image/jpeg", limits)
    assert "at most 1000" in refusal(media.video_mp4(tmp_path / "b", 0.1), "video/mp4", limits)


def test_one_pixel_too_many_is_refused_and_none_too_many_is_not(tmp_path: Path) -> None:
    path = media.png(tmp_path / "a.png", 100, 100)
    assert examined(path, "image/png", MediaLimits(image_pixels=10_000))
    assert "9999 pixels" in refusal(path, "image/png", MediaLimits(image_pixels=9_999))


def test_the_frames_of_an_animation_are_limited_together(tmp_path: Path) -> None:
    path = media.gif_animated(tmp_path / "a.gif")
    assert examined(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3))
    assert "at most 9215" in refusal(path, "image/gif", MediaLimits(image_total_pixels=64 * 48 * 3 - 1))


def test_the_limits_leave_the_decoder_as_it_was(tmp_path: Path) -> None:
    from PIL import Image

    before = Image.MAX_IMAGE_PIXELS
    refusal(liars.png_bomb(tmp_path / "a.png", 20_000, 200), "image/png", MediaLimits(image_pixels=1))
    assert before == Image.MAX_IMAGE_PIXELS
