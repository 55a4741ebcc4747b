"""Files that are not what they say: fakes, fragments, bombs, and files that are two things at once."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from PIL import Image

from tests.samples import media

PAGE = b"<!DOCTYPE html><html><body><script>alert(1)</script></body></html>"


def html(path: Path) -> Path:
    path.write_bytes(PAGE)
    return path


def pdf(path: Path) -> Path:
    path.write_bytes(b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n")
    return path


def empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def cut(path: Path, share: float = 0.5) -> Path:
    """The first `share` of the file that is already at `path`."""
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    return path


def with_tail(path: Path, tail: bytes) -> Path:
    """The file at `path`, and `tail` behind it."""
    path.write_bytes(path.read_bytes() + tail)
    return path


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("index.html", PAGE)
    return buffer.getvalue()


def jpeg_with_comment(path: Path, comment: bytes) -> Path:
    """The comment is the first thing behind the JPEG's signature."""
    whole = media.jpeg(path).read_bytes()
    path.write_bytes(whole[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + whole[2:])
    return path


def jpeg_scans(path: Path, scans: int, width: int = 320, height: int = 240) -> Path:
    """Write a progressive JPEG of one color. A decoder reads the whole image again for each scan."""
    whole = media.jpeg_flat(path, width, height).read_bytes()
    first = whole.index(b"\xff\xda")
    stop = whole.index(b"\xff", first + 2 + int.from_bytes(whole[first + 2 : first + 4]))
    path.write_bytes(whole[:first] + whole[first:stop] * scans + b"\xff\xd9")
    return path


def jpeg_damaged(path: Path, damage: bytes, **save: Any) -> Path:
    """Write a JPEG with these bytes in its compressed pixels. `save` are Pillow's options."""
    media.jpeg(path, 320, 240, noise=True, **save)
    whole = bytearray(path.read_bytes())
    scan = whole.rindex(b"\xff\xda") + 14
    place = scan + int((len(whole) - scan) * 0.2)
    while 0xFF in whole[place - 1 : place + len(damage) + 1]:
        place += 1
    whole[place : place + len(damage)] = damage
    path.write_bytes(whole)
    return path


def jpeg_ended(path: Path, share: float, **save: Any) -> Path:
    """Write the first part of a JPEG, with an end marker."""
    cut(media.jpeg(path, 320, 240, noise=True, **save), share)
    return with_tail(path, b"\xff\xd9")


def gif_script(path: Path) -> Path:
    """A GIF whose width spells `/*`: to a browser that reads it as a script, it is one."""
    frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0"
    comment = b"!\xfe\x10*/=1;alert(1)//\0\0"
    path.write_bytes(b"GIF89a/*\x01\0\x80\0\0\0\0\0\xff\xff\xff" + comment + frame + b";")
    return path


def png_bomb(path: Path, width: int = 20_000, height: int = 20_000) -> Path:
    """A few kilobytes that unpack to `width` × `height` black dots."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    pixels = b"".join(packer.compress(row * 100) for _ in range(height // 100)) + packer.flush()
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )
    return path


def png_text_bomb(path: Path) -> Path:
    """A PNG with a compressed comment of 80 megabytes."""
    packer = zlib.compressobj(9)
    text = b"".join(packer.compress(bytes(1_000_000)) for _ in range(80)) + packer.flush()
    whole = media.png(path).read_bytes()
    path.write_bytes(whole[:33] + _chunk(b"zTXt", b"Comment\0\0" + text) + whole[33:])
    return path


def gif_bomb(path: Path, side: int = 5_000, frames: int = 60) -> Path:
    """Many large frames of one colour: little on the disk, much in memory and time."""
    buffer = io.BytesIO()
    Image.new("P", (side, side), 0).save(buffer, "GIF")
    whole = buffer.getvalue()
    start = whole.index(b",\0\0\0\0", 13)
    path.write_bytes(whole[:start] + whole[start:-1] * frames + b";")
    return path


def gif_understated(path: Path, side: int = 3_000) -> Path:
    """A GIF whose header speaks of one pixel; each of its frames is far larger, and has colours of its own."""
    frames = [Image.new("RGB", (side, side), colour) for colour in (media.RED, media.GREEN, media.BLUE)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])
    whole = bytearray(path.read_bytes())
    whole[6:10] = struct.pack("<HH", 1, 1)
    path.write_bytes(bytes(whole))
    return path


def webp_bomb(path: Path) -> Path:
    """A WebP whose header speaks of 16,384 × 16,384 pixels."""
    whole = bytearray(media.webp_animated(path).read_bytes())
    whole[24:30] = b"\xff\x3f\0\xff\x3f\0"
    path.write_bytes(bytes(whole))
    return path


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
