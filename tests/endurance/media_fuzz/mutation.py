"""Ways to damage a file. The same random source damages in the same way."""

import struct
import zlib
from collections.abc import Callable, Sequence
from random import Random

from tests.endurance.media_fuzz import anatomy
from tests.endurance.media_fuzz.anatomy import Number

MOST_BYTES = 256 * 1024
"""What repeats grow to at most: size is no subject here."""


def damaged(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    """The file, damaged once or several times; never empty. `others` lend pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice(_WAYS)(rng, name, data, others)[:MOST_BYTES] or b"\0"
    if name.endswith(".png") and rng.random() < 0.8:
        data = with_right_sums(data)
    return data


def _bits(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8, 64))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _head(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    """Where parsers decide."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 4))):
        changed[rng.randrange(min(64, len(changed)))] = rng.randrange(256)
    return bytes(changed)


def _cut(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(1, len(data) + 1)]


def _hole(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(1, 4096) :]


def _splice(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    start = rng.randrange(len(other))
    piece = other[start : start + rng.randrange(1, 8192)]
    at = rng.randrange(len(data) + 1)
    return data[:at] + piece + data[at + rng.choice((0, len(piece))) :]


def _repeat(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randrange(1, 4096))
    return data[:end] + data[start:end] * rng.choice((1, 2, 30)) + data[end:]


def _number(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    numbers = [number for number in anatomy.of(name, data).numbers if number.offset + number.width <= len(data)]
    if not numbers:
        return _bits(rng, name, data, others)
    changed = bytearray(data)
    for number in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 5)))):
        changed[number.offset : number.offset + number.width] = _instead(rng, data, number)
    return bytes(changed)


def _instead(rng: Random, data: bytes, number: Number) -> bytes:
    order = "little" if number.little else "big"
    most = 256**number.width - 1
    stood = int.from_bytes(data[number.offset : number.offset + number.width], order)
    value = rng.choice((0, 1, 2, most, most - 1, most // 2, most // 2 + 1, stood - 1, stood + 1, stood * 2, len(data)))
    return (max(0, value) & most).to_bytes(number.width, order)


def _part(rng: Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    """A chunk, box or segment is left out, stands twice or often, or changes places with another one."""
    parts = anatomy.of(name, data).parts
    if len(parts) < 2:
        return _hole(rng, name, data, others)
    (start, end), (other_start, other_end) = sorted(rng.sample(parts, 2))
    match rng.randrange(3):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:end] + data[start:end] * rng.choice((1, 3, 100)) + data[end:]
        case _ if end <= other_start:
            between = data[end:other_start]
            return data[:start] + data[other_start:other_end] + between + data[start:end] + data[other_end:]
        case _:
            return data[:start] + data[other_start:other_end] + data[start:]


def with_right_sums(data: bytes) -> bytes:
    """A PNG whose chunks' sums are right again, so that a decoder looks at what they hold."""
    changed, at = bytearray(data), 8
    while at + 12 <= len(changed):
        (length,) = struct.unpack_from(">I", changed, at)
        end = at + 8 + length
        if end + 4 > len(changed):
            break
        struct.pack_into(">I", changed, end, zlib.crc32(changed[at + 4 : end]))
        at = end + 4
    return bytes(changed)


_WAYS: Sequence[Callable[[Random, str, bytes, Sequence[bytes]], bytes]] = (
    _bits,
    _head,
    _cut,
    _hole,
    _splice,
    _repeat,
    _number,
    _number,
    _number,
    _part,
    _part,
)
