"""Files as response bodies: byte ranges, stored files and `/static/…`.

A request with one range gets that part (RFC 9110, section 14). Several ranges, another unit or a malformed header get
the whole file. A range outside of the file is refused.
"""

import asyncio
import gzip
import hashlib
import json
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from socialpub.core.errors import NotFound
from socialpub.media.files import StoredFile
from socialpub.runtime import Runtime
from socialpub.web.http import answer
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request

# --- byte ranges -----------------------------------------------------------------------------------------------------

_ONE_RANGE = re.compile(rb"bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})", re.IGNORECASE)


class ByteRange(NamedTuple):
    """The bytes from `start` up to, but not including, `end`."""

    start: int
    end: int
    partial: bool


def parse_range(header: bytes | None, size_bytes: int) -> ByteRange | None:
    """Return the requested range of a file of this size. None if the file does not have the range."""
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


# --- stored files ----------------------------------------------------------------------------------------------------

PIECE_BYTES = 64 * 1024
"""Limits the memory of a slow client. Larger pieces were not faster in measurements."""


async def send_file(request: Request, file: StoredFile, start: int, end: int) -> None:
    """Send the bytes from `start` up to, but not including, `end`. Raises ClientGone."""
    at = start
    while at < end:
        length = min(PIECE_BYTES, end - at)
        piece = file.read_cached(at, length)
        if piece is None:
            piece = await asyncio.to_thread(file.read, at, length)
        if not piece:
            raise OSError("a stored file is shorter than it was")
        at += len(piece)
        await request.send(piece, more=at < end)
        # With a fast client, `send` never waits. Other requests need this pause.
        await asyncio.sleep(0)


# --- static files ----------------------------------------------------------------------------------------------------

FOLDER = Path(__file__).parents[1] / "static"
VENDORED = "vendored"
"""The folder of third-party files, which `vendored.json` in this folder lists."""

TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".ico": b"image/x-icon",
    ".js": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
    ".woff2": b"font/woff2",
}
"""Files of other types, such as licenses, are not served."""
COMPRESSED = {".ico", ".png", ".woff2"}
"""Types that gzip cannot make smaller. An .ico file contains PNG images."""

HASH_CHARACTERS = 16
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"vary", b"Accept-Encoding"),
    (b"x-content-type-options", b"nosniff"),
)


class StaticFile:
    """A file that is read on the first request and then kept in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_stored_compressed = path.suffix == ".gz"
        self.name = path.relative_to(FOLDER).as_posix().removesuffix(".gz")
        """The name in templates: `dashboard.css`, `vendored/htmx.org-4.0.1/htmx.min.js`."""
        self.suffix = Path(self.name).suffix

    @cached_property
    def _stored(self) -> bytes:
        return self._path.read_bytes()

    @cached_property
    def plain(self) -> bytes:
        return gzip.decompress(self._stored) if self._is_stored_compressed else self._stored

    @cached_property
    def compressed(self) -> bytes | None:
        """The gzipped bytes. None if gzip does not make the file smaller."""
        if self._is_stored_compressed:
            return self._stored
        if self.suffix in COMPRESSED:
            return None
        found = gzip.compress(self._stored, mtime=0)
        return found if len(found) < len(self._stored) else None

    @cached_property
    def hash(self) -> str:
        return hashlib.sha256(self._stored).hexdigest()[:HASH_CHARACTERS]

    @property
    def address(self) -> str:
        """The name with the hash: `dashboard.0123456789abcdef.css`."""
        return f"{self.name.removesuffix(self.suffix)}.{self.hash}{self.suffix}"


@cache
def list_static() -> dict[str, StaticFile]:
    found = (StaticFile(path) for path in sorted(FOLDER.rglob("*")) if path.is_file())
    return {file.name: file for file in found if file.suffix in TYPES}


def static_url(name: str) -> str:
    """Return the URL of a file relative to `Request.relative_root`. Raises KeyError."""
    return f"static/{list_static()[name].address}"


@cache
def vendored_url(package: str, file_name: str) -> str:
    """Return the URL of a file of a third-party package. Raises KeyError."""
    version = {one["package"]: one["version"] for one in vendored_packages()}[package]
    return static_url(f"{vendored_folder(package, version)}/{file_name}")


def vendored_packages() -> list[dict[str, Any]]:
    """Return the entries of `vendored.json`: `package`, `version`, `licence` and `files` of each package."""
    packages: list[dict[str, Any]] = json.loads((FOLDER / VENDORED / "vendored.json").read_bytes())["packages"]
    return packages


def vendored_folder(package: str, version: str) -> str:
    """Return the folder of a package, such as `vendored/picocss-pico-2.1.1` for `@picocss/pico`."""
    return f"{VENDORED}/{package.removeprefix('@').replace('/', '-')}-{version}"


def _find(address: str) -> StaticFile:
    name, _, ending = address.rpartition(".")
    file = list_static().get(f"{name.rpartition('.')[0]}.{ending}")
    if file is None or file.address != address:
        raise NotFound("There is no file with this name. Reload the page.")
    return file


@endpoint(scope=None)
async def show_static(rt: Runtime, caller: None, request: Request) -> Answer | None:  # noqa: ARG001
    file = _find(request.path_params["name"])
    etag = b'W/"%s"' % file.hash.encode()  # a weak tag, because compressed and plain bytes have the same tag
    headers = ((b"content-type", TYPES[file.suffix]), (b"etag", etag), *_ALWAYS)
    known_tags = [tag.strip() for tag in request.headers.get(b"if-none-match", b"").split(b",")]
    if known_tags == [b"*"] or etag in known_tags or etag.removeprefix(b"W/") in known_tags:
        await request.start(304, headers)
        await request.send(b"", more=False)
        return None
    body = file.compressed if answer.accepts_gzip(request.headers.get(b"accept-encoding")) else None
    if body is not None:
        headers = (*headers, (b"content-encoding", b"gzip"))
    else:
        body = file.plain
    await request.start(200, (*headers, (b"content-length", b"%d" % len(body))))
    if request.method == "HEAD":
        await request.send(b"", more=False)
        return None
    for at in range(0, len(body), PIECE_BYTES) or (0,):
        await request.send(body[at : at + PIECE_BYTES], more=at + PIECE_BYTES < len(body))
    return None
