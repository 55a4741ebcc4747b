"""The Range header: which bytes of a file are asked for (RFC 9110, section 14).

Only one range at a time is answered with a part. What is several ranges, another unit or badly written is answered with
the whole file, as the standard allows; a range that lies outside of the file is the only one refused.
"""

import re
from typing import NamedTuple

_ONE_RANGE = re.compile(rb"bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})", re.IGNORECASE)


class ByteRange(NamedTuple):
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int
    partial: bool


def parse(header: bytes | None, size_bytes: int) -> ByteRange | None:
    """The range of a file of this size that the header asks for; None when there is no such range."""
    whole = ByteRange(0, size_bytes, partial=False)
    match = _ONE_RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or match[1] == match[2] == b"":
        return whole
    first, last = match[1], match[2]
    if not first:
        length = min(int(last), size_bytes)
        return ByteRange(size_bytes - length, size_bytes, partial=True) if length else None
    start, end = int(first), min(int(last) + 1, size_bytes) if last else size_bytes
    if last and int(last) < start:
        return whole
    return ByteRange(start, end, partial=True) if start < size_bytes else None
