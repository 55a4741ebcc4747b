"""What a scripted fault does to one call: another answer, none, a broken connection, one that trickles."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Send

from socialpub.sandbox.call_log import CallLog
from socialpub.sandbox.closing import ClosingSignal
from socialpub.sandbox.faults import ConnectionCut, Fault, Hang
from socialpub.sandbox.reply import Reply

TRICKLE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class FaultPlayback:
    endpoint: str
    log: CallLog
    closing: ClosingSignal
    instant: bool
    """Raise instead of waiting or cutting."""
    receive: Receive
    send: Send

    async def play(self, fault: Fault, reply: Reply | None) -> Reply | None:
        """What the caller gets instead of `reply`; None: no whole answer."""
        match fault.kind:
            case "answer":
                assert fault.make is not None
                return fault.make()
            case "block":
                if fault.after_effect:
                    await wait_for(fault.event)
                return reply
            case "cut":
                if self.instant:
                    raise ConnectionCut(self.endpoint)
                await self._cut()
            case "hang":
                if self.instant:
                    raise Hang(self.endpoint)
                self.log.held += 1
                try:
                    await self._hang()
                finally:
                    self.log.held -= 1
                await self._cut()
            case "trickle":
                if self.instant:
                    raise Hang(self.endpoint)
                await self._trickle()
        return None

    async def _hang(self, seconds: float | None = None) -> bool:
        """Until the caller goes away or the world closes (True), or the seconds are over (False)."""
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
        """Break the connection. ASGI has no word for it; uvicorn's `receive` belongs to an object with the socket."""
        owner = getattr(self.receive, "__self__", None)
        transport = getattr(owner, "transport", None)
        if transport is None:
            raise ConnectionCut("this server does not let go of its socket")
        if not transport.is_closing():
            transport.abort()
        await self._gone()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


async def wait_for(event: Any) -> None:
    """A `threading.Event` is waited for on another thread, one of the event loop on this."""
    if inspect.iscoroutinefunction(event.wait):
        await event.wait()
    else:
        await asyncio.get_running_loop().run_in_executor(None, event.wait)
