"""`endpoint`: the checks of every request before its handler runs, in the order of the contract.

401, 429, 403, 415, the 404 of a path resource, 400, then the handler with its 409. A handler gets an authorized caller,
an existing resource (`request.state.resource`), a valid body and a valid query. `public` is for URLs without a key.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, cast

from starlette.requests import Request
from starlette.responses import Response

from socialpub import runtime
from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core import actor
from socialpub.core.clock import parse_id
from socialpub.core.errors import FieldError, Forbidden, NotFound, Unauthorized, UnsupportedMediaType
from socialpub.core.validation import Mistakes
from socialpub.db.connection import Database
from socialpub.publishing.posts import idempotency
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.http import client_address, limits, shapes
from socialpub.web.http.limits import MAX_BODY_BYTES
from socialpub.web.http.responses import JSON
from socialpub.web.http.shapes import Query, Shape, read_query
from socialpub.web.http.state import WebState

Handler = Callable[[Runtime, Caller, Request], Awaitable[Response]]
PublicHandler = Callable[[Runtime, Request], Awaitable[Response]]
Resource = Callable[[Runtime, Caller, dict[str, str]], Any]
RowCheck = Callable[[Runtime, Caller, Any, Sequence[FieldError]], list[FieldError]]
Replay = Callable[[Runtime, StoredResponse], Response]

MULTIPART = "multipart/form-data"
PAYLOAD = "payload"
"""The form field that contains the JSON."""
LARGE_BODY_BYTES = 1 << 16
"""Parsing a body of this size takes milliseconds and would block the event loop."""
AUTHORIZATION_FORM = "Authorization: Bearer <API_KEY>"
UNKNOWN_KEY = "This API key is unknown, expired or revoked."
NO_SUCH_ID = "Nothing with this id exists, or it is outside the scope of this key."


@dataclass(frozen=True, slots=True)
class FormBody:
    """The multipart form of an endpoint that also accepts JSON.

    `read(rt, request)` returns the form. It has a `payload` (its JSON) and `fingerprints`. Its `with` removes the files
    to which no row refers. `shape` is the shape of the payload. `handler(rt, caller, request, form)` replaces the
    handler of the endpoint.
    """

    read: Callable[[Runtime, Request], Awaitable[AbstractContextManager[Any]]]
    shape: type[Shape]
    handler: Callable[..., Awaitable[Response]]


class BodyRead(NamedTuple):
    """A parsed body. `shape` is None if the body is invalid."""

    value: Any
    shape: Shape | None
    mistakes: Mistakes


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """A handler and the checks before it."""

    handler: Handler
    scope: str = "read"
    """`read` or `write`."""
    resource: Resource | None = None
    """Returns `request.state.resource`: what the path names. None or False if the caller does not see it."""
    body: type[Shape] | None = None
    """The shape of `request.state.body`. If None, the body is discarded before the handler runs."""
    form: FormBody | None = None
    query: type[Query] | None = None
    """The shape of `request.state.query`. If None, every parameter is unknown."""
    check_rows: RowCheck | None = None
    """Returns the errors of an invalid body that depend on stored rows and the clock."""
    replay: Replay | None = None
    """Renders a stored response with new signed URLs. If set, the endpoint supports Idempotency-Key."""
    body_optional: bool = False
    """An empty body means an empty object."""
    for_restricted: bool = True
    """Whether a key with a daily limit or with approval may use the endpoint (contract 10.3)."""

    async def run(self, request: Request, caller: Caller) -> Response:
        """Answer a request whose caller is known and whose rate limit is counted, as a tool call inside a request."""
        self.check_scope(caller)
        if self.scope == "read":
            return await self._respond(request, caller)
        with actor.act_as(actor.key(caller.key_id, caller.name)), runtime.check_writes(partial(_check_key, caller)):
            return await self._respond(request, caller)

    async def _respond(self, request: Request, caller: Caller) -> Response:
        rt: Runtime = request.app.state.rt
        state = request.state
        state.caller = caller
        is_form = self.body is not None and self._is_form(request)
        _check_ids(request.path_params)
        if self.resource is not None:
            state.resource = self.resource(rt, caller, request.path_params)
            if not state.resource:
                raise NotFound(NO_SUCH_ID)
        extensions = api_keys.list_extensions(rt, caller)
        query_string = request.scope["query_string"]
        if self.query is not None or query_string:
            state.query = read_query((self.query or Query).for_networks(extensions), query_string)
        if self.body is None:
            await limits.discard(request)
            return await self.handler(rt, caller, request)
        if not is_form:
            body = await request.body() or (b"{}" if self.body_optional else b"")
            handle = partial(self.handler, rt, caller, request)
            return await self._respond_to_body(request, self.body.for_networks(extensions), body, handle)
        assert self.form is not None
        with await self.form.read(rt, request) as form:
            handle = partial(self.form.handler, rt, caller, request, form)
            shape = self.form.shape.for_networks(extensions)
            return await self._respond_to_body(request, shape, form.payload, handle, form)

    def check_scope(self, caller: Caller) -> None:
        """Raise Forbidden if the key may not use this endpoint."""
        if self.scope == "write" and caller.scope != "write":
            raise Forbidden("This key may only read. Use a key with the write scope.")
        if not self.for_restricted and caller.restricted:
            raise Forbidden("This key has a limit on its posts, so it may not do this. Use a key without such a limit.")

    def _is_form(self, request: Request) -> bool:
        if request.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
            raise UnsupportedMediaType("Send the body without compression, and remove the header Content-Encoding.")
        media_type = content_type(request)
        has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
        if media_type == JSON or (self.body_optional and not has_body):
            return False
        if media_type == MULTIPART and self.form is not None:
            return True
        accepted = "application/json or multipart/form-data" if self.form else "application/json"
        raise UnsupportedMediaType(f"Send the body as {accepted}, and set Content-Type to that type.")

    async def _respond_to_body(
        self,
        request: Request,
        shape: type[Shape],
        body: bytes,
        handle: Callable[[], Awaitable[Response]],
        form: Any = None,
    ) -> Response:
        """Return the response of `handle`, or the stored response of the same Idempotency-Key (contract 1.11)."""
        state: WebState = request.app.state
        request.state.idempotency_key = None
        is_large = len(body) >= LARGE_BODY_BYTES
        reading = partial(_read, shape, body, None if form is None else PAYLOAD)
        read = await asyncio.to_thread(reading) if is_large else reading()
        check = partial(self._check, request, read, is_form=form is not None)
        header = request.headers.get("idempotency-key")
        key = None if self.replay is None or header is None else idempotency.read_key(header.encode("latin-1"))
        if key is None or self.replay is None:
            check()
            return await handle()
        parts = () if form is None else form.fingerprints
        hashing = partial(idempotency.fingerprint, request.scope["path"], read.value, parts)
        fingerprint = await asyncio.to_thread(hashing) if is_large else hashing()
        request_key = RequestKey(request.state.caller.key_id, key, fingerprint)
        with idempotency.claim(state.running_keys, request_key):
            stored = idempotency.find(state.rt.db, request_key, state.rt.now())
            if stored is not None:
                response = self.replay(state.rt, stored)
                response.headers["idempotency-replayed"] = "true"
                return response
            # Only after the lookup: an accepted request replays, even if its body would now be refused.
            check()
            request.state.idempotency_key = request_key
            return await handle()

    def _check(self, request: Request, read: BodyRead, *, is_form: bool) -> None:
        """Set the body of the request. Raises InvalidRequest with all errors of the shape and the rows.

        Rows are checked here before the expensive check of the files of a form. A write without a form checks rows
        itself, so checking valid bodies here would only take time.
        """
        request.state.body = read.shape
        mistakes = read.mistakes
        if self.check_rows is not None and (mistakes or is_form):
            for error in self.check_rows(request.app.state.rt, request.state.caller, read.value, mistakes.errors):
                mistakes.add(error)
        if mistakes:
            raise mistakes.refusal(f"The field {PAYLOAD}" if is_form else "The body")


class EndpointFunction(Protocol):
    """A function for Starlette's `Route`, with its checks for the OpenAPI document and for the tools of agents."""

    endpoint: Endpoint

    def __call__(self, request: Request) -> Awaitable[Response]: ...


def endpoint(**fields: Any) -> Callable[[Handler], EndpointFunction]:
    """Make `async def name(rt, caller, request) -> Response` an endpoint with these fields of `Endpoint`."""

    def decorate(handler: Handler) -> EndpointFunction:
        target = Endpoint(handler, **fields)

        @wraps(handler)
        async def respond(request: Request) -> Response:
            return await target.run(request, authenticate(request))

        decorated = cast("EndpointFunction", respond)
        decorated.endpoint = target
        return decorated

    return decorate


def public(handler: PublicHandler) -> Callable[[Request], Awaitable[Response]]:
    """Make `async def name(rt, request) -> Response` a handler that needs no key and does not read the body."""

    @wraps(handler)
    async def respond(request: Request) -> Response:
        await limits.discard(request)
        return await handler(request.app.state.rt, request)

    return respond


def write_once(
    rt: Runtime, request: Request, show: Callable[..., StoredResponse], fn: Callable[..., Any], *args: Any
) -> Awaitable[StoredResponse]:
    """Run the write `fn(rt, tx, *args)`. Return `show(rt, tx, result)`, which is stored with an Idempotency-Key.

    A canceled request may leave a write in the queue. Its repeat then returns the response of that write.
    """
    request_key: RequestKey | None = request.state.idempotency_key

    def respond(rt: Runtime, tx: Database) -> StoredResponse:
        if request_key is not None and (stored := idempotency.find(tx, request_key, tx.now)) is not None:
            return stored
        response = show(rt, tx, fn(rt, tx, *args))
        if request_key is not None:
            idempotency.store(tx, request_key, response)
        return response

    return rt.write_soon(respond)


def _read(shape: type[Shape], body: bytes, field: str | None) -> BodyRead:
    value, mistakes = shapes.parse_json(body, field)
    parsed, more = shape.read(value)
    if more:
        mistakes.merge(more.errors, more.total)
    return BodyRead(value, parsed, mistakes)


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _check_ids(path_params: dict[str, str]) -> None:
    for name, text in path_params.items():
        if _ID.fullmatch(text):
            continue
        if (parsed_id := parse_id(text)) is None:
            raise NotFound("This id is not a UUID.")
        path_params[name] = parsed_id


# --- the request ------------------------------------------------------------------------------------------------------


def content_type(request: Request) -> str:
    """Return the media type in lower case without parameters. Empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


# --- the caller ------------------------------------------------------------------------------------------------------


def authenticate(request: Request) -> Caller:
    """Return the caller and count the request. Raises Unauthorized and RateLimited."""
    state: WebState = request.app.state
    authorization = request.headers.get("authorization")
    if authorization is None:
        raise unauthorized(f"Send an API key: {AUTHORIZATION_FORM}.")
    caller = find_caller(request)
    if caller is None:
        raise wrong_key(request, _explain_key(authorization))
    about = request.state
    about.body_limits.max_bytes = MAX_BODY_BYTES
    state.last_uses.note(caller.key_id)
    about.rate_headers = state.rate_limits.keys.count(caller.key_id)
    return caller


def find_caller(request: Request) -> Caller | None:
    """Return the caller of the request's key without counting the request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return api_keys.authenticate(request.app.state.rt, token.strip()) if scheme.lower() == "bearer" else None


def authenticate_again(request: Request) -> Caller:
    """Return the caller after a wait during which the key may have ended. Raises Unauthorized."""
    rt: Runtime = request.app.state.rt
    caller = api_keys.find_caller(rt, rt.db, rt.stamp(), request.state.caller.key_id)
    if caller is None:
        raise unauthorized(UNKNOWN_KEY)
    return caller


def _check_key(caller: Caller, rt: Runtime, tx: Database) -> None:
    """Refuse a write of a running request whose key was revoked, has expired or has other limits now."""
    present = api_keys.find_caller(rt, tx, tx.stamp, caller.key_id)
    if present is None:
        raise unauthorized(UNKNOWN_KEY)
    if present != caller:
        raise Forbidden("The permissions of this key changed during the request. Send the request again.")


def wrong_key(request: Request, detail: str) -> Unauthorized:
    """Count a wrong key or token for its IP address and return the error. Raises RateLimited."""
    request.app.state.rate_limits.count_failure(client_address.of_request(request))
    return unauthorized(detail)


def unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))


def _explain_key(authorization: str) -> str:
    """Return the remedy, without quoting the header, which may contain a key."""
    scheme, _, token = authorization.partition(" ")
    if scheme.startswith("spk_"):
        return f"Put Bearer before the key: {AUTHORIZATION_FORM}."
    if scheme.lower() != "bearer":
        return f"Send the key with the scheme Bearer: {AUTHORIZATION_FORM}."
    if not token.strip().startswith("spk_"):
        return f"An API key begins with spk_. Send only the key after Bearer: {AUTHORIZATION_FORM}."
    return UNKNOWN_KEY
