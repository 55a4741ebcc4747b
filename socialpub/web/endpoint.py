"""`endpoint`: what happens to every request before its handler, in the order that the contract names.

401, 429, 403, 415, the 404 of a path resource, 400, then the handler with its 409. A handler gets a caller that may, a
resource that is there and a body that has the right shape, and returns an `Answer`.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from socialpub.accounts import api_keys
from socialpub.core import ids
from socialpub.core.errors import (
    FieldError,
    Forbidden,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
    UnsupportedMediaType,
)
from socialpub.publishing import idempotency
from socialpub.runtime import Runtime
from socialpub.web import json_body as bodies
from socialpub.web.idempotent import Show, once
from socialpub.web.request import JSON, Answer, ClientGone, Request, created
from socialpub.web.shapes import REFUSED, Query, Shape, read_query

if TYPE_CHECKING:
    from socialpub.accounts.api_keys import Caller

__all__ = ["Answer", "ClientGone", "Endpoint", "Methods", "Request", "created", "endpoint"]

Handler = Callable[..., Awaitable[Answer | None]]
Resource = Callable[[Runtime, "Caller", dict[str, str]], bool]
Also = Callable[[Runtime, "Caller", Any, Sequence[FieldError]], list[FieldError]]
Multipart = Callable[[Runtime, "Caller", Request], Awaitable[Answer | None]]

MULTIPART = b"multipart/form-data"


class Endpoint:
    """A handler with everything that stands before it."""

    def __init__(
        self,
        handler: Handler,
        *,
        scope: str | None,
        resource: Resource | None,
        late: bool,
        body: type[Shape] | None,
        query: type[Query] | None,
        multipart: Multipart | None,
        also: Also | None,
        replay: Show | None,
    ) -> None:
        self.handler = handler
        self.scope = scope
        self.resource = resource
        self.late = late
        self.body = body
        self.query = query
        self.multipart = multipart
        self.also = also
        self.replay = replay
        self.__name__: str = getattr(handler, "__name__", "endpoint")
        self.__doc__ = handler.__doc__

    async def __call__(self, request: Request) -> Answer | None:
        rt = request.app.rt
        if self.scope is None:
            return await self.handler(rt, None, request)
        caller = request.caller = authenticate(request)
        if self.scope == "write" and caller.scope != "write":
            raise Forbidden("This key may only read. Use one with the scope write.")
        as_form = False
        if self.body is not None:
            as_form = self._is_form(request)
        if request.path_params:
            _check_ids(request.path_params)
        # A handler that finds out by itself is asked to, unless a limited key or a bad query has to be told before.
        sure = self.late and not caller.limited and not request.query_string
        if self.resource is not None and not sure and not self.resource(rt, caller, request.path_params):
            raise NotFound("Nothing here has this id, or it is outside of this key's scope.")
        if self.query is not None:
            request.query = read_query(self.query, request.query_string)
        if self.body is None:
            return await self.handler(rt, caller, request)
        if as_form:
            assert self.multipart is not None
            return await self.multipart(rt, caller, request)
        try:
            value = bodies.parse(await request.read())
        except bodies.NotUnicode as error:
            self._check(rt, request, error.value, error.errors)
            raise
        if self.replay is None:
            self._check(rt, request, value)
            return await self.handler(rt, caller, request)
        return await once(
            rt,
            request,
            fingerprint=lambda: idempotency.fingerprint(request.path, value),
            check=lambda: self._check(rt, request, value),
            work=lambda: self.handler(rt, caller, request),
            show=self.replay,
        )

    def _check(self, rt: Runtime, request: Request, value: Any, known: Sequence[FieldError] = ()) -> None:
        """Read the body's shape. Raises InvalidRequest with everything that is wrong, `known` before the rest."""
        assert self.body is not None
        errors = list(known)
        try:
            request.body = self.body.read(value)
        except InvalidRequest as error:
            told = {one.path for one in known}
            errors += [one for one in error.errors if one.path not in told]
        if errors:
            if self.also is not None:
                assert request.caller is not None
                errors += self.also(rt, request.caller, value, errors)
            raise InvalidRequest(REFUSED, errors)

    def _is_form(self, request: Request) -> bool:
        kind = request.content_type
        if kind == JSON:
            return False
        if kind == MULTIPART and self.multipart is not None:
            return True
        accepted = "application/json or multipart/form-data" if self.multipart else "application/json"
        raise UnsupportedMediaType(f"Send the body as {accepted}, and say so in Content-Type.")


def endpoint(
    *,
    scope: str | None = "read",
    resource: Resource | None = None,
    late: bool = False,
    body: type[Shape] | None = None,
    query: type[Query] | None = None,
    multipart: Multipart | None = None,
    also: Also | None = None,
    replay: Show | None = None,
) -> Callable[[Handler], Endpoint]:
    """Make `async def name(rt, caller, request) -> Answer` an endpoint.

    `scope`: `read`, `write`, or None where no key is asked for (`caller` is None then, and the body is left unread).
    `resource(rt, caller, path_params)` tells whether what the path names is there for this caller; `late` says that
    the handler finds that out itself where nothing else can fail before. `body` and `query` are shapes; the handler
    finds them in `request.body` and `request.query`. `multipart(rt, caller, request)` takes over when the body comes as
    a form. When the shape of a body fails, `also(rt, caller, value, errors)` may add what else is wrong with it.
    `replay` makes the endpoint heed an Idempotency-Key: it shows again what was kept. A handler that returns None has
    answered itself (`request.start`).
    """

    def make(handler: Handler) -> Endpoint:
        return Endpoint(
            handler,
            scope=scope,
            resource=resource,
            late=late,
            body=body,
            query=query,
            multipart=multipart,
            also=also,
            replay=replay,
        )

    return make


class Methods:
    """One path: which endpoint answers which method. An ASGI callable for Starlette's `Route`."""

    def __init__(self, **by_method: Endpoint) -> None:
        self.by_method = by_method
        self._answering = dict(by_method)
        if "GET" in by_method:
            self._answering.setdefault("HEAD", by_method["GET"])
        self.allow = ", ".join(sorted(self._answering))

    async def __call__(self, scope: Any, _receive: Any, _send: Any) -> None:
        request: Request = scope["request"]
        found = self._answering.get(request.method)
        if found is None:
            raise MethodNotAllowed(f"This address knows {self.allow}.", headers=(("allow", self.allow),))
        request.path_params = scope["path_params"]
        answer = await found(request)
        if answer is not None:
            await request.answer(answer)


def authenticate(request: Request) -> "Caller":
    """Who calls. Raises Unauthorized and RateLimited."""
    app = request.app
    header = request.headers.get(b"authorization")
    if header is None:
        raise _unauthorized("Send an API key: Authorization: Bearer <API_KEY>.")
    scheme, _, token = header.partition(b" ")
    caller = None
    if scheme.lower() == b"bearer":
        caller = api_keys.authenticate(app.rt.reader, token.strip().decode("latin-1"), app.rt.clock.now())
    if caller is None:
        app.rates.count_failure(request.client_address)
        raise _unauthorized("This API key is not known, has expired or was revoked.")
    app.last_uses.note(caller.key_id)
    request.rate_headers = app.rates.count(caller.key_id)
    return caller


def _unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _check_ids(path_params: dict[str, str]) -> None:
    for name, text in path_params.items():
        if _ID.fullmatch(text):
            continue
        known = ids.parse(text)
        if known is None:
            raise NotFound("Nothing here has this id: it is no UUID.")
        path_params[name] = known
