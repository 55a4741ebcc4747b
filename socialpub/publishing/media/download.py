"""Downloads of files from URLs that callers chose, only from allowed hosts.

Each redirect is checked like the first URL. A request contains no credentials and no cookies, ignores the proxies of
the environment, and has its own connection: a reused connection would skip the certificate check of another host name.
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2

from socialpub import runtime
from socialpub.providers import framing, ip_addresses
from socialpub.providers.failures import NOTHING_LEFT, describe_failure, is_not_http
from socialpub.providers.http import BROKEN, trusted_certificates
from socialpub.providers.ip_addresses import AllowedHosts

MAX_REDIRECTS = 5
MAX_LOCATION, MAX_TYPE = 8192, 1000
"""The maximum lengths of these headers. Parsing 60 kB takes 0.2 s for a URL, and up to 5 s for a type."""
CONNECT_SECONDS = 10.0
"""The timeout of the DNS query, and of the connection to each IP address."""
MAX_CONNECTS = 4
"""The number of IP addresses of one host that are tried."""
SILENCE_SECONDS = 20.0
"""The maximum time without a byte."""
BUFFER_BYTES = 256 * 1024
"""The kernel's receive buffer of a connection. uvloop passes on the whole buffer at once, so a fast host fills as much
memory. In a measurement, a file of 150 MB added 7.6 MB without this limit and 1.5 MB with it. At a distance of 100 ms,
the buffer still allows about 2.5 MB per second."""

_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?([\w.:+-]+)""")
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_HEADERS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "socialpub/1.0", "connection": "close"}
Trace = Callable[[str, dict[str, Any]], Coroutine[Any, Any, None]]
_TIMEOUT = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS).as_dict()


class DownloadFailed(Exception):
    """The message ends a sentence that begins with the field of the URL. It names the host, but not the path."""


@dataclass(frozen=True, slots=True)
class Download:
    """A response whose body arrives in pieces. Reading the pieces may raise DownloadFailed."""

    url: str
    """The URL after the redirects."""
    content_type: str
    charset: str | None
    length_bytes: int | None
    """The announced length. None: unknown."""
    pieces: AsyncIterator[bytes]
    gzipped: bool = False
    """The pieces are compressed. Only a caller that accepts this gets it."""


@asynccontextmanager
async def download(
    url: str, allowed: AllowedHosts | None, turn: asyncio.Lock | None = None, *, accepts_gzip: bool = False
) -> AsyncIterator[Download]:
    """Open the file at `url`. Raises DownloadFailed. The caller limits the total time and the size.

    `allowed` are the private hosts of `media.import_from`. None: the owner cannot allow private hosts for this URL.
    All downloads of an event loop share a `turn`, so that they leave time for its other tasks.
    """
    # Loading the certificates takes 20 ms or more.
    certificates = await asyncio.to_thread(trusted_certificates)
    options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)]
    async with httpx2.AsyncHTTPTransport(certificates, trust_env=False, socket_options=options) as transport:
        with _failures():
            response, final = await _follow(transport, httpx2.URL(url), allowed, partial(framing.limit, turn=turn))
        try:
            content_type, _, parameters = response.headers.get("content-type", "")[:MAX_TYPE].lower().partition(";")
            charset = _CHARSET.search(parameters)
            length = _check_response(response)
            gzipped = _is_gzipped(response, accepts_gzip)
            async with aclosing(_read(response)) as pieces:
                charset_name = charset.group(1) if charset else None
                yield Download(str(final), content_type.strip(), charset_name, length, pieces, gzipped)
        finally:
            await response.aclose()


async def _follow(
    transport: httpx2.AsyncHTTPTransport, url: httpx2.URL, allowed: AllowedHosts | None, trace: Trace
) -> tuple[httpx2.Response, httpx2.URL]:
    """Return the response after the redirects, whose bodies are not read, and its URL."""
    for hop in range(MAX_REDIRECTS + 1):
        if fault := explain_refusal(url):
            raise DownloadFailed(f"leads to a URL that {fault}" if hop else fault)
        response = await _open(transport, url, allowed, trace)
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or not location:
            return response, url
        await response.aclose()
        if len(location) > MAX_LOCATION:
            raise DownloadFailed("leads to a URL that is too long")
        url = url.join(location)
    raise DownloadFailed(f"leads over more than {MAX_REDIRECTS} redirects")


async def _open(
    transport: httpx2.AsyncHTTPTransport, url: httpx2.URL, allowed: AllowedHosts | None, trace: Trace
) -> httpx2.Response:
    """Connect to the first checked IP address that accepts the connection."""
    failure: Exception | None = None
    for address in (await _look_up(url, allowed))[:MAX_CONNECTS]:
        request = httpx2.Request("GET", url, headers=_HEADERS, extensions={"timeout": _TIMEOUT, "trace": trace})
        try:
            return await transport.handle_async_request(ip_addresses.pin(request, address))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = error
    assert failure is not None
    raise failure


async def _look_up(url: httpx2.URL, allowed: AllowedHosts | None) -> list[str]:
    """Return the checked IP addresses of the host."""
    host = url.raw_host.decode("ascii")
    port = url.port or (443 if url.scheme == "https" else 80)
    addresses_of_host: list[str] = []
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            # A DNS query that hangs must not occupy a thread that other requests use.
            addresses_of_host = await runtime.run_in_thread(partial(ip_addresses.look_up, host, port))
    except TimeoutError:
        pass
    if not addresses_of_host or not all(
        (allowed or AllowedHosts()).allow(host, address) for address in addresses_of_host
    ):
        # One message for both: a caller does not learn which private names exist.
        remedy = "; the owner of the appliance can allow a private host with media.import_from"
        raise DownloadFailed(
            f"leads to {host}, which does not exist or is not a public host{remedy if allowed is not None else ''}"
        )
    return addresses_of_host


def explain_refusal(url: httpx2.URL) -> str | None:
    """Return the reason why the appliance never fetches such a URL, or None."""
    if url.scheme not in ("http", "https") or not url.host:
        return "is not an http or https URL"
    if url.userinfo:
        return "contains a user name or a password; the appliance sends no credentials"
    if "%" in url.host or not (url.port is None or 0 < url.port < 65536):
        return "has a host or a port that is not valid"
    return None


def _check_response(response: httpx2.Response) -> int | None:
    """Return the length that the response announces. Raises DownloadFailed."""
    if not response.is_success:
        raise DownloadFailed(f"answered {response.status_code} {response.reason_phrase[:60]}".rstrip())
    length = response.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None


def _is_gzipped(response: httpx2.Response, accepts_gzip: bool) -> bool:
    """Return whether the body is compressed. Raises DownloadFailed if the caller does not accept the encoding."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return False
    if accepts_gzip and encoding in ("gzip", "x-gzip"):
        return True
    raise DownloadFailed(f"answered with the encoding {encoding[:40]}, which was not requested")


async def _read(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    framing.end_head(response, limits_content=True)
    with _failures():
        async with aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                framing.note_content(response)
                yield piece


@contextmanager
def _failures() -> Iterator[None]:
    """Describe every failure of a connection."""
    try:
        yield
    except httpx2.InvalidURL:
        raise DownloadFailed("leads to a URL that is not valid") from None
    except httpx2.ConnectTimeout:
        raise DownloadFailed(f"could not be reached within {CONNECT_SECONDS:.0f} seconds") from None
    except httpx2.TimeoutException as error:
        if is_not_http(error):
            raise DownloadFailed(f"could not be read: {describe_failure(error)}") from None
        raise DownloadFailed(f"sent nothing for {SILENCE_SECONDS:.0f} seconds") from None
    except NOTHING_LEFT as error:
        raise DownloadFailed(f"could not be reached: {describe_failure(error)}") from None
    except BROKEN as error:
        raise DownloadFailed(f"could not be read: {describe_failure(error)}") from None
