"""Inspects videos through their container: tracks, duration, frame rate, and the first frame.

The module runs in a child process and loads PyAV. It only opens the demuxers of MP4/QuickTime and Matroska/WebM, and a
demuxer cannot open another file.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import av.error
import av.logging
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from socialpub.media.decoder import structure
from socialpub.media.decoder.structure import read_container
from socialpub.media.types import MediaRejected, how_to_convert, is_own_fault, type_mismatch

_WEBM_VIDEO = frozenset({"vp8", "vp9", "av1"})
_WEBM_AUDIO = frozenset({"vorbis", "opus"})
_THUMBNAILS = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
_STILL_CODECS = frozenset({"mjpeg", "mjpegb", "jpeg2000", "png", "bmp", "gif", "tiff", "webp"})
"""Codecs of cover images and thumbnails. A video in such a codec is the only video of its file."""

_POSITION = re.compile(r"location|gps|latitude|\bxyz\b", re.IGNORECASE)
"""In the name of a tag. FFmpeg names `©xyz` and the `loci` of 3GPP `location`."""
_POSITION_IN_XMP = re.compile(r"GPSLatitude|GPSLongitude")
_POSITION_TRACK = "GoPro MET"
"""In the name of the track with a GoPro's sensors."""


def inspect_video(path: Path, mime_type: str, detected: str) -> dict[str, Any]:
    """Return the facts about a video (see `Facts`). Raise `MediaRejected`."""
    container = read_container(path, detected)
    matroska_as_webm = container.mime_type == "video/x-matroska" and mime_type == "video/webm"
    if container.mime_type != mime_type and not matroska_as_webm:
        raise type_mismatch(container.mime_type, mime_type)
    other = structure.hidden_in_video(path, container.end)
    if other is not None:
        raise MediaRejected(f"The file was declared as {mime_type}, but it is also {other}. Send only the video.")
    with open_video(path, "matroska" if container.matroska else "mov", mime_type) as opened:
        facts = _facts(opened, mime_type)
    if matroska_as_webm and not (
        facts["video_codec"] in _WEBM_VIDEO and facts.get("audio_codec", "opus") in _WEBM_AUDIO
    ):
        codecs = " and ".join(str(facts[key]) for key in ("video_codec", "audio_codec") if key in facts)
        raise MediaRejected(
            f"The file was declared as {mime_type}, but its content is Matroska with {codecs}."
            f"{how_to_convert('video/x-matroska')}"
        )
    return facts


@contextlib.contextmanager
def open_video(path: Path, demuxer: str, mime_type: str) -> Iterator[InputContainer]:
    """Open the container (`mov` or `matroska`). Raise `MediaRejected` for all errors of PyAV in this block."""
    av.logging.set_level(av.logging.PANIC)
    options = {"protocol_whitelist": "file"}
    if demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0", "export_xmp": "1"}
    try:
        # With the prefix, FFmpeg cannot read a file name as a URL.
        with av.open(f"file:{path}", format=demuxer, container_options=options, metadata_errors="replace") as container:
            yield container
    except MemoryError:
        raise MemoryError from None
    except Exception as error:
        if is_own_fault(error):
            raise
        detail = getattr(error, "strerror", None) or "its header is not valid"
        raise MediaRejected(
            f"The file was declared as {mime_type}, but its container cannot be read ({detail})."
        ) from None


def find_track(container: InputContainer, mime_type: str) -> VideoStream:
    """Return the video's track: the default track, otherwise the largest. Raise `MediaRejected`."""
    tracks = [track for track in container.streams.video if not track.disposition & _THUMBNAILS]
    if not tracks:
        raise MediaRejected(f"The file was declared as {mime_type}, but has no video track.")
    tracks = [track for track in tracks if track.codec_context]  # a track without a decoder has no context
    if not tracks:
        raise MediaRejected(f"The file was declared as {mime_type}, but no decoder supports its video track.")
    moving = [track for track in tracks if track.frames != 1 and _codec(track) not in _STILL_CODECS]
    track = max(moving or tracks, key=lambda track: (_is_default(track), track.width * track.height))
    track.thread_count = 1  # each further thread would need address space
    return track


def _is_default(track: VideoStream | AudioStream) -> bool:
    return bool(track.disposition & Disposition.default)


def _codec(track: VideoStream | AudioStream) -> str:
    """Return FFmpeg's name of the codec, not of the decoder: `av1` and not `libdav1d`."""
    return track.codec_context.codec.canonical_name


def square_size(track: VideoStream, frame: VideoFrame) -> tuple[int, int]:
    """Return the width and height of the frame with square pixels, before its rotation."""
    return max(1, round(frame.width * (track.sample_aspect_ratio or 1))), frame.height


def _facts(container: InputContainer, mime_type: str) -> dict[str, Any]:
    track = find_track(container, mime_type)
    packets, seconds, rate, first = _read_packets(container, track, mime_type)
    (width, height), rotation = square_size(track, first), first.rotation % 360
    if rotation in (90, 270):
        width, height = height, width
    facts: dict[str, Any] = {"width": width, "height": height, "frames": packets, "has_audio": False}
    if seconds > 0:
        facts["duration_seconds"] = round(seconds, 3)
    declared = float(track.average_rate or 0)
    # The header's rate is exact if time stamps are rounded, and wrong in incomplete recordings.
    if declared and (not rate or abs(declared - rate) <= 0.01 * rate):
        rate = declared
    if rate:
        facts["frame_rate"] = round(rate, 3)
    if rotation:
        facts["rotation"] = rotation
    facts["video_codec"] = _codec(track)
    if track.pix_fmt:
        facts["pixel_format"] = track.pix_fmt
    if track.sample_aspect_ratio and track.sample_aspect_ratio != 1:
        facts["pixel_aspect"] = f"{track.sample_aspect_ratio.numerator}:{track.sample_aspect_ratio.denominator}"
    if container.streams.audio:
        facts["has_audio"] = True
    audio = max((t for t in container.streams.audio if t.codec_context), key=_is_default, default=None)
    if audio is not None:
        facts["audio_codec"], facts["audio_channels"] = _codec(audio), audio.channels
    if _has_position(container):
        facts["has_position"] = True
    return facts


def _has_position(container: InputContainer) -> bool:
    """Return whether the metadata say where the video was recorded."""
    tags = [*container.metadata.items(), *(tag for stream in container.streams for tag in stream.metadata.items())]
    return any(
        _POSITION_TRACK in value
        or (_POSITION_IN_XMP.search(value) if name == "xmp" else _POSITION.search(name) and value.strip())
        for name, value in tags
    )


def _read_packets(
    container: InputContainer, track: VideoStream, mime_type: str
) -> tuple[int, float, float, VideoFrame]:
    """Return the number of packets, the seconds of the video, the frame rate (0.0: unknown), and the first frame.

    Headers of live recordings and fragments have no duration or a wrong duration, so every packet is read.
    """
    first: VideoFrame | None = None
    times: list[float] = []
    packets, began, ended = 0, float("inf"), 0.0
    for packet in container.demux([track, *container.streams.audio]):
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
            times.append(start)
        if first is None:  # a recording may begin between two key frames, so the processor limit ends this search
            first = _decode_frame(track, packet)
    if not packets:
        raise MediaRejected(f"The file was declared as {mime_type}, but its video track is empty.")
    first = first or _decode_frame(track, None)
    if first is None:
        raise MediaRejected(f"No frame of the video track ({_codec(track)}) can be decoded.")
    seconds = max(0.0, ended - began)
    if container.duration and abs(container.duration / 1_000_000 - seconds) < 1:
        seconds = container.duration / 1_000_000
    span = max(times) - min(times) if times else 0.0
    return packets, seconds, (len(times) - 1) / span if span > 0 else 0.0, first


def first_frame(container: InputContainer, track: VideoStream) -> VideoFrame | None:
    """Return the first frame of the track, or None."""
    frames = (_decode_frame(track, packet if packet.size else None) for packet in container.demux(track))
    return next((frame for frame in frames if frame is not None), None)


def _decode_frame(track: VideoStream, packet: "Packet[Any] | None") -> VideoFrame | None:
    try:
        return next(iter(track.decode(packet)), None)
    except av.error.MemoryError:
        raise
    except av.error.FFmpegError:
        return None
