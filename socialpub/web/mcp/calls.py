"""One call of a tool: requests to the API inside a request, with the same checks, counted once (contract 10.4.5)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.references import Profile, UnknownReference, find_profile
from socialpub.core.validation import Path
from socialpub.runtime import Runtime
from socialpub.web.api import profiles
from socialpub.web.http.endpoint import LARGE_BODY_BYTES, EndpointFunction
from socialpub.web.http.long_poll import wait_for_disconnect
from socialpub.web.http.responses import JSON

API = "/api/v1"
FETCH_SECONDS = 45.0
"""The time for media by URL. Clients give up after 60 seconds."""

_PLACES: Mapping[Path, Path] = {
    ("post", "body"): ("text",),
    ("post", "scheduledAt"): ("scheduledAt",),
    ("providerOptions",): ("options",),
    ("Idempotency-Key",): ("idempotencyKey",),
}
"""By path in a request of the API: the path in the arguments."""


class ToolCall:
    """The caller and the arguments of one call, and the requests that it makes."""

    def __init__(self, rt: Runtime, caller: Caller, request: Request, arguments: Mapping[str, Any]) -> None:
        """`arguments` fit the shape of the tool."""
        self.rt = rt
        self.caller = caller
        self.arguments = arguments
        self.places = dict(_PLACES)
        self._outer = request

    @property
    def elapsed_seconds(self) -> float:
        started_at: float = self._outer.state.started_at
        return self.rt.clock.monotonic() - started_at

    async def run(
        self,
        operation: EndpointFunction,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        **ids: str,
    ) -> dict[str, Any]:
        """Return the response of this operation. `path` is below /api/v1. Raises SocialpubError."""
        headers = []
        content = b"" if body is None else orjson.dumps(body)
        if content:
            headers += [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(content))]
        if idempotency_key is not None:
            headers.append((b"idempotency-key", idempotency_key.encode()))
        scope = {
            "type": "http",
            "app": self._outer.app,
            "method": method,
            "path": API + path.format_map(ids),
            "path_params": dict(ids),
            "query_string": urlencode(query or {}).encode(),
            "headers": headers,
            "state": {
                "id": self._outer.state.id,
                "body_limits": self._outer.state.body_limits,
                "fetch_seconds": FETCH_SECONDS,
            },
        }
        pending = [content]

        async def receive() -> Message:
            if pending:
                return {"type": "http.request", "body": pending.pop(), "more_body": False}
            await wait_for_disconnect(self._outer)
            return {"type": "http.disconnect"}

        try:
            response = await operation.endpoint.run(Request(scope, receive), self.caller)
        except InvalidRequest as error:
            raise self._in_arguments(error) from error
        shown = await _read(response)
        parsed: dict[str, Any] = (
            await asyncio.to_thread(orjson.loads, shown) if len(shown) >= LARGE_BODY_BYTES else orjson.loads(shown)
        )
        return parsed

    async def find_profiles(self, references: Mapping[Path, str]) -> list[Profile]:
        """Return the profiles that the references name, by their path. Raises InvalidRequest with every unclear one."""
        listed = (await self.run(profiles.index, "GET", "/profiles"))["data"]
        # A hundred references to hundreds of accounts would block the event loop.
        return await asyncio.to_thread(_find_all, references, listed)

    # --- paths of errors ---------------------------------------------------------------------------------------------

    def place(self, path: Path) -> Path:
        """Return the path in the arguments for a path in a request of the API."""
        for length in (3, 2, 1):
            if path[:length] in self.places:
                return (*self.places[path[:length]], *path[length:])
        return path

    def _in_arguments(self, error: InvalidRequest) -> InvalidRequest:
        """Return the error with the names of the arguments, which are all that the caller knows."""
        moved = [
            FieldError(self.place(field_error.path), field_error.message, field_error.code)
            for field_error in error.errors
        ]
        if [field_error.path for field_error in moved] == [field_error.path for field_error in error.errors]:
            return error
        return InvalidRequest.from_errors(moved, error.total)


async def _read(response: Response) -> bytes:
    if isinstance(response, StreamingResponse):
        return b"".join([bytes(piece) async for piece in response.body_iterator if not isinstance(piece, str)])
    return bytes(response.body)


def _find_all(references: Mapping[Path, str], known: Sequence[Profile]) -> list[Profile]:
    profiles_found: list[Profile] = []
    errors: list[FieldError] = []
    for path, reference in references.items():
        try:
            profiles_found.append(find_profile(reference, known))
        except UnknownReference as unknown:
            errors.append(FieldError(path, str(unknown)))
    if errors:
        raise InvalidRequest.from_errors(errors)
    return profiles_found
