"""The sandbox without a socket: an ASGI app as a transport, whose scripted faults look like those of a real network."""

import httpx2

FAULTS: dict[str, type[httpx2.TransportError]] = {
    "ConnectionCut": httpx2.RemoteProtocolError,
    "Hang": httpx2.ReadTimeout,
}
"""By the name of the exception that the app raises, so that this file needs nothing of the app."""


class SandboxTransport(httpx2.AsyncBaseTransport):
    def __init__(self, app: object) -> None:
        self._inner = httpx2.ASGITransport(app)  # type: ignore[arg-type]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._inner.handle_async_request(request)
        except Exception as error:
            meant = next((FAULTS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in FAULTS), None)
            if meant is None:
                raise
            raise meant(type(error).__name__, request=request) from error
