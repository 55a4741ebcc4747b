"""Checks of the bytes that arrived: the reason why TikTok would not take them."""

from socialpub.sandbox.sniff import dimensions, sniff
from socialpub.sandbox.streamed_body import StreamedBody
from socialpub.sandbox.video_probe import probe_video

VIDEOS = ("video/mp4", "video/quicktime", "video/webm")
PHOTOS = ("image/jpeg", "image/webp")
PHOTO_BYTES = 20_000_000
PHOTO_SHORT_SIDE = 1080
FRAME_RATES = (23, 60)
SIDES = (360, 4096)


def check_video(head: bytes, data: bytes | None, longest_seconds: int, probe: bool) -> str:
    """A fail reason, or nothing. `data` is None when it was not kept."""
    if sniff(head) not in VIDEOS:
        return "file_format_check_failed"
    if not probe or data is None:
        return ""
    found = probe_video(data)
    if found is None:
        return "file_format_check_failed"
    if found.seconds > longest_seconds + 0.5:
        return "duration_check_failed"
    if found.frame_rate and not FRAME_RATES[0] <= round(found.frame_rate) <= FRAME_RATES[1]:
        return "frame_rate_check_failed"
    if min(found.width, found.height) < SIDES[0] or max(found.width, found.height) > SIDES[1]:
        return "picture_size_check_failed"
    return ""


def check_photo(body: StreamedBody) -> tuple[str, int, int]:
    """A fail reason or nothing, width, height."""
    data = body.data
    if data is None or body.size > PHOTO_BYTES or sniff(body.head) not in PHOTOS:
        return "file_format_check_failed", 0, 0
    width, height = dimensions(data)
    if not width or not height:
        return "file_format_check_failed", 0, 0
    return ("picture_size_check_failed" if min(width, height) > PHOTO_SHORT_SIDE else ""), width, height
