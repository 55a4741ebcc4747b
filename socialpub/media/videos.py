"""Films, looked at through their container: tracks, duration, frame rate, the first frame.

Runs in a child process; PyAV is imported here and nowhere above. Only the demuxers of MP4/QuickTime and
Matroska/WebM are ever opened, whatever the file's content suggests, and none of them may reach another file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from socialpub.media import polyglots
from socialpub.media.inspect import Limits, Refused, differs

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_BOXES_OF_A_FILM = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"moof", b"styp", b"sidx"})
_BRANDS_OF_OTHERS: Mapping[bytes, str] = {
    b"crx ": "image/x-canon-cr3",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"jp2 ": "image/jp2",
}
_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"
_WEBM_VIDEO = frozenset({"vp8", "vp9", "av1"})
_WEBM_AUDIO = frozenset({"vorbis", "opus"})
_PACKETS_TO_TRY = 60
"""So many packets may pass without a picture before the track counts as undecodable."""


def look(path: Path, mime_type: str, found: str, limits: Limits) -> dict[str, Any]:  # noqa: ARG001  # as in pictures
    """The facts of a film (see `Facts`). Raises `Refused`."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
        matroska = head.startswith(_EBML)
        if matroska:
            actual, end = _doctype(head), _end_of_matroska(head, size)
        else:
            actual, end = _brand(head, found), _end_of_boxes(file, size)
    if actual != mime_type and not (actual == "video/x-matroska" and mime_type == "video/webm"):
        raise differs(actual, mime_type)
    other = polyglots.hidden_in_film(path, end)
    if other is not None:
        raise Refused(f"The file was declared as {mime_type}, but it is also {other}; send the video alone.")
    facts = _demuxed(path, "matroska" if matroska else "mov", mime_type)
    if actual == "video/x-matroska" and not (
        facts["video_codec"] in _WEBM_VIDEO and facts.get("audio_codec", "opus") in _WEBM_AUDIO
    ):
        codecs = " and ".join(str(facts[key]) for key in ("video_codec", "audio_codec") if key in facts)
        raise Refused(f"The file was declared as {mime_type}, but its content is Matroska with {codecs}.")
    return facts


# --- the container's outside -----------------------------------------------------------------------------------------


def _brand(head: bytes, found: str) -> str:
    """Which of the family the file is, by the major brand; QuickTime is older than brands."""
    first, brand = head[4:8], head[8:12]
    if first not in _BOXES_OF_A_FILM:
        return found
    if first != b"ftyp":
        return "video/quicktime"
    if brand in _BRANDS_OF_OTHERS:
        return _BRANDS_OF_OTHERS[brand]
    return "video/quicktime" if brand in (b"qt  ", b"mqt ") else "video/mp4"


def _end_of_boxes(file: BinaryIO, size: int) -> int:
    """Behind the last whole box. Raises `Refused` when the pictures' own box reaches beyond the file."""
    at = 0
    while at + 8 <= size:
        file.seek(at)
        header = file.read(16)
        length, name, least = int.from_bytes(header[:4]), header[4:8], 8
        if length == 1 and len(header) == 16:
            length, least = int.from_bytes(header[8:16]), 16
        elif length == 0 and name in (b"mdat", b"free", b"skip"):
            return size
        if length < least or not all(32 <= byte < 127 or byte == 0xA9 for byte in name):
            break
        if at + length > size:
            if name in (b"mdat", b"moov", b"moof"):
                raise Refused(
                    f"The video was cut off: it has {size} bytes, but its {name.decode()} box ends at {at + length}."
                )
            break
        at += length
    return at


def _doctype(head: bytes) -> str:
    # Element, length (one to eight bytes), text: https://www.rfc-editor.org/rfc/rfc8794
    at = head.find(b"\x42\x82", 4)
    length = 0
    if 0 < at < 1024 and head[at + 2]:
        width = 9 - head[at + 2].bit_length()
        length = int.from_bytes(head[at + 2 : at + 2 + width]) & ((1 << 7 * width) - 1)
        at += 2 + width
    name = head[at : at + min(length, 32)].rstrip(b"\0")
    return {b"webm": "video/webm", b"matroska": "video/x-matroska"}.get(name, "application/octet-stream")


def _end_of_matroska(head: bytes, size: int) -> int:
    at = head.find(_SEGMENT)
    if at < 0 or not head[at + 4 : at + 5] or not head[at + 4]:
        return size
    width = 9 - head[at + 4].bit_length()
    unknown = (1 << 7 * width) - 1
    length = int.from_bytes(head[at + 4 : at + 4 + width]) & unknown
    if length == unknown:
        return size  # A live recording: its length was never filled in.
    end = at + 4 + width + length
    if end > size:
        raise Refused(f"The video was cut off: it has {size} bytes, but its segment ends at {end}.")
    return end


# --- the container's inside ------------------------------------------------------------------------------------------


def _demuxed(path: Path, demuxer: str, mime_type: str) -> dict[str, Any]:
    import av
    import av.error
    import av.logging

    av.logging.set_level(av.logging.PANIC)
    options = {"protocol_whitelist": "file"}
    if demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
    try:
        # The prefix keeps a file name from being read as the address of something else.
        with av.open(f"file:{path}", format=demuxer, container_options=options, metadata_errors="replace") as container:
            return _facts(container, mime_type)
    except av.error.MemoryError:
        raise MemoryError from None
    except (av.error.FFmpegError, ValueError, OverflowError) as error:
        told = getattr(error, "strerror", None) or "its header makes no sense"
        raise Refused(f"The file was declared as {mime_type}, but its container cannot be read ({told}).") from None


def _facts(container: "InputContainer", mime_type: str) -> dict[str, Any]:
    from av.stream import Disposition

    # A track without a decoder has no context at all, and a cover picture is no film.
    tracks = [t for t in container.streams.video if not t.disposition & Disposition.attached_pic]
    if not tracks:
        raise Refused(f"The file was declared as {mime_type}, but has no video track.")
    track = next((t for t in tracks if t.codec_context), None)
    if track is None:
        raise Refused(f"The file was declared as {mime_type}, but nothing here can decode its video track.")
    packets, seconds, rate, first = _played(container, track, mime_type)
    width, height, rotation = first.width, first.height, first.rotation % 360
    if rotation in (90, 270):
        width, height = height, width
    facts: dict[str, Any] = {"width": width, "height": height, "frames": packets, "has_audio": False}
    if seconds > 0:
        facts["duration_seconds"] = round(seconds, 3)
    told = float(track.average_rate or 0)
    # What the header says is exact where time stamps are rounded, and wrong in recordings that were never closed.
    if told and (not rate or abs(told - rate) <= 0.01 * rate):
        rate = told
    if rate:
        facts["frame_rate"] = round(rate, 3)
    if rotation:
        facts["rotation"] = rotation
    facts["video_codec"] = track.codec_context.name
    if track.pix_fmt:
        facts["pixel_format"] = track.pix_fmt
    if track.sample_aspect_ratio and track.sample_aspect_ratio != 1:
        facts["pixel_aspect"] = f"{track.sample_aspect_ratio.numerator}:{track.sample_aspect_ratio.denominator}"
    if container.streams.audio:
        facts["has_audio"] = True
    heard = next((t for t in container.streams.audio if t.codec_context), None)
    if heard is not None:
        facts["audio_codec"] = heard.codec_context.name
    return facts


def _played(
    container: "InputContainer", track: "VideoStream", mime_type: str
) -> tuple[int, float, float, "VideoFrame"]:
    """Packets of the track, seconds of the whole film, frames per second (0.0: cannot tell), and the first picture.

    Every packet is read, as headers of live recordings and fragments say nothing, or lie, about the duration.
    """
    track.thread_count = 1  # Each further thread would reserve address space, of which there is little.
    first: VideoFrame | None = None
    shown: list[float] = []
    packets, began, ended = 0, float("inf"), 0.0
    for packet in container.demux(container.streams.video + container.streams.audio):
        if not packet.size:
            continue
        start = None if packet.pts is None else float(packet.pts * packet.time_base)
        if start is not None and not packet.is_discard:
            began = min(began, start)
            ended = max(ended, start + float((packet.duration or 0) * packet.time_base))
        if packet.stream_index != track.index:
            continue
        packets += 1
        if start is not None:
            shown.append(start)
        if first is None and packets <= _PACKETS_TO_TRY:
            first = _picture(track, packet)
    if not packets:
        raise Refused(f"The file was declared as {mime_type}, but its video track is empty.")
    first = first or _picture(track, None)
    if first is None:
        raise Refused(f"The video track ({track.codec_context.name}) holds no picture that can be decoded.")
    seconds = max(0.0, ended - began)
    if container.duration and abs(container.duration / 1_000_000 - seconds) < 1:
        seconds = container.duration / 1_000_000
    span = max(shown) - min(shown) if shown else 0.0
    return packets, seconds, (len(shown) - 1) / span if span > 0 else 0.0, first


def _picture(track: "VideoStream", packet: "Packet[Any] | None") -> "VideoFrame | None":
    import av.error

    try:
        return next(iter(track.decode(packet)), None)
    except av.error.MemoryError:
        raise
    except av.error.FFmpegError:
        return None  # A recording may begin in the middle of a scene.
