"""`endpoint`: the checks of every request before its handler runs, in the order of the contract.

401, 429, 403, 415, the 404 of a path resource, 400, then the handler with its 409. A handler gets an authorized caller,
an existing resource and a valid body. It returns an `Answer`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from starlette.routing import Route

from socialpub import runtime
from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core import actor
from socialpub.core.clock import parse_id
from socialpub.core.errors import FieldError, Forbidden, MethodNotAllowed, NotFound, Unauthorized, UnsupportedMediaType
from socialpub.core.validation import Mistakes
from socialpub.db.connection import Database
from socialpub.publishing.posts import idempotency
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.http import shapes
from socialpub.web.http.answer import JSON, Answer
from socialpub.web.http.request import MAX_BODY_BYTES, Request
from socialpub.web.http.shapes import Query, Shape, read_query

Handler = Callable[..., Awaitable[Answer | None]]
Resource = Callable[[Runtime, Caller, dict[str, str]], Any]
RowCheck = Callable[[Runtime, Caller, Any, Sequence[FieldError]], list[FieldError]]
Replay = Callable[[Runtime, StoredResponse], Answer]

MULTIPART = b"multipart/form-data"
PAYLOAD = "payload"
"""The form field that contains the JSON."""
LARGE_BODY_BYTES = 1 << 16
"""Parsing a body of this size takes milliseconds and would block the event loop."""
AUTHORIZATION_FORM = "Authorization: Bearer <API_KEY>"
UNKNOWN_KEY = "This API key is unknown, expired or revoked."
NO_SUCH_ID = "Nothing with this id exists, or it is outside the scope of this key."
_REPLAYED = (b"idempotency-replayed", b"true")


@dataclass(frozen=True, slots=True)
class FormBody:
    """The multipart form of an endpoint that also accepts JSON.

    `read(rt, request)` returns the form, or None after it has sent an error. The form has a `payload` (its JSON) and
    `fingerprints`. Its `with` removes the files to which no row refers. `shape` is the shape of the payload.
    `handler(rt, caller, request, form)` replaces the handler of the endpoint.
    """

    read: Callable[[Runtime, Request], Awaitable[AbstractContextManager[Any] | None]]
    shape: type[Shape]
    handler: Handler


class BodyRead(NamedTuple):
    """A parsed body. `shape` is None if the body is invalid. `is_text` is false if some text is not valid Unicode."""

    value: Any
    shape: Shape | None
    mistakes: Mistakes
    is_text: bool


@dataclass(slots=True, eq=False)
class Endpoint:
    """A handler and the checks before it. A handler that returns None has sent the response itself."""

    handler: Handler
    scope: str | None = "read"
    """`read`, `write`, or None if no key is needed. `caller` is then None."""
    resource: Resource | None = None
    """Returns `request.resource`: what the path names. None or False if the caller does not see it."""
    body: type[Shape] | None = None
    """The shape of `request.body`. If None, the body is discarded before the handler runs."""
    form: FormBody | None = None
    query: type[Query] | None = None
    """The shape of `request.query`. If None, every parameter is unknown."""
    check_rows: RowCheck | None = None
    """Returns the errors of an invalid body that depend on stored rows and the clock."""
    replay: Replay | None = None
    """Renders a stored response with new signed URLs. If set, the endpoint supports Idempotency-Key."""
    body_optional: bool = False
    """An empty body means an empty object."""
    streams: bool = False
    """The handler reads the body itself."""
    for_restricted: bool = True
    """Whether a key with a daily limit or with approval may use the endpoint (contract 10.3)."""

    async def __call__(self, request: Request) -> Answer | None:
        rt = request.state.rt
        if self.scope is None:
            if not self.streams:
                await request.finish()
            return await self.handler(rt, None, request)
        return await self.run(request, authenticate(request))

    async def run(self, request: Request, caller: Caller) -> Answer | None:
        """Answer a request whose caller is known and whose rate limit is counted, as a tool call inside a request."""
        rt, request.caller = request.state.rt, caller
        if self.scope != "write":
            return await self._answer(rt, caller, request)
        self.check_scope(caller)
        with actor.act_as(actor.key(caller.key_id, caller.name)), runtime.check_writes(partial(_check_key, caller)):
            return await self._answer(rt, caller, request)

    def check_scope(self, caller: Caller) -> None:
        """Raise Forbidden if the key may not use this endpoint."""
        if self.scope == "write" and caller.scope != "write":
            raise Forbidden("This key may only read. Use a key with the write scope.")
        if caller.restricted and not self.for_restricted:
            raise Forbidden("This key has a limit on its posts, so it may not do this. Use a key without such a limit.")

    async def _answer(self, rt: Runtime, caller: Caller, request: Request) -> Answer | None:
        is_form = self.body is not None and self._is_form(request)
        if request.path_params:
            _check_ids(request.path_params)
        if self.resource is not None:
            request.resource = self.resource(rt, caller, request.path_params)
            if not request.resource:
                raise NotFound(NO_SUCH_ID)
        if self.query is not None or request.query_string:
            query = (self.query or Query).for_networks(api_keys.list_extensions(rt, caller))
            request.query = read_query(query, request.query_string)
        if self.body is None:
            if not self.streams:
                await request.finish()
            return await self.handler(rt, caller, request)
        if not is_form:
            body = await request.read()
            if self.body_optional and not body:
                body = b"{}"
            return await self._answer_body(rt, request, self.body, body, partial(self.handler, rt, caller, request))
        assert self.form is not None
        received = await self.form.read(rt, request)
        if received is None:
            return None
        with received as form:
            work = partial(self.form.handler, rt, caller, request, form)
            return await self._answer_body(rt, request, self.form.shape, form.payload, work, form)

    def _is_form(self, request: Request) -> bool:
        content_type = request.content_type
        if request.headers.get(b"content-encoding", b"").strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType("Send the body without compression, and remove the header Content-Encoding.")
        if content_type == JSON or (self.body_optional and not request.has_body):
            return False
        if content_type == MULTIPART and self.form is not None:
            return True
        accepted = "application/json or multipart/form-data" if self.form else "application/json"
        raise UnsupportedMediaType(f"Send the body as {accepted}, and set Content-Type to that type.")

    async def _answer_body(
        self,
        rt: Runtime,
        request: Request,
        shape: type[Shape],
        body: bytes,
        work: Callable[[], Awaitable[Answer | None]],
        form: Any = None,
    ) -> Answer | None:
        """Return the response of `work`, or the stored response of the same Idempotency-Key (contract 1.11)."""
        assert request.caller is not None
        shape = shape.for_networks(api_keys.list_extensions(rt, request.caller))
        is_large = len(body) >= LARGE_BODY_BYTES
        reading = partial(_read, shape, body, None if form is None else PAYLOAD)
        read = await asyncio.to_thread(reading) if is_large else reading()
        check = partial(self._check, rt, request, read, is_form=form is not None)
        if not read.is_text:
            check()
        key = None if self.replay is None else idempotency.read_key(request.headers.get(b"idempotency-key"))
        if key is None or self.replay is None:
            check()
            return await work()
        parts = () if form is None else form.fingerprints
        hashing = partial(idempotency.fingerprint, request.path, read.value, parts)
        fingerprint = await asyncio.to_thread(hashing) if is_large else hashing()
        request_key = RequestKey(request.caller.key_id, key, fingerprint)
        with idempotency.claim(request.state.running_keys, request_key):
            stored = idempotency.find(rt.reader, request_key, rt.now())
            if stored is not None:
                answer = self.replay(rt, stored)
                return answer._replace(headers=(*answer.headers, _REPLAYED))
            # Only after the lookup: an accepted request replays, even if its body would now be refused.
            check()
            request.idempotency_key = request_key
            return await work()

    def _check(self, rt: Runtime, request: Request, read: BodyRead, *, is_form: bool) -> None:
        """Set the body of the request. Raises InvalidRequest with all errors of the shape and the rows.

        Rows are checked here before the expensive check of the files of a form. A write without a form checks rows
        itself, so checking valid bodies here would only take time.
        """
        request.body = read.shape
        mistakes = read.mistakes
        if self.check_rows is not None and (mistakes or is_form):
            assert request.caller is not None
            for error in self.check_rows(rt, request.caller, read.value, mistakes.errors):
                mistakes.add(error)
        if mistakes:
            raise mistakes.refusal(f"The field {PAYLOAD}" if is_form else "The body")


def endpoint(**fields: Any) -> Callable[[Handler], Endpoint]:
    """Make `async def name(rt, caller, request) -> Answer` an endpoint with these fields of `Endpoint`."""
    return partial(Endpoint, **fields)


def write_once(
    rt: Runtime, request: Request, show: Callable[..., StoredResponse], fn: Callable[..., Any], *args: Any
) -> Awaitable[StoredResponse]:
    """Run the write `fn(rt, tx, *args)`. Return `show(rt, tx, result)`, which is stored with an Idempotency-Key."""
    return rt.write_soon(idempotency.respond, request.idempotency_key, show, fn, *args)


def _read(shape: type[Shape], body: bytes, field: str | None) -> BodyRead:
    value, mistakes = shapes.parse_json(body, field)
    is_text = not mistakes
    found, more = shape.read(value)
    if more:
        mistakes.merge(more.errors, more.total)
    return BodyRead(value, found, mistakes, is_text)


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _check_ids(path_params: dict[str, str]) -> None:
    for name, text in path_params.items():
        if _ID.fullmatch(text):
            continue
        if (known := parse_id(text)) is None:
            raise NotFound("This id is not a UUID.")
        path_params[name] = known


# --- the caller ------------------------------------------------------------------------------------------------------


def authenticate(request: Request) -> Caller:
    """Return the caller and count the request. Raises Unauthorized and RateLimited."""
    state = request.state
    if b"authorization" not in request.headers:
        raise unauthorized(f"Send an API key: {AUTHORIZATION_FORM}.")
    caller = find_caller(request)
    if caller is None:
        raise wrong_key(request, _explain_key(request.headers[b"authorization"]))
    request.max_body_bytes = MAX_BODY_BYTES
    state.last_uses.note(caller.key_id)
    request.rate_headers = state.rate_limits.keys.count(caller.key_id)
    return caller


def find_caller(request: Request) -> Caller | None:
    """Return the caller of the request's key without counting the request."""
    scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return api_keys.authenticate(request.state.rt, token.strip().decode("latin-1"))


def authenticate_again(request: Request) -> Caller:
    """Return the caller after a wait during which the key may have ended. Raises Unauthorized."""
    assert request.caller is not None
    rt = request.state.rt
    return _find_valid(rt, rt.reader, rt.stamp(), request.caller)


def _check_key(caller: Caller, rt: Runtime, tx: Database) -> None:
    """Refuse a write of a running request whose key was revoked, has expired or has other limits now."""
    if _find_valid(rt, tx, tx.stamp, caller).limits != caller.limits:
        raise Forbidden("The permissions of this key changed during the request. Send the request again.")


def _find_valid(rt: Runtime, store: Database, now: str, caller: Caller) -> Caller:
    found = api_keys.find_caller(rt, store, now, caller.key_id)
    if found is None:
        raise unauthorized(UNKNOWN_KEY)
    return found


def wrong_key(request: Request, detail: str) -> Unauthorized:
    """Count a wrong key or token for its IP address and return the error. Raises RateLimited."""
    request.state.rate_limits.count_failure(request.client_address)
    return unauthorized(detail)


def unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))


def _explain_key(authorization: bytes) -> str:
    """Return the remedy, without quoting the header, which may contain a key."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.startswith(b"spk_"):
        return f"Put Bearer before the key: {AUTHORIZATION_FORM}."
    if scheme.lower() != b"bearer":
        return f"Send the key with the scheme Bearer: {AUTHORIZATION_FORM}."
    if not token.strip().startswith(b"spk_"):
        return f"An API key begins with spk_. Send only the key after Bearer: {AUTHORIZATION_FORM}."
    return UNKNOWN_KEY


# --- routes ----------------------------------------------------------------------------------------------------------

RequestHandler = Callable[[Request], Awaitable[Answer | None]]
"""An endpoint, or a page of the dashboard."""


class Methods:
    """The handlers of one path by method: an ASGI callable for Starlette's `Route`."""

    def __init__(self, path: str, instead: Mapping[str, str], **by_method: RequestHandler) -> None:
        """`instead` contains hints for methods that this path does not support."""
        self.instead = instead
        self.path = path.replace(":path}", "}")
        self.by_method = by_method
        self._endpoints = dict(by_method)
        if "GET" in by_method:
            self._endpoints.setdefault("HEAD", by_method["GET"])
        self.allow = ", ".join(sorted(self._endpoints))

    async def __call__(self, scope: Any, _receive: Any, _send: Any) -> None:
        request: Request = scope["request"]
        request.route = self.path
        found = self._endpoints.get(request.method)
        if found is None:
            advice = f" {self.instead[request.method]}" if request.method in self.instead else ""
            raise MethodNotAllowed(f"This URL supports {self.allow}.{advice}", headers=(("allow", self.allow),))
        request.path_params = scope.get("path_params", {})
        answer = await found(request)
        if answer is not None:
            await request.answer(answer)


def route(path: str, instead: Mapping[str, str] | None = None, **methods: RequestHandler) -> Route:
    # `Methods` sends the 405, so the route accepts all methods.
    return Route(path, Methods(path, instead or {}, **methods), methods=None)
