"""The HTTP client for every call to a network.

Each call has a total deadline on the monotonic clock, because a trickling server resets the client's own timeouts
forever. `NotSent` is raised only when nothing left this host.
"""

import asyncio
import base64
import concurrent.futures
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpx2

from socialpub.core.secrets import redaction
from socialpub.core.secrets.redaction import is_secret_name
from socialpub.providers import framing, ip_addresses
from socialpub.providers.bodies import Body, FileBody, Multipart, build
from socialpub.providers.failures import (
    NOTHING_LEFT,
    PROXY_REMEDY,
    describe_failure,
    find_unusable_proxies,
    is_not_http,
)
from socialpub.providers.responses import HttpResponse, NoAnswer, NotSent, ProviderError

MAX_DEADLINE_SECONDS = 120.0
MAX_ANSWER_BYTES = 4 * 1024 * 1024
CONNECT_SECONDS = 15.0
KEEP_ALIVE_SECONDS = 5.0
"""Short: with a reused connection that has died unnoticed, a clear `NotSent` becomes an unclear `NoAnswer`."""

BROKEN = (
    httpx2.HTTPError,
    httpx2.StreamError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
)
"""All other failures of a connection. httpcore2 does not wrap some errors of ssl and anyio."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the trusted certificates. All networks share them, because they need time and a megabyte to load."""
    return httpx2.create_ssl_context()


class Http:
    """One client on one background thread, started by the first call and usable from many threads.

    `mounts` maps a host (`"http://sandbox.test"`) to another transport. `stall_seconds` limits how long a call that
    sends a file may make no progress. `lookups` limits simultaneous DNS queries.
    """

    def __init__(
        self,
        *,
        user_agent: str = "socialpub/1.0",
        mounts: Mapping[str, httpx2.AsyncBaseTransport] | None = None,
        stall_seconds: float = 30.0,
        lookups: int = 8,
    ) -> None:
        self._lookups = lookups
        self._by_network: dict[str, Http] = {}
        self._calls = 0
        self._user_agent = user_agent
        self._mounts = dict(mounts or {})
        self._stall_seconds = stall_seconds
        self._lock = threading.Lock()
        self._closed = False
        self._running: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient, threading.Thread] | None = None

    def for_network(self, network: str) -> "Http":
        """Return this network's own client, so that a network that hangs delays no other."""
        with self._lock:
            if network not in self._by_network:
                self._by_network[network] = own = self.separate(self._lookups)
                own._closed = self._closed
            return self._by_network[network]

    def separate(self, lookups: int) -> "Http":
        """Return another client with the same settings. Its calls are not counted, and the caller closes it."""
        return Http(
            user_agent=self._user_agent, mounts=self._mounts, stall_seconds=self._stall_seconds, lookups=lookups
        )

    def call(
        self,
        method: str,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        form: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        auth: tuple[str, str] | None = None,
        multipart: Multipart | None = None,
        content: bytes | FileBody | None = None,
        deadline_seconds: float = 60.0,
        check_allowed: Callable[[], None] | None = None,
        address: str | None = None,
        reads_body: bool = True,
    ) -> HttpResponse:
        """Send one request and return the response of any status. Blocks the calling thread.

        `token` is sent as Bearer, `auth` (id, secret) as Basic. `check_allowed` runs just before sending and stops the
        call by raising. `address` is the IP address to connect to, instead of a DNS lookup. The deadline covers the
        whole call, at most two minutes. If the body has a file, the deadline begins after its last byte, and until then
        the call must make progress. Without `reads_body`, the call ends after the head of the response.

        Raises `NotSent`, `NoAnswer`, and FileNotFoundError before anything leaves when a file of the body is missing.
        """
        _hold(token, auth, form)
        body = build(json=json, form=form, multipart=multipart, content=content)
        try:
            if check_allowed is not None:
                check_allowed()
            sent = {"user-agent": self._user_agent, **(headers or {})}
            if token is not None:
                sent["authorization"] = f"Bearer {token}"
            if auth is not None:
                sent["authorization"] = f"Basic {_basic(auth)}"
            deadline_seconds = min(deadline_seconds, MAX_DEADLINE_SECONDS)
            future = self._submit(method, url, sent, params, body, deadline_seconds, address, reads_body)
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                raise NoAnswer("The call was interrupted because the appliance is stopping.") from None
            except BaseException:
                future.cancel()
                raise
        finally:
            if body is not None:
                body.close()

    def pop_call_counts(self) -> dict[str, int]:
        """Return and reset the number of calls of each network."""
        taken = {}
        for network, own in list(self._by_network.items()):
            with own._lock:
                taken[network], own._calls = own._calls, 0
        return {network: count for network, count in taken.items() if count}

    def restore_call_counts(self, counts: Mapping[str, int]) -> None:
        """Add calls again whose number could not be stored."""
        for network, count in counts.items():
            own = self.for_network(network)
            with own._lock:
                own._calls += count

    def close(self) -> None:
        """Cancel all calls and end the thread. Every later call raises `NotSent`."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
            others = list(self._by_network.values())
        for other in others:
            other.close()
        if running is None:
            return
        loop, client, thread = running
        asyncio.run_coroutine_threadsafe(_wind_down(client), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _submit(self, *exchange: Any) -> "concurrent.futures.Future[HttpResponse]":
        """Begin an exchange on the background thread, which the first call starts."""
        with self._lock:
            if self._closed:
                raise NotSent("The call was not sent because the appliance is stopping.")
            if self._running is None:
                self._running = self._start()
            loop, client, _ = self._running
            self._calls += 1
            return asyncio.run_coroutine_threadsafe(self._exchange(client, *exchange), loop)

    def _start(self) -> tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient, threading.Thread]:
        try:
            client = self._build_client()
        except Exception as error:
            # Its text may contain the password of a proxy.
            faults = [*find_unusable_proxies(), PROXY_REMEDY]
            why = " ".join(faults) if len(faults) > 1 else f"{type(error).__name__}. Check the variable SSL_CERT_FILE."
            raise NotSent(f"The HTTP client cannot be built. {why}") from None
        loop = asyncio.new_event_loop()
        # DNS queries use this executor. The default executor of a small host has only five threads.
        loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(self._lookups, "socialpub-lookup"))
        thread = threading.Thread(target=loop.run_forever, name="socialpub-http", daemon=True)
        thread.start()
        return loop, client, thread

    def _build_client(self) -> httpx2.AsyncClient:
        mounts: dict[str, httpx2.AsyncBaseTransport | None] = {
            # A proxy from the environment must not get calls to a sandbox on this host.
            **dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]")),
            **{pattern.rstrip("/"): transport for pattern, transport in self._mounts.items()},
        }
        return httpx2.AsyncClient(
            verify=trusted_certificates(),
            mounts=mounts,
            limits=httpx2.Limits(max_connections=200, keepalive_expiry=KEEP_ALIVE_SECONDS),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
        )

    async def _exchange(
        self,
        client: httpx2.AsyncClient,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        body: Body | None,
        deadline_seconds: float,
        address: str | None,
        reads_body: bool,
    ) -> HttpResponse:
        progress = _SendProgress()
        by_progress = body is not None and body.has_file
        try:
            target = httpx2.URL(url)
            host = target.host
            async with asyncio.timeout(self._stall_seconds if by_progress else deadline_seconds) as limit:
                # DNS and handshake get less than half each: after a cut by the deadline, httpcore2 leaks the socket.
                connect = min(CONNECT_SECONDS, deadline_seconds * 0.45)
                request = client.build_request(
                    method,
                    target,
                    headers=headers,
                    params=params,
                    timeout=httpx2.Timeout(None, connect=connect, pool=connect),
                    extensions={"trace": progress.note},
                )
                if address is not None:
                    request = ip_addresses.pin(request, address)
                if body is not None:
                    _attach(request, body)
                if body is not None and by_progress:
                    _limit_progress(body, limit, self._stall_seconds, deadline_seconds)
                response = await client.send(request, stream=True)
                framing.end_head(response, limits_content=False)
                try:
                    content = await _read(response, host) if reads_body else b""
                finally:
                    await response.aclose()
                return HttpResponse(response.status_code, dict(response.headers.items()), content)
        except ProviderError:
            raise
        except NOTHING_LEFT as error:
            host = "" if isinstance(error, httpx2.InvalidURL) else host
            raise NotSent(f"{host or 'The address'} could not be reached: {describe_failure(error)}.") from error
        except TimeoutError as error:
            if progress.nothing_left:
                raise NotSent(f"{host} could not be reached: the connection timed out.") from error
            why = ": its response is not HTTP" if is_not_http(error) else ""
            raise NoAnswer(f"{host} did not respond in time{why}.") from error
        except BROKEN as error:
            raise NoAnswer(f"The connection to {host} broke: {describe_failure(error)}.") from error
        except Exception as error:
            if not progress.nothing_left:
                raise
            raise NotSent(f"{host} could not be reached: the connection could not begin.") from error


def _basic(auth: tuple[str, str]) -> str:
    return base64.b64encode(":".join(auth).encode()).decode()


def _hold(
    token: str | None, auth: tuple[str, str] | None, form: Mapping[str, str] | Sequence[tuple[str, str]] | None
) -> None:
    """Mask the secrets of this call from now on, because the response may quote them."""
    redaction.add_secrets(token)
    if form is not None:
        fields = form.items() if isinstance(form, Mapping) else form
        redaction.add_secrets(*(value for name, value in fields if name == "code" or is_secret_name(name)))
    if auth is not None:
        redaction.add_secrets(auth[1], _basic(auth))


class _SendProgress:
    def __init__(self) -> None:
        self._connecting = False
        self._sending = False

    async def note(self, event: str, info: dict[str, Any]) -> None:
        await framing.limit(event, info)
        self._connecting = self._connecting or event == "connection.connect_tcp.started"
        self._sending = self._sending or "send_request_headers" in event

    @property
    def nothing_left(self) -> bool:
        # A test's transport traces nothing, so only a connection that was seen to begin is certain.
        return self._connecting and not self._sending


def _limit_progress(body: Body, limit: asyncio.Timeout, stall_seconds: float, deadline_seconds: float) -> None:
    """Let each piece of the body extend the limit. The deadline begins after the last piece."""
    clock = asyncio.get_running_loop().time
    body.moved = lambda: limit.reschedule(clock() + stall_seconds)
    body.ended = lambda: limit.reschedule(clock() + deadline_seconds)


def _attach(request: httpx2.Request, body: Body) -> None:
    request.stream = body
    request.headers["content-length"] = str(body.length_bytes)
    if body.content_type is not None:
        request.headers.setdefault("content-type", body.content_type)


async def _read(response: httpx2.Response, host: str) -> bytes:
    # A few kilobytes that were compressed several times can keep a thread busy for hours.
    if len(response.headers.get_list("content-encoding", split_commas=True)) > 1:
        raise NoAnswer(f"{host} sent a response that was compressed more than once.")
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_ANSWER_BYTES:
            raise NoAnswer(f"{host} sent a response of more than {MAX_ANSWER_BYTES} bytes.")
    return bytes(content)


async def _wind_down(client: httpx2.AsyncClient) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.aclose()
    await asyncio.get_running_loop().shutdown_asyncgens()
