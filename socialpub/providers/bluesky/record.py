"""The record of a post: its key, its content and its CID.

Key and record are complete before the first call. The CID is the hash of the record, so it recognizes our own post.
"""

import base64
import hashlib
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import randbelow
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import Content, MediaFile, Memo
from socialpub.providers.bluesky.client import POST
from socialpub.providers.bluesky.options import reply_rules
from socialpub.providers.bluesky.text import sent_text

GATE = "app.bsky.feed.threadgate"


def uri_of(did: str, key: str) -> str:
    return f"at://{did}/{POST}/{key}"


def key_of(uri: str) -> str:
    return uri.rpartition("/")[2]


def permalink(section: BlueskySection, did: str, key: str) -> str:
    """Return the post's page. With the DID, the link survives a change of the handle."""
    return f"{section.site_url}/profile/{did}/post/{key}"


# --- the key ---------------------------------------------------------------------------------------------------------

_KEY_CHARACTERS = "234567abcdefghijklmnopqrstuvwxyz"
_CLOCK_BITS = 10


def new_key(now: datetime) -> str:
    """Return a TID: the microseconds since 1970 and ten random bits, in 13 characters that sort by time."""
    return key_at(now.timestamp(), randbelow(1 << _CLOCK_BITS))


def key_at(seconds: float, clock: int = 0) -> str:
    """Return the key of this time, without `clock` the lowest one."""
    number = (int(max(seconds, 0.0) * 1_000_000) << _CLOCK_BITS | clock) & (2**63 - 1)
    return "".join(_KEY_CHARACTERS[number >> shift & 31] for shift in range(60, -1, -5))


# --- the content -----------------------------------------------------------------------------------------------------


def build_post(
    content: Content,
    options: Mapping[str, Any],
    memo: Memo,
    now: datetime,
    facets: list[dict[str, Any]],
    reply: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return the record. The server refuses null, so empty fields are absent."""
    labels = [{"val": value} for value in options.get("contentLabels") or ()]
    fields = {
        "text": sent_text(content.text),
        "createdAt": timestamp(now),
        "langs": list(options.get("languages") or ()),
        "facets": facets,
        "reply": reply,
        "embed": _embed(content, memo),
        "labels": {"$type": "com.atproto.label.defs#selfLabels", "values": labels} if labels else None,
    }
    return {"$type": POST} | {name: value for name, value in fields.items() if value or name == "text"}


def build_gate(uri: str, options: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    """Return the record that limits who may reply. None: all accounts may reply."""
    rules = reply_rules(options)
    return None if rules is None else {"$type": GATE, "post": uri, "allow": rules, "createdAt": timestamp(now)}


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _embed(content: Content, memo: Memo) -> dict[str, Any] | None:
    if content.media:
        items = [_embedded(media, memo["blobs"][str(index)]) for index, media in enumerate(content.media)]
        if content.has_video:
            return {"$type": "app.bsky.embed.video", **items[0]}
        return {"$type": "app.bsky.embed.images", "images": items}
    card = memo.get("card")
    return {"$type": "app.bsky.embed.external", "external": card} if card else None


def _embedded(media: MediaFile, uploaded: Mapping[str, Any]) -> dict[str, Any]:
    item = {media.kind: uploaded["blob"], "alt": media.alt or ""}
    if uploaded.get("width") and uploaded.get("height"):
        item["aspectRatio"] = {"width": uploaded["width"], "height": uploaded["height"]}
    return item


# --- the CID ---------------------------------------------------------------------------------------------------------

_CID_V1, _DAG_CBOR, _SHA_256, _SHA_256_BYTES = 0x01, 0x71, 0x12, 32
_LINK_TAG = 42
_SIMPLE = {None: b"\xf6", False: b"\xf4", True: b"\xf5"}


def cid_of(record: Mapping[str, Any]) -> str:
    """Return the CID that the server computes: the SHA-256 of the record in canonical DAG-CBOR."""
    digest = hashlib.sha256(to_cbor(record)).digest()
    return "b" + _to_base32(bytes((_CID_V1, _DAG_CBOR, _SHA_256, _SHA_256_BYTES)) + digest)


def to_cbor(value: Any) -> bytes:
    """Return a value of the data model in canonical DAG-CBOR. The data model has no floating-point numbers."""
    match value:
        case None | bool():
            return _SIMPLE[value]
        case int():
            return _header(0, value) if value >= 0 else _header(1, -1 - value)
        case str():
            return _header(3, len(value.encode())) + value.encode()
        case list() | tuple():
            return _header(4, len(value)) + b"".join(map(to_cbor, value))
        case {"$link": str(cid), **others} if not others:
            link = b"\x00" + _from_base32(cid.removeprefix("b"))
            return _header(6, _LINK_TAG) + _header(2, len(link)) + link
        case Mapping():
            # The canonical order: shorter keys first, then by bytes.
            fields = sorted((len(name.encode()), name.encode(), to_cbor(member)) for name, member in value.items())
            return _header(5, len(fields)) + b"".join(_header(3, size) + name + member for size, name, member in fields)
    raise TypeError(f"a record cannot contain a {type(value).__name__}")


def _header(major: int, number: int) -> bytes:
    first = major << 5
    if number < 24:
        return bytes((first | number,))
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if number < 1 << 8 * struct.calcsize(form):
            return bytes((first | code,)) + struct.pack(form, number)
    raise ValueError("a record cannot contain a number of more than 64 bits")


def _to_base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def _from_base32(text: str) -> bytes:
    return base64.b32decode(text.upper() + "=" * (-len(text) % 8))
