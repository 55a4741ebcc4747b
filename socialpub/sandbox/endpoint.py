"""One call: who may send it, read it, apply its scripted fault, handle it, respond.

A handler runs without an await. So a call has its whole effect or none, even if its response is lost.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from socialpub.sandbox.faults import ConnectionCut, Fault, Hang
from socialpub.sandbox.memory import CallLog
from socialpub.sandbox.messages import BodyPart, Refusal, Reply, SandboxRequest, StreamedBody
from socialpub.sandbox.network import NetworkHandler, SandboxNetwork
from socialpub.sandbox.world import World

TRICKLE_SECONDS = 0.2
MAX_BODY_BYTES = 40 * 1024 * 1024
PIECE_BYTES = 1024 * 1024

OpenSink = Callable[[Any, SandboxRequest], StreamedBody]
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
    call: SandboxCall

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
            network.call_ended(request, self.call.name, status)

    async def _reply(
        self, network: SandboxNetwork[Any], request: SandboxRequest, receive: Receive, send: Send
    ) -> Reply | None:
        """Return the response, or None if the caller does not get a complete response."""
        request.sink = self.call.sink(network, request) if self.call.sink is not None else None
        try:
            if request.content_type == "multipart/form-data":
                request.form_parts = await _read_form(request, receive)
            else:
                request.body = await _read(receive, request.sink)
        except Refusal as refusal:
            return refusal.reply
        except ClientDisconnect:
            return None
        self.world.received(self.network, request)
        fault = network.fault_for(self.call.name)
        if fault is None:
            return await self._handle(network, request)
        if fault.before is not None:
            await fault.before()
        reply = await self._handle(network, request) if fault.has_effect else None
        instant = self.world.instant_faults
        return await _play(fault, reply, network, instant=instant, receive=receive, send=send)

    async def _handle(self, network: SandboxNetwork[Any], request: SandboxRequest) -> Reply:
        try:
            if self.call.prepare is not None:
                await self.call.prepare(network, request)
            reply = self.call.handler(network, request)
        except Refusal as refusal:
            reply = refusal.reply
        return network.responded(self.call.name, request, reply)


async def _read(receive: Receive, sink: StreamedBody | None) -> bytes:
    """Return the body, which is empty with a sink. Raise Refusal for a body that is too large, after its end."""
    pieces: list[bytes] = []
    size = 0
    async for piece in _pieces(receive):
        if sink is not None:
            sink.write(piece)
        elif (size := size + len(piece)) <= MAX_BODY_BYTES:
            pieces.append(piece)
    if size > MAX_BODY_BYTES:
        raise Refusal(Reply(413))
    return b"".join(pieces)


async def _pieces(receive: Receive) -> AsyncGenerator[bytes, None]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _read_form(request: SandboxRequest, receive: Receive) -> list[BodyPart] | None:
    """Return the parts of a multipart body, or None if it is not well-formed."""
    pieces = _pieces(receive)
    try:
        form = await MultiPartParser(Headers(request.headers), pieces).parse()
    except MultiPartException:
        async for _ in pieces:
            pass
        return None
    parts = []
    for name, value in form.multi_items():
        part = BodyPart(name, value.content_type if isinstance(value, UploadFile) else None)
        if isinstance(value, UploadFile):
            while piece := await value.read(PIECE_BYTES):
                part.body.write(piece)
        else:
            part.body.write(value.encode())
        parts.append(part)
    await form.close()
    return parts


async def _send(reply: Reply, send: Send) -> None:
    headers = [(b"content-length", str(len(reply.body)).encode())] if reply.status != 204 else []
    if reply.content_type:
        headers.append((b"content-type", reply.content_type.encode("latin-1")))
    headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


async def _play(
    fault: Fault, reply: Reply | None, log: CallLog, *, instant: bool, receive: Receive, send: Send
) -> Reply | None:
    """Return the response instead of `reply`, or None if the caller does not get a complete response. `instant`: raise
    instead of waiting or cutting."""
    if instant and fault.kind in ("cut", "hang", "trickle"):
        raise ConnectionCut if fault.kind == "cut" else Hang
    match fault.kind:
        case "answer":
            assert fault.make is not None
            return fault.make()
        case "wait":
            if fault.after is not None:
                await fault.after()
            return reply
        case "hang":
            log.held += 1
            try:
                await _disconnected(receive)
            except asyncio.CancelledError:  # the server stops
                await _cut(receive)
            finally:
                log.held -= 1
        case "trickle":
            try:
                await _trickle(receive, send)
            except asyncio.CancelledError:
                await _cut(receive)
        case "cut":
            await _cut(receive)
    return None


async def _trickle(receive: Receive, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    gone = asyncio.ensure_future(_disconnected(receive))
    while not gone.done():
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        await asyncio.wait([gone], timeout=TRICKLE_SECONDS)


async def _cut(receive: Receive) -> None:
    """Break the connection. ASGI cannot; uvicorn's `receive` belongs to an object with the socket."""
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
    await _disconnected(receive)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
