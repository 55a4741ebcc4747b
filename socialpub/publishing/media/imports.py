"""Media by URL: files that a request names by URL, and that arrive before the request is accepted (contract 10.2).

The limits, reservations and checks are those of uploads. A URL of this appliance means its artifact and is not fetched.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx2

from socialpub.core import logging, units
from socialpub.core.errors import Forbidden, InvalidRequest, Unavailable
from socialpub.core.secrets import signed_urls
from socialpub.core.validation import Path
from socialpub.db.connection import Database
from socialpub.db.tables import artifact_rows
from socialpub.media.types import MediaRejected
from socialpub.providers.ip_addresses import AllowedHosts
from socialpub.publishing.media import arrivals, uploads
from socialpub.publishing.media.arrivals import ArrivingFile
from socialpub.publishing.media.download import Download, DownloadFailed, download
from socialpub.publishing.media.uploads import Examined, VerifiedArtifact
from socialpub.runtime import Runtime

REQUEST_SECONDS = 100.0
"""The time in which all files of one request must arrive."""
MAX_FETCHES = 4
"""Simultaneous fetches of one request."""
MAX_REQUESTS = 32
"""Simultaneous requests that fetch. More requests get 503 and do not wait."""
KEPT_REQUESTS = 8
"""The number of these requests that only keys without a fetching request may use."""

log = logging.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class MediaUrl:
    """A URL, and its path in the request."""

    path: Path
    url: str


def find_own(rt: Runtime, db: Database, media: MediaUrl) -> str | None:
    """Return the id of the artifact if this is a URL of this appliance, otherwise None. Raises InvalidRequest."""
    own, url = httpx2.URL(rt.settings.base_url), httpx2.URL(media.url)
    folder = own.path.rstrip("/") + signed_urls.MEDIA
    if (url.scheme, url.host, url.port) != (own.scheme, own.host, own.port) or not url.path.startswith(folder):
        return None
    storage_key = url.path.removeprefix(folder)
    try:
        signed_urls.check_media(rt.secrets, storage_key, url.query.decode("ascii"), rt.now())
    except Forbidden as error:
        raise InvalidRequest.at(*media.path, message=f"leads to this appliance. {error.detail}") from None
    artifact_id = artifact_rows.verified_id(db, storage_key)
    if artifact_id is None:
        message = "leads to a file of this appliance that was removed or is not an artifact; upload the file again"
        raise InvalidRequest.at(*media.path, message=message)
    return artifact_id


async def fetch(
    rt: Runtime, wanted: Sequence[MediaUrl], kept: ExitStack, key_id: str, *, seconds: float
) -> list[Examined | str]:
    """Return for each URL the stored file, or the id of the artifact of this appliance.

    `kept` removes every file to which no row refers. Raises InvalidRequest with every failing URL, and Unavailable.
    """
    request = _Request(rt, kept, key_id, seconds)
    with _count_request(rt, key_id):
        # This waits for all files, even if one fails: the response names every failing URL.
        results = await asyncio.gather(*map(request.fetch, wanted), return_exceptions=True)
    errors = [error for result in results if isinstance(result, InvalidRequest) for error in result.errors]
    if errors:
        raise InvalidRequest.from_errors(errors)
    examined: list[Examined | str] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        examined.append(result)
    return examined


def accept(rt: Runtime, tx: Database, found: Examined | str) -> VerifiedArtifact:
    """Insert a fetched file, and return its artifact. Raises Unavailable."""
    if isinstance(found, Examined):
        uploads.insert_arrived(rt, tx, [found])
    return uploads.get_verified(tx, found.artifact_id if isinstance(found, Examined) else found)


class _Request:
    """The fetches of one request."""

    def __init__(self, rt: Runtime, kept: ExitStack, key_id: str, seconds: float) -> None:
        self._rt = rt
        self._kept = kept
        self._key_id = key_id
        self._seconds = seconds
        self._ends_at = asyncio.get_running_loop().time() + seconds
        self._slots = asyncio.Semaphore(MAX_FETCHES)
        self._allowed = AllowedHosts.parse(rt.settings.media.import_from)

    async def fetch(self, media: MediaUrl) -> Examined | str:
        own = find_own(self._rt, self._rt.db, media)
        if own is not None:
            return own
        url = httpx2.URL(media.url)
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        try:
            file, content_type = await self._download(media.url, url.host)
            (facts,) = await arrivals.examine(self._rt, [file], self._key_id)
            if isinstance(facts, MediaRejected):
                raise DownloadFailed(_explain_rejection(facts, content_type))
        except DownloadFailed as failure:
            log.info("media could not be fetched", origin=origin, reason=str(failure))
            raise InvalidRequest.at(*media.path, message=str(failure)) from None
        log.info("media was fetched", origin=origin, mime_type=facts.mime_type, size_bytes=facts.size_bytes)
        return await arrivals.store(self._rt, file, facts)

    async def _download(self, url: str, host: str) -> tuple[ArrivingFile, str]:
        """Return the file and the declared media type of the response. Raises DownloadFailed, Unavailable."""
        try:
            arriving = download(url, self._allowed, self._rt.media.turn)
            async with asyncio.timeout_at(self._ends_at), self._slots, arriving as response:
                return await self._receive(response, host), response.content_type
        except TimeoutError:
            raise DownloadFailed(f"did not arrive within the {self._seconds:g} seconds of one request") from None

    async def _receive(self, found: Download, host: str) -> ArrivingFile:
        rt = self._rt
        max_bytes, length_bytes = uploads.max_bytes(rt.settings, ""), found.length_bytes
        too_large = DownloadFailed(f"is larger than {units.size(max_bytes)}")
        if length_bytes is not None and length_bytes > max_bytes:
            raise too_large
        with (
            uploads.count_arriving(rt, length_bytes or 1),
            rt.files.reservations.reserve(length_bytes or max_bytes) as reservation,
        ):
            # A path may contain secrets, so the host is the name of the file.
            file = ArrivingFile(
                file_name=host[:255],
                declared_type="",
                incoming=rt.files.receive(),
                reservation=reservation,
                max_bytes=max_bytes,
            )
            self._kept.enter_context(file)
            try:
                async for piece in found.pieces:
                    file.add(piece)
                    if file.is_too_large:
                        raise too_large
            except BaseException:
                file.drop()
                raise
        return file


def _explain_rejection(rejected: MediaRejected, content_type: str) -> str:
    if content_type == "text/html":
        return "answered text/html: is it a share page? Use the URL of the file itself"
    return rejected.reason


@contextmanager
def _count_request(rt: Runtime, key_id: str) -> Iterator[None]:
    """Count a request that fetches. Only on the event loop. Raises Unavailable."""
    if not rt.media.may_fetch(key_id, MAX_REQUESTS, KEPT_REQUESTS):
        raise Unavailable("Too many other requests fetch media by URL at the moment. Send the request again.")
    with rt.media.count_fetching(key_id):
        yield
