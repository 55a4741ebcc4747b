"""How a video is cut, and where its pieces may go. Pure.

The upload address comes from the network at run time and is a credential: bytes go only to hosts that the
configuration allows, and nothing of the address but its host is ever shown.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers.tiktok import limits

ADDRESS = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:[/?][!-~]*)?")
"""Stricter than URLs are: no user, no backslash, nothing that two readers could read in two ways."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Sizes in bytes. All chunks have `chunk_bytes`, the last one takes the remainder on top."""

    total_bytes: int
    chunk_bytes: int
    count: int

    def slice(self, index: int) -> tuple[int, int]:
        """Offset and length of one chunk."""
        offset = index * self.chunk_bytes
        return offset, self.total_bytes - offset if index == self.count - 1 else self.chunk_bytes

    def content_range(self, index: int) -> str:
        offset, length = self.slice(index)
        return f"bytes {offset}-{offset + length - 1}/{self.total_bytes}"

    def next_after(self, received_bytes: int) -> int | None:
        """The chunk that follows on so many bytes (`count`: none is missing). None: they end inside a chunk."""
        if received_bytes >= self.total_bytes:
            return self.count
        index, inside = divmod(received_bytes, self.chunk_bytes)
        return index if inside == 0 and index < self.count else None


def plan(total_bytes: int) -> Chunks:
    """One chunk while that is allowed, else TikTok's own example size; the count is rounded down."""
    if total_bytes <= limits.ONE_CHUNK_BYTES:
        return Chunks(total_bytes, total_bytes, 1)
    return Chunks(total_bytes, limits.CHUNK_BYTES, total_bytes // limits.CHUNK_BYTES)


def complaint(address: str, section: TikTokSection) -> str | None:
    """Why no bytes are sent to this address, None when they may be. Names the host at most."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        return "TikTok named an upload address that is no plain https address; nothing was sent there."
    scheme, host, port = match[1], match[2], match[3]
    # A stand-in for TikTok may speak http on a port of its own.
    stand_in = section.api_url != section.OWN_API_URL
    if scheme != "https" and not (stand_in and scheme == urlsplit(section.api_url).scheme):
        return f"TikTok named an upload address at {host} without https; nothing was sent there."
    if port not in (None, "443") and not stand_in:
        return f"TikTok named an upload address at {host} with port {port}; nothing was sent there."
    if not section.allows_upload_host(host):
        return (
            f"TikTok named the upload host {host}, which upload_hosts of [providers.tiktok] does not list; nothing was "
            "sent there. Add it if it is TikTok's."
        )
    return None
