"""`endpoint`: what happens to every request before its handler, in the order that the contract names."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from starlette.routing import Route

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core import actor, ids
from socialpub.core.errors import FieldError, Forbidden, MethodNotAllowed, NotFound, Unauthorized, UnsupportedMediaType
from socialpub.core.validation import Mistakes
from socialpub.publishing.posts import idempotency
from socialpub.runtime import Runtime
from socialpub.web.http import idempotent, shapes
from socialpub.web.http.answer import JSON, Answer
from socialpub.web.http.idempotent import Replay
from socialpub.web.http.request import MAX_BODY_BYTES, Request
from socialpub.web.http.shapes import Query, Shape, read_query

# MERGED from web/authentication.py: Whose API key a request carries; wrong keys are counted by address, right ones

AUTHORIZATION_FORM = "Authorization: Bearer <API_KEY>"
UNKNOWN_KEY = "This API key is not known, has expired or was revoked."


def authenticate(request: Request) -> Caller:
    """Returns who calls. Raises Unauthorized and RateLimited."""
    state = request.state
    if b"authorization" not in request.headers:
        raise unauthorized(f"Send an API key: {AUTHORIZATION_FORM}.")
    caller = find_caller(request)
    if caller is None:
        raise wrong_key(request, _what_is_wrong(request.headers[b"authorization"]))
    request.most_body_bytes = MAX_BODY_BYTES
    state.last_uses.note(caller.key_id)
    request.rate_headers = state.rate_limits.count(caller.key_id)
    return caller


def find_caller(request: Request) -> Caller | None:
    """Return the caller whose key the request carries, and count nothing."""
    scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return api_keys.authenticate(request.state.rt.reader, token.strip().decode("latin-1"), request.state.rt.clock.now())


def _what_is_wrong(authorization: bytes) -> str:
    """Return what to change. The detail repeats nothing of the header, which may be a key."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.startswith(b"spk_"):
        return f"Put Bearer before the key: {AUTHORIZATION_FORM}."
    if scheme.lower() != b"bearer":
        return f"Send the key with the scheme Bearer: {AUTHORIZATION_FORM}."
    if not token.strip().startswith(b"spk_"):
        return f"An API key begins with spk_. Put the key alone behind Bearer: {AUTHORIZATION_FORM}."
    return UNKNOWN_KEY


def authenticate_again(request: Request) -> Caller:
    """Who calls, after a wait in which the key may have ended. Raises Unauthorized."""
    rt = request.state.rt
    assert request.caller is not None
    caller = api_keys.find_caller(rt.reader, request.caller.key_id, rt.now())
    if caller is None:
        raise unauthorized(UNKNOWN_KEY)
    return caller


def wrong_key(request: Request, detail: str) -> Unauthorized:
    """The refusal of a wrong key or token, counted for the address it comes from. Raises RateLimited instead."""
    request.state.rate_limits.count_failure(request.client_address)
    return unauthorized(detail)


def unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))


# MERGED from web/endpoint.py: `endpoint`: what happens to every request before its handler, in the order that the

Handler = Callable[..., Awaitable[Answer | None]]
Resource = Callable[[Runtime, Caller, dict[str, str]], bool]
RowCheck = Callable[[Runtime, Caller, Any, Sequence[FieldError]], list[FieldError]]

MULTIPART = b"multipart/form-data"
PAYLOAD = "payload"
"""The field of a form that holds the JSON."""
LARGE_BODY_BYTES = 1 << 16
"""From here on reading a body takes milliseconds: not on the event loop."""


class ReceivedForm(Protocol):
    """A form that has arrived; files of it that nobody keeps are gone after the `with`."""

    @property
    def payload(self) -> bytes: ...

    @property
    def fingerprints(self) -> Sequence[tuple[str, str, str]]: ...


@dataclass(frozen=True, slots=True)
class FormBody:
    """The body of an endpoint when it comes as a multipart form instead of as JSON.

    `read(rt, request)` receives the form, or returns None when it has refused it itself; `shape` is that of the form's
    payload; `handler(rt, caller, request, form)` takes the place of the endpoint's own.
    """

    read: Callable[[Runtime, Request], Awaitable[AbstractContextManager[ReceivedForm] | None]]
    shape: type[Shape]
    handler: Handler


class BodyRead(NamedTuple):
    """A body once it was read. `shape` is None when it has not the shape that is wanted; `is_text` is false when some
    of its text cannot be compared, being no Unicode."""

    value: Any
    shape: Shape | None
    mistakes: Mistakes
    is_text: bool


class Endpoint:
    """A handler with everything that stands before it."""

    def __init__(
        self,
        handler: Handler,
        *,
        scope: str | None,
        resource: Resource | None,
        body: type[Shape] | None,
        form: FormBody | None,
        query: type[Query] | None,
        check_rows: RowCheck | None,
        replay: Replay | None,
        body_optional: bool,
        streams: bool,
    ) -> None:
        self.handler = handler
        self.scope = scope
        self.resource = resource
        self.body = body
        self.body_optional = body_optional
        self.streams = streams
        self.form = form
        self.query = query
        self.check_rows = check_rows
        self.replay = replay
        self.__name__: str = getattr(handler, "__name__", "endpoint")
        self.__doc__ = handler.__doc__

    async def __call__(self, request: Request) -> Answer | None:
        rt = request.state.rt
        if self.scope is None:
            if not self.streams:
                await request.finish()
            return await self.handler(rt, None, request)
        caller = request.caller = authenticate(request)
        if self.scope != "write":
            return await self._answer(rt, caller, request)
        if caller.scope != "write":
            raise Forbidden("This key may only read. Use one with the scope write.")
        with actor.act_as(actor.key(caller.key_id, caller.name)):
            return await self._answer(rt, caller, request)

    async def _answer(self, rt: Runtime, caller: Caller, request: Request) -> Answer | None:
        is_form = self.body is not None and self._is_form(request)
        if request.path_params:
            _check_ids(request.path_params)
        if self.resource is not None and not self.resource(rt, caller, request.path_params):
            raise NotFound("Nothing here has this id, or it is outside of this key's scope.")
        if self.query is not None or request.query_string:
            request.query = read_query(self.query or Query, request.query_string)
        if self.body is None:
            await request.finish()
            return await self.handler(rt, caller, request)
        if is_form:
            return await self._handle_form(rt, caller, request)
        body = await request.read()
        if self.body_optional and not body:
            body = b"{}"
        return await self._handle_body(rt, caller, request, self.body, body, lambda: self.handler(rt, caller, request))

    async def _handle_form(self, rt: Runtime, caller: Caller, request: Request) -> Answer | None:
        assert self.form is not None
        handler, shape = self.form.handler, self.form.shape
        received = await self.form.read(rt, request)
        if received is None:
            return None
        with received as form:
            return await self._handle_body(
                rt, caller, request, shape, form.payload, lambda: handler(rt, caller, request, form), form
            )

    async def _handle_body(
        self,
        rt: Runtime,
        caller: Caller,
        request: Request,
        shape: type[Shape],
        body: bytes,
        work: Callable[[], Awaitable[Answer | None]],
        form: ReceivedForm | None = None,
    ) -> Answer | None:
        field = None if form is None else PAYLOAD
        is_large = len(body) >= LARGE_BODY_BYTES
        read = await asyncio.to_thread(_read, shape, body, field) if is_large else _read(shape, body, field)

        def check() -> None:
            # Looking at the files of a form is costly: whatever the rows refuse is found out before. Without a form the
            # write itself finds it out, and asking twice would only cost time.
            self._check(rt, caller, request, read, always_check_rows=form is not None)

        if not read.is_text:
            check()
        if self.replay is None:
            check()
            return await work()
        parts = () if form is None else form.fingerprints

        async def fingerprint() -> str:
            asked = partial(idempotency.fingerprint, request.path, read.value, parts)
            return await asyncio.to_thread(asked) if is_large else asked()

        return await idempotent.run_once(
            rt,
            request,
            fingerprint=fingerprint,
            check=check,
            work=work,
            replay=self.replay,
        )

    def _check(self, rt: Runtime, caller: Caller, request: Request, read: BodyRead, *, always_check_rows: bool) -> None:
        """Take the body's shape. Raises InvalidRequest with everything that is wrong, with the rows as well."""
        request.body = read.shape
        mistakes = read.mistakes
        if self.check_rows is not None and (mistakes or always_check_rows):
            for error in self.check_rows(rt, caller, read.value, mistakes.errors):
                mistakes.add(error)
        if mistakes:
            raise mistakes.refusal(f"The field {PAYLOAD}" if always_check_rows else "The body")

    def _is_form(self, request: Request) -> bool:
        content_type = request.content_type
        if content_type == JSON or (self.body_optional and not request.has_body):
            return False
        if content_type == MULTIPART and self.form is not None:
            return True
        accepted = "application/json or multipart/form-data" if self.form else "application/json"
        raise UnsupportedMediaType(f"Send the body as {accepted}, and name that type in Content-Type.")


def _read(shape: type[Shape], body: bytes, field: str | None) -> BodyRead:
    value, mistakes = shapes.parse_json(body, field)
    is_text = not mistakes
    found, more = shape.read(value)
    if more:
        mistakes.merge(more.errors, more.total)
    return BodyRead(value, found, mistakes, is_text)


def endpoint(
    *,
    scope: str | None = "read",
    resource: Resource | None = None,
    body: type[Shape] | None = None,
    form: FormBody | None = None,
    query: type[Query] | None = None,
    check_rows: RowCheck | None = None,
    replay: Replay | None = None,
    body_optional: bool = False,
    streams: bool = False,
) -> Callable[[Handler], Endpoint]:
    """Make `async def name(rt, caller, request) -> Answer` an endpoint.

    `scope`: `read`, `write`, or None where no key is needed (`caller` is None then).
    `resource(rt, caller, path_params)` returns whether what the path names is there for this caller. `body` and `query`
    are shapes; the handler finds them in `request.body` and `request.query`. Without `query` no parameter is known. A
    body that no shape describes is taken to its end before the handler runs, unless that `streams` it itself. With
    `body_optional` an empty body is that of an empty object. `form` takes the body when it comes as a form. When the
    shape of a body fails, `check_rows(rt, caller, value, errors)` returns what the rows and the clock refuse about the
    rest of it. `replay` makes the endpoint obey an Idempotency-Key: it answers again with what was kept. A handler that
    returns None has answered itself (`request.start`).
    """

    def make(handler: Handler) -> Endpoint:
        return Endpoint(
            handler,
            scope=scope,
            resource=resource,
            body=body,
            form=form,
            query=query,
            check_rows=check_rows,
            replay=replay,
            body_optional=body_optional,
            streams=streams,
        )

    return make


Answering = Callable[[Request], Awaitable[Answer | None]]
"""An endpoint, or a page of the dashboard. One that returns None has answered itself."""


class Methods:
    """One path: which endpoint answers which method. An ASGI callable for Starlette's `Route`."""

    def __init__(self, path: str, instead: Mapping[str, str], **by_method: Answering) -> None:
        """`instead` says what to send in place of a method that this path does not support."""
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
            raise MethodNotAllowed(f"This address supports {self.allow}.{advice}", headers=(("allow", self.allow),))
        request.path_params = scope["path_params"]
        answer = await found(request)
        if answer is not None:
            await request.answer(answer)


def route(path: str, instead: Mapping[str, str] | None = None, **methods: Answering) -> Route:
    """The address `path` with what answers each method there, and the advice for methods that callers expect."""
    # The path's own 405 answers for every method, so the route takes them all.
    return Route(path, Methods(path, instead or {}, **methods), methods=None)


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _check_ids(path_params: dict[str, str]) -> None:
    for name, text in path_params.items():
        if _ID.fullmatch(text):
            continue
        known = ids.parse(text)
        if known is None:
            raise NotFound("Nothing here has this id: it is not a UUID.")
        path_params[name] = known
