"""How a conversation can break, and how that is put into words.

What matters is one thing: whether it broke before the first byte had left (`NOTHING_LEFT`) or perhaps after it.
"""

import socket
import ssl

import anyio
import httpx2

NOTHING_LEFT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)
"""What httpx2 raises before the first byte of a request: names, connections, TLS (httpcore2 reports a failed handshake
as ConnectError), a full pool, a proxy that opens no tunnel. Read in the source of 2.16; every other exception may come
after bytes have left."""

BROKEN = (
    httpx2.HTTPError,
    httpx2.StreamError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
)
"""Everything else that a connection may end with; httpcore2 lets some of ssl's and anyio's own errors through."""


def reason(error: BaseException) -> str:
    """The kind of failure in a few words; never its own text, which may hold an address."""
    for kind, words in _PLAIN:
        if isinstance(error, kind):
            return words
    cause: BaseException | None = error
    while cause is not None:
        for kind, words in _CAUSES:
            if isinstance(cause, kind):
                return words
        cause = cause.__cause__ or cause.__context__
    return "no connection" if isinstance(error, httpx2.ConnectError) else "it was cut"


_PLAIN: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.InvalidURL, "it is not a valid URL"),
    (httpx2.UnsupportedProtocol, "only http and https are spoken"),
    (httpx2.ProxyError, "the proxy refused"),
    (httpx2.TimeoutException, "no answer in time"),
    (httpx2.ProtocolError, "it ended before the answer was whole"),
)

_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "its name was not found"),
    (ConnectionRefusedError, "the connection was refused"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "no secure connection"),
)
