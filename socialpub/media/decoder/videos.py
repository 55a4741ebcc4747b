"""Inspects videos through their container: tracks, duration, frame rate, and the first frame.

The module runs in a child process and loads PyAV. It only opens the demuxers of MP4/QuickTime and Matroska/WebM, and a
demuxer cannot open another file.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import av.error
import av.logging
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from socialpub.media.decoder import structure
from socialpub.media.decoder.structure import read_container
from socialpub.media.types import MediaRejected, is_own_fault, type_mismatch

_WEBM_VIDEO = frozenset({"vp8", "vp9", "av1"})
_WEBM_AUDIO = frozenset({"vorbis", "opus"})
_MAX_PACKETS_TO_TRY = 60
"""A track without a frame in this number of packets cannot be decoded."""


def inspect_video(path: Path, mime_type: str, found: str) -> dict[str, Any]:
    """Return the facts about a video (see `Facts`). Raise `MediaRejected`."""
    container = read_container(path, found)
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
        raise MediaRejected(f"The file was declared as {mime_type}, but its content is Matroska with {codecs}.")
    return facts


@contextlib.contextmanager
def open_video(path: Path, demuxer: str, mime_type: str) -> Iterator[InputContainer]:
    """Open the container (`mov` or `matroska`). Raise `MediaRejected` for all errors of PyAV in this block."""
    av.logging.set_level(av.logging.PANIC)
    options = {"protocol_whitelist": "file"}
    if demuxer == "mov":
        options |= {"enable_drefs": "0", "use_absolute_path": "0"}
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
    """Return the video's track. Raise `MediaRejected`."""
    # A track without a decoder has no context, and a cover image is not a video.
    tracks = [t for t in container.streams.video if not t.disposition & Disposition.attached_pic]
    if not tracks:
        raise MediaRejected(f"The file was declared as {mime_type}, but has no video track.")
    track = next((t for t in tracks if t.codec_context), None)
    if track is None:
        raise MediaRejected(f"The file was declared as {mime_type}, but no decoder supports its video track.")
    track.thread_count = 1  # each further thread would need address space
    return track


def _facts(container: InputContainer, mime_type: str) -> dict[str, Any]:
    track = find_track(container, mime_type)
    packets, seconds, rate, first = _read_packets(container, track, mime_type)
    width, height, rotation = first.width, first.height, first.rotation % 360
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
    facts["video_codec"] = track.codec_context.name
    if track.pix_fmt:
        facts["pixel_format"] = track.pix_fmt
    if track.sample_aspect_ratio and track.sample_aspect_ratio != 1:
        facts["pixel_aspect"] = f"{track.sample_aspect_ratio.numerator}:{track.sample_aspect_ratio.denominator}"
    if container.streams.audio:
        facts["has_audio"] = True
    audio = next((t for t in container.streams.audio if t.codec_context), None)
    if audio is not None:
        facts["audio_codec"] = audio.codec_context.name
    return facts


def _read_packets(
    container: InputContainer, track: VideoStream, mime_type: str
) -> tuple[int, float, float, VideoFrame]:
    """Return the number of packets, the seconds of the video, the frame rate (0.0: unknown), and the first frame.

    Headers of live recordings and fragments have no duration or a wrong duration, so every packet is read.
    """
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
        if first is None and packets <= _MAX_PACKETS_TO_TRY:
            first = _decode_frame(track, packet)
    if not packets:
        raise MediaRejected(f"The file was declared as {mime_type}, but its video track is empty.")
    first = first or _decode_frame(track, None)
    if first is None:
        raise MediaRejected(f"No frame of the video track ({track.codec_context.name}) can be decoded.")
    seconds = max(0.0, ended - began)
    if container.duration and abs(container.duration / 1_000_000 - seconds) < 1:
        seconds = container.duration / 1_000_000
    span = max(shown) - min(shown) if shown else 0.0
    return packets, seconds, (len(shown) - 1) / span if span > 0 else 0.0, first


def first_frame(container: InputContainer, track: VideoStream) -> VideoFrame | None:
    """Return the first frame of the track, or None."""
    for packets, packet in enumerate(container.demux(track)):
        if packets >= _MAX_PACKETS_TO_TRY:
            return None
        frame = _decode_frame(track, packet if packet.size else None)
        if frame is not None:
            return frame
    return None


def _decode_frame(track: VideoStream, packet: "Packet[Any] | None") -> VideoFrame | None:
    try:
        return next(iter(track.decode(packet)), None)
    except av.error.MemoryError:
        raise
    except av.error.FFmpegError:
        return None  # a recording may begin between two key frames
