"""The failures of a connection, in a few words.

The commands that call an appliance also use this file, so it does not import asyncio.
"""

import os
import socket
import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from traceback import walk_tb
from urllib.request import getproxies

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

MAX_FRAMING_BYTES, MAX_FRAMING_LINES = 64 * 1024, 500


class TooMuchFraming(httpx2.RemoteProtocolError):
    """A host sent too much before its response, or between two pieces of its content."""

    def __init__(self) -> None:
        super().__init__("too much framing")


def describe_failure(error: BaseException) -> str:
    """Return the kind of failure in a few words, without the error's own text, which may contain an address."""
    if is_not_http(error):
        return "its response is not HTTP"
    for kind, words in _PLAIN:
        if isinstance(error, kind):
            return words
    for cause in _chain(error):
        for kind, words in _CAUSES:
            if isinstance(cause, kind):
                return words
    return "the connection failed" if isinstance(error, httpx2.ConnectError) else "it was closed early"


def is_not_http(error: BaseException) -> bool:
    """Return whether the response begins with something else than HTTP, such as the greeting of an SSH server."""
    for cause in _chain(error):
        if isinstance(cause, httpx2.RemoteProtocolError) and str(cause).startswith(("illegal", "bad", "malformed")):
            return True
        # After the greeting, the server closes the connection or waits, and httpcore2 reports only this.
        for frame, _ in walk_tb(cause.__traceback__):
            state = getattr(frame.f_locals.get("self"), "_h11_state", None)
            if state is not None and repr(state.their_state) == "SEND_RESPONSE" and state.trailing_data[0]:
                return not bytes(state.trailing_data[0]).startswith(b"HTTP/"[: len(state.trailing_data[0])])
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


_PLAIN: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.InvalidURL, "the URL is not valid"),
    (httpx2.UnsupportedProtocol, "only http and https are supported"),
    (httpx2.ProxyError, "the proxy refused the connection"),
    (httpx2.TimeoutException, "the connection timed out"),
    (TooMuchFraming, f"it sent more than 64 kB or {MAX_FRAMING_LINES} lines without content"),
    (httpx2.ProtocolError, "it ended before the response was complete"),
)

_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "its name was not found"),
    (ConnectionRefusedError, "the connection was refused"),
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "the TLS connection failed"),
)


# --- the proxy variables of the environment --------------------------------------------------------------------------


def find_unusable_proxies() -> list[str]:
    """Return a sentence for each proxy variable that cannot be used. A sentence never contains the value."""
    proxies = getproxies()
    if "*" in (host.strip() for host in proxies.get("no", "").split(",")):
        return []
    sentences = []
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        value = proxies.get(name.removesuffix("_proxy"))
        fault = _find_proxy_fault(value) if value else None
        if fault is not None:
            named = name if os.environ.get(name) else next((n for n in os.environ if n.lower() == name), name)
            sentences.append(f"The proxy in the variable {named} cannot be used: {fault}.")
    return sentences


PROXY_REMEDY = "Set the variable to http://HOST:PORT, or remove it from the environment. Then restart socialpub."


def _find_proxy_fault(value: str) -> str | None:
    url = value if "://" in value else f"http://{value}"
    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        if scheme in ("socks5", "socks5h") and find_spec("socksio"):
            return None
        is_socks = scheme.startswith("socks")
        return "socialpub does not support SOCKS proxies" if is_socks else "its URL is not http or https"
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        return "its URL is not valid"
    return None if parsed.host and 0 < (parsed.port or 80) < 65536 else "its URL has no valid host and port"
