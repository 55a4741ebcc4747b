"""A caller of the application: complete requests, requests in pieces, and aborted requests."""

import asyncio
import gzip
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

T = TypeVar("T")
Pieces = bytes | Iterable[bytes]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()
    """Every Set-Cookie, of which there may be several."""

    def json(self) -> Any:
        is_compressed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if is_compressed else self.body)

    @property
    def data(self) -> Any:
        return self.json()["data"]

    def paths(self) -> list[list[str | int]]:
        return [item["path"] for item in self.json()["errors"]]


class Gone(Exception):
    """The application detected that the caller disconnected, and sent no response."""


class Caller:
    def __init__(
        self, app: Any, key: str, *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    ) -> None:
        self.app = app
        self.key = key
        self._runner = asyncio.Runner(loop_factory=loop_factory)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(story)

    # --- one request -------------------------------------------------------------------------------------------------

    def ask(self, method: str, url: str, body: Pieces = b"", headers: Mapping[str, str] | None = None) -> Reply:
        return self.run(self.asking(method, url, body, headers))

    async def asking(
        self,
        method: str,
        url: str,
        body: Pieces = b"",
        headers: Mapping[str, str] | None = None,
        *,
        goes_away: bool = False,
        leaves: asyncio.Event | None = None,
        before_last: Callable[[], Coroutine[Any, Any, Any]] | None = None,
    ) -> Reply:
        """`goes_away`: disconnect after the last piece, or once `leaves` is set. `before_last` runs before the last
        piece is sent."""
        pieces = [body] if isinstance(body, bytes) else list(body)
        length = {"content-length": str(len(body))} if isinstance(body, bytes) else {"transfer-encoding": "chunked"}
        parts = urlsplit(url)
        fields = {"host": "testserver", **length, **(headers or {})}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("testserver", 80),
        }
        answered: list[Any] = []
        self.taken = self.taken_before_answer = 0

        async def receive() -> dict[str, Any]:
            if not pieces:
                if not goes_away:
                    await asyncio.Event().wait()  # like a server: nothing arrives until the client disconnects
                elif leaves is not None:
                    await leaves.wait()
                return {"type": "http.disconnect"}
            if len(pieces) == 1 and before_last is not None:
                await before_last()
            piece = pieces.pop(0)
            self.taken += len(piece)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces) or (goes_away and leaves is None)}

        async def send(message: dict[str, Any]) -> None:
            if not answered:
                self.taken_before_answer = self.taken
            answered.append(message)

        await self.app(scope, receive, send)
        if not answered:
            raise Gone
        start, *rest = answered
        replied = {name.decode(): value.decode() for name, value in start["headers"]}
        cookies = tuple(value.decode() for name, value in start["headers"] if name == b"set-cookie")
        return Reply(start["status"], replied, b"".join(message.get("body", b"") for message in rest), cookies)

    # --- the API -----------------------------------------------------------------------------------------------------

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.run(self.posting(path, body, **headers))

    async def posting(self, path: str, body: Any, **headers: str) -> Reply:
        fields = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.asking("POST", f"/api/v1{path}", json.dumps(body).encode(), fields)

    def patch(self, path: str, body: Any) -> Reply:
        fields = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        return self.ask("PATCH", f"/api/v1{path}", json.dumps(body).encode(), fields)

    def get(self, path: str) -> Reply:
        return self.ask("GET", f"/api/v1{path}", headers={"authorization": f"Bearer {self.key}"})

    def reserve(self, data: bytes | int, mime_type: str = "image/png", name: str = "a.png") -> Any:
        size = data if isinstance(data, int) else len(data)
        reply = self.post("/uploads", {"fileName": name, "mimeType": mime_type, "fileSize": size})
        assert reply.status == 201, reply.body
        return reply.data

    def put(self, reservation: Any, data: Pieces, **headers: str) -> Reply:
        return self.run(self.putting(reservation, data, **headers))

    async def putting(self, reservation: Any, data: Pieces, **headers: str) -> Reply:
        fields = {
            **reservation["requiredHeaders"],
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return await self.asking("PUT", reservation["uploadUrl"], data, fields)

    def complete(self, reservation: Any) -> Reply:
        return self.run(self.completing(reservation))

    async def completing(self, reservation: Any) -> Reply:
        return await self.posting("/uploads/complete", {"artifactId": reservation["artifactId"]})

    def send_file(self, data: bytes, mime_type: str = "image/png", name: str = "a.png") -> Any:
        """Reserve and send an upload. Return the reservation."""
        reservation = self.reserve(data, mime_type, name)
        assert self.put(reservation, data).status == 200
        return reservation

    def upload(self, data: bytes, mime_type: str = "image/png", name: str = "a.png") -> Any:
        """Reserve, send and complete an upload. Return the artifact."""
        reservation = self.send_file(data, mime_type, name)
        completed = self.complete(reservation)
        assert completed.status == 200, completed.body
        return completed.data
