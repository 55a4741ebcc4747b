"""Pages and images of the links in a post, fetched from public hosts only.

The time and the sizes are limited, because a host may be slow, large or hostile. A failure is a `NotFetched`.
"""

import asyncio
import zlib
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import httpx2

from socialpub.core import logging, units
from socialpub.core.errors import Unavailable
from socialpub.media.decoder import client
from socialpub.media.types import MediaRejected
from socialpub.providers.base import Fetched, ImageLimits, MediaFile, NotFetched, Unfit
from socialpub.publishing.media import renditions, uploads
from socialpub.publishing.media.download import DownloadFailed, download
from socialpub.runtime import Runtime

T = TypeVar("T")
_END_OF_HEAD = b"</head"

SECONDS = 10.0
"""The time for a page and its image."""
IMAGE_BYTES = 10_000_000
HEAD_BYTES = 1_000_000
"""A page is read up to here, and then only until its head ends."""

log = logging.get_logger(__name__)


class LinkFetcher:
    """The fetches of one step of a delivery."""

    def __init__(self, rt: Runtime, delivery_id: str) -> None:
        self._rt = rt
        self._delivery_id = delivery_id
        self._ends_at: float | None = None

    def fetch(self, url: str, max_bytes: int) -> Fetched:
        """Return the first `max_bytes` bytes of a page. Raises NotFetched."""
        return self._receive("The page", url, max_bytes, whole=False)

    def fetch_image(self, url: str, limits: ImageLimits) -> MediaFile:
        """Return an image within the limits, stored with the delivery's renditions. Raises NotFetched."""
        rt, host = self._rt, _host(url)[:255]
        try:
            with rt.files.reservations.reserve(IMAGE_BYTES, for_accepted_post=True):
                body = self._receive("The image", url, IMAGE_BYTES, whole=True).body
                path = renditions.keep_source(rt, self._delivery_id, body)
            facts = client.inspect_file(path, None, uploads.media_limits(rt.settings))
            if not facts.mime_type.startswith("image/"):
                raise NotFetched(f"The image of the page is {facts.mime_type}.")
            image = MediaFile(0, "image", facts.mime_type, len(body), path, host, facts=facts.facts)
            return renditions.fit_media(rt, self._delivery_id, image, limits)
        except (MediaRejected, Unfit):
            raise NotFetched("The image of the page cannot be used.") from None
        except (client.DecoderFailed, Unavailable, OSError) as error:
            log.warning("the image of a link could not be stored", host=host, reason=str(error))
            raise NotFetched("The image of the page could not be read.") from None

    def _receive(self, what: str, url: str, max_bytes: int, *, whole: bool) -> Fetched:
        now = self._rt.clock.monotonic()
        self._ends_at = self._ends_at or now + SECONDS
        try:
            return _run(self._download(url, max_bytes, self._ends_at - now, whole=whole))
        except DownloadFailed as failure:
            message = f"{what} {failure}."
        except TimeoutError:
            message = f"{what} did not arrive within {SECONDS:.0f} seconds."
        log.info("a link could not be fetched", host=_host(url), reason=message)
        raise NotFetched(message)

    async def _download(self, url: str, max_bytes: int, seconds: float, *, whole: bool) -> Fetched:
        # Readers of the post see the page's words, so the private hosts of `media.import_from` are not allowed.
        async with asyncio.timeout(seconds), download(url, None, accepts_gzip=True) as response:
            body, unpacker, has_head = bytearray(), _Unpacker() if response.gzipped else None, False
            async for piece in response.pieces:
                searched = max(0, len(body) - len(_END_OF_HEAD))
                body += unpacker.unpack(piece, max_bytes + 1 - len(body)) if unpacker else piece
                if whole and len(body) > max_bytes:
                    raise DownloadFailed(f"is larger than {units.size(max_bytes)}")
                has_head = has_head or _END_OF_HEAD in body[searched:].lower()
                if len(body) >= max_bytes or (not whole and has_head and len(body) >= HEAD_BYTES):
                    break
            return Fetched(response.url, response.content_type, response.charset, bytes(body[:max_bytes]))


class _Unpacker:
    """Decompresses gzip. A small file can become very large, so each call has a maximum."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def unpack(self, piece: bytes, max_bytes: int) -> bytes:
        unpacked = b""
        try:
            while piece and len(unpacked) < max_bytes:
                if self._member.eof:
                    self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
                unpacked += self._member.decompress(piece, max_bytes - len(unpacked))
                piece = self._member.unused_data
        except zlib.error:
            raise DownloadFailed("could not be decompressed") from None
        return unpacked


def _host(url: str) -> str:
    try:
        return httpx2.URL(url).host
    except httpx2.InvalidURL:
        return ""


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in a new loop on a new thread, because the caller's thread may have a running loop."""
    with ThreadPoolExecutor(1, "link") as thread:
        return thread.submit(copy_context().run, asyncio.run, coroutine).result()
