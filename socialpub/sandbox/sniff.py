"""What bytes look like: their type and, for images, their size in pixels. Enough for a stand-in, no decoder."""

import struct


def sniff(data: bytes) -> str:
    """A media type, or an empty text when the bytes look like nothing known."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp":
        return "video/quicktime" if data[8:10] == b"qt" else "video/mp4"
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm"
    return ""


def dimensions(data: bytes) -> tuple[int, int]:
    """Width and height of an image; zeros when they cannot be found out."""
    try:
        match sniff(data):
            case "image/png":
                width, height = struct.unpack(">II", data[16:24])
            case "image/gif":
                width, height = struct.unpack("<HH", data[6:10])
            case "image/jpeg":
                width, height = _jpeg(data)
            case "image/webp":
                width, height = _webp(data)
            case _:
                return 0, 0
    except (struct.error, IndexError):
        return 0, 0
    return int(width), int(height)


def _jpeg(data: bytes) -> tuple[int, int]:
    position = 2
    while data[position] == 0xFF:
        marker = data[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        position += 2 + int(struct.unpack(">H", data[position + 2 : position + 4])[0])
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF
