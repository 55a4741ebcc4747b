"""One call: read it, apply its scripted fault, handle it, respond.

A handler runs without an await. So a call has its whole effect or none, even if its response is lost.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from socialpub.sandbox.faults import ConnectionCut, Fault, Hang
from socialpub.sandbox.messages import BodyPart, Refusal, Reply, SandboxRequest
from socialpub.sandbox.network import SandboxCall, SandboxNetwork
from socialpub.sandbox.world import World

TRICKLE_SECONDS = 0.2


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
            request.body = await Request(scope, receive).body()
            if request.content_type == "multipart/form-data":
                request.parts = await _read_parts(request)
            self.world.received(self.network, request)
            reply = await self._reply(network, request, receive, send)
            if reply is not None:
                status = reply.status
                await _send(reply.with_headers(network.date_header()), send)
        except ClientDisconnect:
            pass
        finally:
            network.call_ended(request, self.call.name, status)

    async def _reply(
        self, network: SandboxNetwork, request: SandboxRequest, receive: Receive, send: Send
    ) -> Reply | None:
        """Return the response, or None if the caller does not get a complete response."""
        fault = network.fault_for(self.call.name)
        if fault is None:
            return await self._handle(network, request)
        if fault.before is not None:
            await fault.before()
        reply = await self._handle(network, request) if fault.has_effect else None
        if fault.after is not None:
            await fault.after()
        if fault.kind == "wait":
            return reply
        if fault.make is not None:
            return fault.make()
        if self.world.instant_faults:
            raise ConnectionCut if fault.kind == "cut" else Hang
        await _break(fault, network, receive, send)
        return None

    async def _handle(self, network: SandboxNetwork, request: SandboxRequest) -> Reply:
        await network.prepare(self.call.name)
        try:
            network.check_request(request, self.call)
            reply: Reply = getattr(network, self.call.name)(request)
        except Refusal as refusal:
            reply = refusal.reply
        return network.responded(self.call.name, request, reply.with_headers(request.reply_headers))


async def _read_parts(request: SandboxRequest) -> list[BodyPart] | None:
    """Return the parts of a multipart body, or None if it is not well-formed."""

    async def body() -> AsyncGenerator[bytes, None]:
        yield request.body

    try:
        form = await MultiPartParser(Headers(request.headers), body()).parse()
    except MultiPartException:
        return None
    parts = [
        BodyPart(name, value.content_type, await value.read())
        if isinstance(value, UploadFile)
        else BodyPart(name, None, value.encode())
        for name, value in form.multi_items()
    ]
    await form.close()
    return parts


async def _send(reply: Reply, send: Send) -> None:
    headers = [(b"content-length", str(len(reply.body)).encode())] if reply.status != 204 else []
    if reply.content_type:
        headers.append((b"content-type", reply.content_type.encode("latin-1")))
    headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


async def _break(fault: Fault, network: SandboxNetwork, receive: Receive, send: Send) -> None:
    """Cut the connection, or keep it open without a complete response until the caller or the server ends it."""
    if fault.kind == "cut":
        await _cut(receive)
        return
    network.held += 1
    try:
        await (_disconnected(receive) if fault.kind == "hang" else _trickle(receive, send))
    except asyncio.CancelledError:  # the server stops
        await _cut(receive)
    finally:
        network.held -= 1


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
