"""The way of every call: read it, meet what is scripted, do it, answer.

A handler runs without an await, so a call either had its whole effect or none, whatever happens to its answer.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.faults import ConnectionCut, Fault, Hang
from socialpub.sandbox.inflow import Sink
from socialpub.sandbox.network import Network
from socialpub.sandbox.world import World

MAX_BODY_BYTES = 40 * 1024 * 1024
TRICKLE_SECONDS = 0.2

Handler = Callable[[Any, Call], Answer]
OpenSink = Callable[[Any, Call], Sink]
"""Makes what a body flows into, from the headers alone; its call keeps no body."""
Errand = Callable[[Any, Call], Awaitable[None]]
"""What has to be fetched from elsewhere before the handler can run; changes nothing that a reader sees."""


class Endpoint:
    """One endpoint of one network as an ASGI application."""

    def __init__(
        self,
        world: World,
        network: str,
        name: str,
        handler: Handler,
        sink: OpenSink | None = None,
        errand: Errand | None = None,
    ) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.handler = handler
        self.sink = sink
        self.errand = errand

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        network = self.world.networks[self.network]
        call = Call.begin(scope)
        token = network.tokens.bearer(call.bearer)
        account_id = token.account_id if token is not None else ""
        network.began(account_id)
        status = 0
        try:
            answer = await self._answer(network, call, receive, send)
            if answer is not None:
                status = answer.status
                await _send(answer, send)
        finally:
            network.ended(account_id, self.name, status)

    async def _answer(self, network: Network, call: Call, receive: Receive, send: Send) -> Answer | None:
        """None: the caller gets no whole answer."""
        call.sink = self.sink(network, call) if self.sink is not None else None
        try:
            body = await _read(receive, call.sink)
        except Refusal as refusal:
            return refusal.answer
        if body is None:
            return None
        call.body = body
        self.world.note(self.network, call)
        fault = network.fault_for(self.name)
        if fault is None:
            return await self._do(network, call)
        if fault.kind == "block" and not fault.after_effect:
            await _wait_for(fault.event)
        answer = await self._do(network, call) if fault.after_effect or fault.kind == "block" else None
        return await self._spoil(fault, answer, receive, send)

    async def _do(self, network: Network, call: Call) -> Answer:
        try:
            if self.errand is not None:
                await self.errand(network, call)
            return self.handler(network, call)
        except Refusal as refusal:
            return refusal.answer

    async def _spoil(self, fault: Fault, answer: Answer | None, receive: Receive, send: Send) -> Answer | None:
        match fault.kind:
            case "answer":
                assert fault.make is not None
                return fault.make()
            case "block":
                if fault.after_effect:
                    await _wait_for(fault.event)
                return answer
            case "cut":
                if self.world.instant_faults:
                    raise ConnectionCut(self.name)
                await _cut(receive)
            case "hang":
                if self.world.instant_faults:
                    raise Hang(self.name)
                network = self.world.networks[self.network]
                network.held += 1
                try:
                    await self._hang(receive)
                finally:
                    network.held -= 1
                await _cut(receive)
            case "trickle":
                if self.world.instant_faults:
                    raise Hang(self.name)
                await self._trickle(receive, send)
        return None

    async def _hang(self, receive: Receive, seconds: float | None = None) -> bool:
        """Until the caller goes away or the world closes (True), or the seconds are over (False)."""
        closing = self.world.closing_event()
        waits = [asyncio.ensure_future(closing.wait()), asyncio.ensure_future(_gone(receive))]
        try:
            done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            self.world.forget_closing_event(closing)
        return bool(done)

    async def _trickle(self, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            if await self._hang(receive, TRICKLE_SECONDS):
                await _cut(receive)
                return


async def _read(receive: Receive, sink: Sink | None) -> bytes | None:
    """The whole body (nothing of it when it flows into a sink); None when the caller went away, `Refusal` when it is
    too large (it is read to its end)."""
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
        raise Refusal(Answer(413))
    return b"".join(chunks)


async def _send(answer: Answer, send: Send) -> None:
    headers = [(b"content-length", str(len(answer.body)).encode())] if answer.status != 204 else []
    if answer.content_type:
        headers.append((b"content-type", answer.content_type.encode("latin-1")))
    headers.extend((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_for(event: Any) -> None:
    if inspect.iscoroutinefunction(event.wait):
        await event.wait()
    else:
        await asyncio.get_running_loop().run_in_executor(None, event.wait)


async def _cut(receive: Receive) -> None:
    """Break the connection. ASGI has no word for it; uvicorn's `receive` belongs to an object that holds the socket."""
    owner = getattr(receive, "__self__", None)
    transport = getattr(owner, "transport", None)
    if transport is None:
        raise ConnectionCut("this server does not let go of its socket")
    if not transport.is_closing():
        transport.abort()
    await _gone(receive)
