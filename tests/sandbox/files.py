"""Files small enough to be sent often."""

import base64
import io

from PIL import Image

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
MP4 = b"\x00\x00\x00\x18ftypisom" + bytes(988)
"""The bytes begin like a video but do not play."""


def picture(width: int = 200, height: int = 300, kind: str = "JPEG", color: str = "teal") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), color).save(file, kind)
    return file.getvalue()


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
