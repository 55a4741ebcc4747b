"""Content ids, as a server computes them: DAG-CBOR, SHA-256, CIDv1 in base32."""

import base64
from typing import Any

from socialpub.sandbox.bluesky.network import DAG_CBOR, cid_of

LINK_TAG = 42
UNSIGNED, NEGATIVE, BYTES, TEXT, LIST, MAP, TAG = range(7)
"""The major types of CBOR."""


def cid_of_record(value: Any) -> str:
    """Return the id of a record. Raise ValueError for a value outside the data model, such as a float."""
    return cid_of(_encoded(value), DAG_CBOR)


def _encoded(value: Any) -> bytes:
    match value:
        case None | bool():
            return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
        case int():
            return _head(UNSIGNED, value) if value >= 0 else _head(NEGATIVE, ~value)
        case str():
            # A server accepts lone surrogates.
            text = value.encode("utf-8", "surrogatepass")
            return _head(TEXT, len(text)) + text
        case list():
            return _head(LIST, len(value)) + b"".join(_encoded(item) for item in value)
        case {"$link": str(link), **others} if not others:
            return _head(TAG, LINK_TAG) + _bytes(b"\0" + _from_base32(link))
        case {"$bytes": str(encoded), **others} if not others:
            return _bytes(base64.b64decode(encoded + "=" * (-len(encoded) % 4)))
        case dict():
            members = sorted(((name.encode(), item) for name, item in value.items()), key=lambda one: _rank(one[0]))
            return _head(MAP, len(members)) + b"".join(
                _head(TEXT, len(name)) + name + _encoded(item) for name, item in members
            )
    raise ValueError(f"{type(value).__name__} is not a type of the data model")


def _rank(name: bytes) -> tuple[int, bytes]:
    return len(name), name


def _bytes(data: bytes) -> bytes:
    return _head(BYTES, len(data)) + data


def _head(major: int, number: int) -> bytes:
    """Return the shortest head with this number."""
    if number < 24:
        return bytes((major << 5 | number,))
    for step, size in enumerate((1, 2, 4, 8)):
        if number < 1 << 8 * size:
            return bytes((major << 5 | 24 + step,)) + number.to_bytes(size)
    raise ValueError("an integer of the data model has at most 64 bits")


def _from_base32(link: str) -> bytes:
    digits = link.removeprefix("b").upper()
    return base64.b32decode(digits + "=" * (-len(digits) % 8))
