"""Small images and videos, as phones, cameras and editors write them.

Every function writes one file and returns its path. The same arguments give the same file. `hostile.py` has bad files.
"""

import io
import os
import random
import struct
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import pillow_heif
from av.stream import Disposition
from PIL import Image, ImageCms

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 200, 30), (30, 30, 220), (250, 250, 250)
"""The corners of every picture: top left, top right, bottom left, bottom right."""

_SOUND_RATE = 48_000

_STORED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def picture(width: int, height: int, *, noise: bool = False) -> Image.Image:
    """Four colored quarters, or pixels that hardly compress (3 bytes each as PNG)."""
    if noise:
        return Image.frombytes("RGB", (width, height), random.Random(width * height).randbytes(width * height * 3))
    quarters = Image.new("RGB", (2, 2))
    quarters.putdata([RED, GREEN, BLUE, WHITE])
    return quarters.resize((width, height), Image.Resampling.NEAREST)


# --- stills ----------------------------------------------------------------------------------------------------------


def jpeg(
    path: Path, width: int = 320, height: int = 240, orientation: int = 1, *, noise: bool = False, **save: Any
) -> Path:
    """A phone's JPEG. `width` and `height` are as shown, and the pixels are stored with `orientation` (1 to 8).

    The EXIF data contain maker, place and another JPEG. `save` are Pillow's options (quality, progressive, …).
    """
    image = picture(width, height, noise=noise)
    if orientation in _STORED:
        image = image.transpose(_STORED[orientation])
    image.save(path, "JPEG", exif=_exif(orientation), **{"quality": 85, **save})
    return path


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F], exif[0x0110] = "Samplephone", "Model 1"
    exif.get_ifd(0x8825)[1] = "N"
    exif.get_ifd(0x8825)[2] = (48.0, 8.0, 12.0)
    thumbnail = io.BytesIO()
    picture(32, 24).save(thumbnail, "JPEG")
    exif.get_ifd(0x8769)[0x927C] = thumbnail.getvalue()
    return exif.tobytes()


def jpeg_progressive(path: Path, width: int = 320, height: int = 240) -> Path:
    return jpeg(path, width, height, progressive=True)


def jpeg_flat(path: Path, width: int = 320, height: int = 240) -> Path:
    Image.new("L", (width, height), 128).save(path, "JPEG", progressive=True)
    return path


def jpeg_cmyk(path: Path, width: int = 320, height: int = 240) -> Path:
    picture(width, height).convert("CMYK").save(path, "JPEG", quality=90)
    return path


def jpeg_grey(path: Path, width: int = 320, height: int = 240) -> Path:
    picture(width, height).convert("L").save(path, "JPEG", quality=90)
    return path


def jpeg_with_profile(path: Path, width: int = 320, height: int = 240, orientation: int = 6) -> Path:
    return jpeg(
        path, width, height, orientation, icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    )


def jpeg_mpo(path: Path, width: int = 320, height: int = 240) -> Path:
    """A multi-picture JPEG of a phone, with a smaller second image."""
    picture(width, height).save(path, "MPO", save_all=True, append_images=[picture(width // 2, height // 2)])
    return path


def jpeg_mpo_beheaded(path: Path) -> Path:
    """A multi-picture JPEG from a messenger that removed the second image and kept the index."""
    whole = jpeg_mpo(path).read_bytes()
    path.write_bytes(whole[: whole.index(b"\xff\xd9\xff\xd8") + 2])
    return path


def jpeg_samsung(path: Path) -> Path:
    """A JPEG with the trailer of a phone maker after its end."""
    trailer = b"\0\0\x01\x0aImage_UTC_Data1767225600000"
    directory = b"SEFH" + struct.pack("<IIHHII", 107, 1, 0, 0x0A01, len(trailer), len(trailer))
    jpeg(path).write_bytes(path.read_bytes() + trailer + directory + struct.pack("<I", len(directory)) + b"SEFT")
    return path


def motion_photo(path: Path) -> Path:
    """A JPEG with a short MP4 after its end."""
    video = video_mp4(path.with_suffix(".part"), seconds=0.5).read_bytes()
    path.with_suffix(".part").unlink()
    jpeg(path).write_bytes(path.read_bytes() + video)
    return path


def heic(path: Path, width: int = 320, height: int = 240, orientation: int = 1, **save: Any) -> Path:
    """A phone's HEIC, with maker and place. `width` and `height` are as shown."""
    pillow_heif.register_heif_opener()
    image = picture(width, height)
    if orientation in _STORED:
        image = image.transpose(_STORED[orientation])
    image.save(path, "HEIF", exif=_exif(orientation), **{"quality": 90, **save})
    return path


def heic_burst(path: Path) -> Path:
    """Three images, of which the second is the primary image."""
    others = [Image.new("RGB", (64, 48), color) for color in (RED, BLUE)]
    pillow_heif.register_heif_opener()
    others[0].save(path, "HEIF", save_all=True, append_images=[picture(320, 240), others[1]], primary_index=1)
    return path


def heif(path: Path, *, make: Callable[..., Path] = heic) -> Path:
    """The file of `make` with the general brand, as some phones write it."""
    whole = make(path).read_bytes()
    path.write_bytes(whole[:8] + b"mif1" + whole[12:])
    return path


def avif(path: Path, width: int = 320, height: int = 240, orientation: int = 1) -> Path:
    image = picture(width, height)
    if orientation in _STORED:
        image = image.transpose(_STORED[orientation])
    image.save(path, "AVIF", exif=_exif(orientation), speed=10)
    return path


def avif_animated(path: Path, width: int = 64, height: int = 48, frames: int = 3) -> Path:
    first, *rest = _frames(width, height, frames)
    first.save(path, "AVIF", save_all=True, append_images=rest, duration=100, speed=10)
    return path


def png(path: Path, width: int = 320, height: int = 240, *, noise: bool = False) -> Path:
    picture(width, height, noise=noise).save(path, "PNG")
    return path


def png_alpha(path: Path, width: int = 320, height: int = 240) -> Path:
    image = picture(width, height).convert("RGBA")
    image.paste((0, 0, 0, 0), (0, 0, width // 2, height))
    image.save(path, "PNG")
    return path


def png_palette(path: Path, width: int = 320, height: int = 240) -> Path:
    """A palette of 16 colors, the first of them transparent."""
    picture(width, height).quantize(16).save(path, "PNG", transparency=0)
    return path


def png_16bit(path: Path, width: int = 320, height: int = 240) -> Path:
    """Gray values of 16 bits, from black on the left to white on the right."""
    row = struct.pack(f"<{width}H", *(x * 65535 // max(1, width - 1) for x in range(width)))
    Image.frombytes("I;16", (width, height), row * height).save(path, "PNG")
    return path


def png_animated(path: Path, width: int = 64, height: int = 48, frames: int = 3) -> Path:
    first, *rest = _frames(width, height, frames)
    first.save(path, "PNG", save_all=True, append_images=rest, duration=100)
    return path


def webp(path: Path, width: int = 320, height: int = 240) -> Path:
    picture(width, height).save(path, "WEBP", quality=80)
    return path


def webp_animated(path: Path, width: int = 64, height: int = 48, frames: int = 3) -> Path:
    first, *rest = _frames(width, height, frames)
    first.save(path, "WEBP", save_all=True, append_images=rest, duration=100)
    return path


def gif(path: Path, width: int = 320, height: int = 240) -> Path:
    picture(width, height).quantize(16).save(path, "GIF")
    return path


def gif_animated(path: Path, width: int = 64, height: int = 48, frames: int = 3) -> Path:
    first, *rest = _frames(width, height, frames)
    first.save(path, "GIF", save_all=True, append_images=rest, duration=100, loop=0)
    return path


def _frames(width: int, height: int, count: int) -> list[Image.Image]:
    whole = picture(width, height)
    return [whole.rotate(360 * number / count) for number in range(count)]


# --- videos -----------------------------------------------------------------------------------------------------------


def video_mp4(
    path: Path,
    seconds: float = 1.0,
    *,
    width: int = 128,
    height: int = 96,
    rate: int = 24,
    codec: str = "libx264",
    audio: bool = True,
    faststart: bool = True,
    brand: str | None = None,
    rotation: int = 0,
    size: int | None = None,
    muxer: str = "mp4",
    pixel_aspect: Fraction | None = None,
    audio_codec: str = "aac",
    layout: str = "mono",
    tags: tuple[tuple[str, str], ...] = (),
    **muxer_options: str,
) -> Path:
    """H.264 and AAC in MP4. `width` and `height` are as stored; a player rotates the frames by `rotation` degrees.

    `brand` is the major brand (four characters). A `free` box pads the file to `size` bytes.
    """
    options = dict(muxer_options)
    flags = [options.pop("movflags", ""), "+faststart" if faststart else ""]
    if any(flags):
        options["movflags"] = "".join(flags)
    if brand:
        options["brand"] = brand
    sound = audio_codec if audio else None
    more = (pixel_aspect, layout, tags)
    _encode(path, muxer, options, seconds, (width, height), rate, codec, sound, rotation, *more)
    if size is not None:
        pad(path, size)
    return path


def video_mov(path: Path, seconds: float = 1.0, **options: Any) -> Path:
    return video_mp4(path, seconds, muxer="mov", **options)


def video_m4v(path: Path, seconds: float = 1.0, **options: Any) -> Path:
    return video_mp4(path, seconds, brand="M4V ", **options)


def video_3gp(path: Path, seconds: float = 1.0, **options: Any) -> Path:
    return video_mp4(path, seconds, muxer="3gp", **options)


def video_fragmented(path: Path, seconds: float = 1.0, **options: Any) -> Path:
    """An MP4 in fragments without a duration in its header."""
    return video_mp4(path, seconds, faststart=False, movflags="+frag_keyframe+empty_moov", **options)


def video_webm(
    path: Path, seconds: float = 1.0, *, codec: str = "libvpx", audio: bool = True, live: bool = False
) -> Path:
    """VP8 (or `libvpx-vp9`) and Opus in WebM. `live`: without length and duration, as browsers record."""
    _encode(path, "webm", {"live": "1"} if live else {}, seconds, (128, 96), 24, codec, "libopus" if audio else None, 0)
    return path


def video_matroska(path: Path, seconds: float = 1.0, *, codec: str = "libvpx", audio_codec: str = "libopus") -> Path:
    """Matroska. With the default codecs, only the name differs from WebM."""
    _encode(path, "matroska", {}, seconds, (128, 96), 24, codec, audio_codec, 0)
    return path


def video_tracks(path: Path, *tracks: tuple[str, int, int, int, bool], muxer: str = "mp4") -> Path:
    """A file with several video tracks: the codec, width, height and number of frames, and whether it is the default.

    Without a default track, FFmpeg makes the first track of an MP4 the default.
    """
    with av.open(str(path), "w", format=muxer) as container:
        streams = []
        for codec, width, height, _, is_default in tracks:
            stream = container.add_stream(codec, rate=24)
            stream.width, stream.height = width, height
            stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
            stream.thread_count = 1
            if is_default:
                stream.disposition = Disposition.default
            streams.append(stream)
        for stream, (_, width, height, frames, _) in zip(streams, tracks, strict=True):
            image = av.VideoFrame.from_image(picture(width, height)).reformat(format=stream.pix_fmt)
            for number in range(frames):
                image.pts, image.time_base = number, Fraction(1, 24)
                container.mux(stream.encode(image))
            container.mux(stream.encode(None))
    return path


def video_cut(path: Path, start: int, interval: int) -> Path:
    """An MP4 that begins at frame `start` of a video with a key frame every `interval` frames."""
    whole = path.with_suffix(".whole")
    with av.open(str(whole), "w", format="mp4") as container:
        options = {"preset": "ultrafast", "g": str(interval), "keyint_min": str(interval), "sc_threshold": "0"}
        stream = container.add_stream("libx264", rate=24, options=options)
        stream.width, stream.height, stream.pix_fmt, stream.thread_count = 64, 48, "yuv420p", 1
        image = av.VideoFrame.from_image(picture(64, 48))
        for number in range(interval + 10):
            image.pts, image.time_base = number, Fraction(1, 24)
            container.mux(stream.encode(image))
        container.mux(stream.encode(None))
    with av.open(str(whole)) as source, av.open(str(path), "w", format="mp4") as target:
        copied = target.add_stream_from_template(source.streams.video[0])
        for packet in [one for one in source.demux(video=0) if one.size][start:]:
            packet.stream = copied
            target.mux(packet)
    whole.unlink()
    return path


def sound_mp4(path: Path, seconds: float = 0.5) -> Path:
    with av.open(str(path), "w", format="mp4") as container:
        _silence(container, container.add_stream("aac", rate=_SOUND_RATE, layout="mono"), seconds)
    return path


def pad(path: Path, size: int) -> Path:
    """Grow an MP4 or QuickTime file to `size` bytes with a `free` box, without using disk space."""
    missing = size - path.stat().st_size
    if missing < 8:
        raise ValueError(f"the file has {path.stat().st_size} bytes, padding to {size} is not possible")
    with path.open("r+b") as file:
        file.seek(0, io.SEEK_END)
        file.write(struct.pack(">I4s", missing, b"free"))
        file.truncate(size)
    return path


def inserted(path: Path, part: bytes, at: int = 2) -> Path:
    """Insert these bytes into the file, by default after a JPEG's start marker."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + part + whole[at:])
    return path


def _encode(path: Path, muxer: str, options: dict[str, str], *how: Any) -> None:
    """Write a video. Each kind is encoded once, because encoding is slow."""
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        path.write_bytes(_encoded(muxer, tuple(options.items()), *how))
    finally:
        # As root, SVT-AV1 gives its caller real-time priority. A browser that a test starts would inherit it.
        os.sched_setscheduler(0, policy, priority)


@lru_cache(maxsize=50)
def _encoded(
    muxer: str,
    options: tuple[tuple[str, str], ...],
    seconds: float,
    size: tuple[int, int],
    rate: int,
    codec: str,
    audio_codec: str | None,
    rotation: int,
    pixel_aspect: Fraction | None = None,
    layout: str = "mono",
    tags: tuple[tuple[str, str], ...] = (),
) -> bytes:
    fast = {"libx264": {"preset": "ultrafast"}}.get(codec, {"deadline": "realtime", "cpu-used": "8"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video"
        with av.open(str(path), "w", format=muxer, container_options=dict(options)) as container:
            track = container.add_stream(codec, rate=rate, options=fast if codec.startswith("lib") else {})
            track.width, track.height = size
            track.pix_fmt = "yuv420p"
            track.thread_count = 1
            if pixel_aspect:
                track.sample_aspect_ratio = pixel_aspect
            container.metadata.update(tags)
            if rotation:
                track.set_display_rotation(rotation)
            # The header is written with the first packet: every track has to be known by then.
            sound = container.add_stream(audio_codec, rate=_SOUND_RATE, layout=layout) if audio_codec else None
            image = picture(*size)
            for number in range(max(1, round(seconds * rate))):
                frame = av.VideoFrame.from_image(image.rotate(number % 360))
                frame.pts, frame.time_base = number, Fraction(1, rate)
                container.mux(track.encode(frame))
            container.mux(track.encode(None))
            if sound is not None:
                _silence(container, sound, seconds)
        return path.read_bytes()


def _silence(container: Any, track: Any, seconds: float) -> None:
    samples = track.frame_size or 960
    for number in range(max(1, round(seconds * _SOUND_RATE / samples))):
        frame = av.AudioFrame(format=track.format.name, layout=track.layout.name, samples=samples)
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts, frame.time_base = _SOUND_RATE, number * samples, Fraction(1, _SOUND_RATE)
        container.mux(track.encode(frame))
    container.mux(track.encode(None))
