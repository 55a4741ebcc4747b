"""One call: who may send it, read it, apply its scripted fault, handle it, respond.

A handler runs without an await. So a call has its whole effect or none, even if its response is lost.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from socialpub.sandbox.faults import ConnectionCut, Fault, Hang
from socialpub.sandbox.memory import CallLog
from socialpub.sandbox.messages import BodySink, Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import NetworkHandler, SandboxNetwork
from socialpub.sandbox.world import ClosingSignal, World

TRICKLE_SECONDS = 0.2
MAX_BODY_BYTES = 40 * 1024 * 1024

OpenSink = Callable[[Any, SandboxRequest], BodySink]
"""A function that creates the sink of a body from the headers alone."""
Prepare = Callable[[Any, SandboxRequest], Awaitable[None]]
"""Fetches what the handler needs. It changes nothing that a reader sees."""


class SandboxCall(NamedTuple):
    """The declaration of an endpoint."""

    method: str
    """Empty: GET and POST."""
    path: str
    """Below the network's path."""
    name: str
    handler: NetworkHandler
    sink: OpenSink | None = None
    prepare: Prepare | None = None


@dataclass(frozen=True, slots=True)
class SandboxEndpoint:
    world: World
    network: str
    name: str
    handler: NetworkHandler
    sink: OpenSink | None = None
    prepare: Prepare | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        network = self.world.networks[self.network]
        request = SandboxRequest.begin(scope)
        network.call_began(request)
        status = 0
        try:
            reply = await self._reply(network, request, receive, send)
            if reply is not None:
                status = reply.status
                reply.headers += network.date_header()
                await _send(reply, send)
        finally:
            network.call_ended(request, self.name, status)

    async def _reply(
        self, network: SandboxNetwork[Any], request: SandboxRequest, receive: Receive, send: Send
    ) -> Reply | None:
        """Return the response, or None if the caller does not get a complete response."""
        request.sink = self.sink(network, request) if self.sink is not None else None
        try:
            body = await _read(receive, request.sink)
        except Refusal as refusal:
            return refusal.reply
        if body is None:
            return None
        request.body = body
        self.world.received(self.network, request)
        fault = network.fault_for(self.name)
        if fault is None:
            return await self._handle(network, request)
        if fault.before is not None:
            await fault.before()
        reply = await self._handle(network, request) if fault.has_effect else None
        playback = FaultPlayback(self.name, network, self.world.closing, self.world.instant_faults, receive, send)
        return await playback.play(fault, reply)

    async def _handle(self, network: SandboxNetwork[Any], request: SandboxRequest) -> Reply:
        try:
            if self.prepare is not None:
                await self.prepare(network, request)
            reply = self.handler(network, request)
        except Refusal as refusal:
            reply = refusal.reply
        return network.responded(self.name, request, reply)


async def _read(receive: Receive, sink: BodySink | None) -> bytes | None:
    """Return the body, which is empty with a sink, or None if the caller disconnected. Raise Refusal for a body that is
    too large, after its end."""
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunk = message.get("body", b"")
        more = message.get("more_body", False)
        if sink is not None:
            sink.write(chunk)
            continue
        size += len(chunk)
        if size <= MAX_BODY_BYTES:
            chunks.append(chunk)
    if size > MAX_BODY_BYTES:
        raise Refusal(Reply(413))
    return b"".join(chunks)


async def _send(reply: Reply, send: Send) -> None:
    headers = [(b"content-length", str(len(reply.body)).encode())] if reply.status != 204 else []
    if reply.content_type:
        headers.append((b"content-type", reply.content_type.encode("latin-1")))
    headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


@dataclass(frozen=True, slots=True)
class FaultPlayback:
    """The effect of a scripted fault on one call: another response, no response, or a broken connection."""

    endpoint: str
    log: CallLog
    closing: ClosingSignal
    instant: bool
    """Raise instead of waiting or cutting."""
    receive: Receive
    send: Send

    async def play(self, fault: Fault, reply: Reply | None) -> Reply | None:
        """Return the response instead of `reply`, or None if the caller does not get a complete response."""
        if self.instant and fault.kind in ("cut", "hang", "trickle"):
            raise ConnectionCut(self.endpoint) if fault.kind == "cut" else Hang(self.endpoint)
        match fault.kind:
            case "answer":
                assert fault.make is not None
                return fault.make()
            case "wait":
                if fault.after is not None:
                    await fault.after()
                return reply
            case "cut":
                await self._cut()
            case "hang":
                self.log.held += 1
                try:
                    await self._hang()
                finally:
                    self.log.held -= 1
                await self._cut()
            case "trickle":
                await self._trickle()
        return None

    async def _hang(self, seconds: float | None = None) -> bool:
        """Wait until the caller disconnects or the world closes (True), or the seconds are over (False)."""
        with self.closing.awaited() as closing:
            waits = [asyncio.ensure_future(closing.wait()), asyncio.ensure_future(self._gone())]
            try:
                done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
        return bool(done)

    async def _trickle(self) -> None:
        headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await self.send({"type": "http.response.body", "body": b" ", "more_body": True})
            if await self._hang(TRICKLE_SECONDS):
                await self._cut()
                return

    async def _cut(self) -> None:
        """Break the connection. ASGI cannot; uvicorn's `receive` belongs to an object with the socket."""
        owner = getattr(self.receive, "__self__", None)
        transport = getattr(owner, "transport", None)
        if transport is None:
            raise ConnectionCut("this server does not give access to its socket")
        if not transport.is_closing():
            transport.abort()
        await self._gone()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


# --- calls from browsers ---------------------------------------------------------------------------------------------

READING = ("GET", "HEAD")


class OwnPagesOnly:
    """Refuses with 403 a request that a page of another site may have sent. `reading` refuses it for reads as well.

    A browser sends requests on behalf of any page, and names the page's site in `Origin`. A site can also give its own
    name the address of this machine. Then `Host` contains that name.

    A name without a dot belongs to this machine or its network, such as `localhost` or a container's name: no site can
    give it an address. Any other name is foreign, unless the sandbox listens on it.
    """

    def __init__(self, app: ASGIApp, *, reading: bool) -> None:
        self._app = app
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wrong = ""
        if self._reading or scope["method"] not in READING:
            wrong = _foreign(Headers(scope=scope), scope["app"].state.world.listens_on)
        if wrong:
            await PlainTextResponse(f"{wrong}\n", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


OWN_FORM = Middleware(OwnPagesOnly, reading=False)
"""For pages that every site may read, with a form that changes something."""
OWN_CONTROL = Middleware(OwnPagesOnly, reading=True)


def _foreign(headers: Headers, listens_on: str) -> str:
    """Return the foreign part of the request, or an empty text."""
    hosts = headers.getlist("host")
    for host in hosts:
        name = _name_in(host)
        if name != listens_on.lower() and not _is_of_this_machine(name):
            return (
                f"Host: {host} is not a name of the sandbox. Use the address that it printed at its start, such as "
                "http://127.0.0.1:8100/."
            )
    own = {f"{scheme}://{host.lower()}" for scheme in ("http", "https") for host in hosts}
    for origin in headers.getlist("origin"):
        if origin.lower() not in own:
            return (
                f"Origin: {origin} is another site, and only the sandbox's own pages may do this. A program leaves "
                "Origin out."
            )
    return ""


def _name_in(host: str) -> str:
    """Return the name in lower case, without the port and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_of_this_machine(name: str) -> bool:
    if "." not in name.rstrip(".") and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True
