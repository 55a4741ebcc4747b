"""The failures of a connection, in a few words.

The commands that call an appliance also use this file, so it does not import asyncio.
"""

import socket
import ssl

import httpx2

NOTHING_LEFT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)
"""The exceptions of httpx2 before the first byte of a request (source of 2.16): DNS, connection, TLS, a full pool, a
proxy that opens no tunnel. Any other exception may come after bytes have left."""


def describe_failure(error: BaseException) -> str:
    """Return the kind of failure in a few words, without the error's own text, which may contain an address."""
    for kind, words in _PLAIN:
        if isinstance(error, kind):
            return words
    cause: BaseException | None = error
    while cause is not None:
        for kind, words in _CAUSES:
            if isinstance(cause, kind):
                return words
        cause = cause.__cause__ or cause.__context__
    return "the connection failed" if isinstance(error, httpx2.ConnectError) else "it was closed early"


_PLAIN: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.InvalidURL, "the URL is not valid"),
    (httpx2.UnsupportedProtocol, "only http and https are supported"),
    (httpx2.ProxyError, "the proxy refused the connection"),
    (httpx2.TimeoutException, "the connection timed out"),
    (httpx2.ProtocolError, "it ended before the response was complete"),
)

_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "its name was not found"),
    (ConnectionRefusedError, "the connection was refused"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "the TLS connection failed"),
)
