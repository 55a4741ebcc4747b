"""The ASGI application: middleware, problems, request log and periodic writes.

Every error of a handler and every refusal of Starlette becomes a problem here. Every response has a request id.
"""

import asyncio
import contextlib
import itertools
import re
import secrets
import sqlite3
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from socialpub.accounts import usage
from socialpub.core import logging
from socialpub.core.errors import MethodNotAllowed, NotFound, SocialpubError, Unavailable, cut
from socialpub.media.decoder import client
from socialpub.runtime import Runtime
from socialpub.web import routes
from socialpub.web.dashboard.browser import visit
from socialpub.web.http import client_address, endpoint, problems
from socialpub.web.http.limits import MAX_BODY_BYTES, BodyLimits, RequestBody
from socialpub.web.http.state import WebState

log = logging.get_logger(__name__)

FLUSH_SECONDS = 60.0
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""The metrics count all other methods together."""
_OWN_ID = re.compile(r"[\x20-\x7e]{1,128}")
_numbers = itertools.count(1)
_process = secrets.token_hex(6)


class App(Starlette):
    state: WebState  # type: ignore[assignment]  # Starlette's State would look up each attribute twice

    async def flush(self) -> None:
        """Write counters from memory to the database."""
        # A failure to store the usage of keys must not fail anything else.
        with contextlib.suppress(SocialpubError):
            await self.state.last_uses.flush()
            await usage.write_calls_soon(self.state.rt)
        with contextlib.suppress(SocialpubError):
            await self.state.untrusted_forwarders.flush()

    async def close(self) -> None:
        """Write the counters. Later requests get 503."""
        await self.flush()
        self.state.closed = True


@contextlib.asynccontextmanager
async def _flush_while_running(app: App) -> AsyncIterator[None]:
    flushing = asyncio.create_task(_flush_forever(app))
    yield
    flushing.cancel()
    await app.close()


async def _flush_forever(app: App) -> None:
    while True:
        await app.flush()
        await asyncio.sleep(FLUSH_SECONDS)
        await asyncio.to_thread(client.retry_starting)


def create_app(rt: Runtime) -> App:
    state = WebState(rt)
    app = App(
        routes=routes.all_routes(rt.settings),
        middleware=[Middleware(RequestLog), Middleware(BodyLimits, state.body_memory)],
        exception_handlers={SocialpubError: respond_to_error, HTTPException: respond_to_error},
        lifespan=_flush_while_running,
    )
    app.state = state
    app.router.redirect_slashes = False  # `RequestLog` removes the slash
    return app


def new_id() -> str:
    return f"{_process}-{next(_numbers):x}"


class RequestLog:
    """Give each request an id. Count and log its response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":

            async def receive_until_canceled() -> Message:
                try:
                    return await receive()
                except asyncio.CancelledError:  # the server was stopped twice
                    return {"type": "lifespan.shutdown"}

            await self.app(scope, receive_until_canceled, send)
            return
        path: str = scope["path"]
        # A redirect would make curl need `-L` and send a POST twice. The path of a signed URL stays as it was signed.
        if path.endswith("/") and path != "/" and not path.startswith("/storage/"):
            scope["path"] = path[:-1]
        state: WebState = scope["app"].state
        headers = dict(scope["headers"])  # faster than Starlette's Headers, for every request
        own_id = headers.get(b"x-request-id", b"").decode("latin-1")
        about = scope.setdefault("state", {})
        about["id"] = own_id if _OWN_ID.fullmatch(own_id) else new_id()
        about["started_at"] = state.rt.clock.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = ((b"x-request-id", about["id"].encode()), *about.get("rate_headers", ()))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        try:
            if state.closed:
                raise Unavailable("The appliance is stopping. Try again in a few seconds.")
            if scope["method"] == "GET":
                await self.app(scope, receive, send_with_id)
            else:
                # Only changes write other log lines that need the request id.
                with logging.bind(request_id=about["id"]):
                    await self.app(scope, receive, send_with_id)
        except ClientDisconnect:
            return
        except Exception as error:
            if status:
                # A started response cannot change its status. A broken connection shows the client that it failed.
                raise
            request = Request(scope, receive, send_with_id)
            await problems.respond(problems.find_problem(error, request), request)(scope, receive, send_with_id)
        _record(scope, state, status)
        if (forwarded := headers.get(b"x-forwarded-for")) is not None and not state.closed:
            with contextlib.suppress(SocialpubError):
                peer = client_address.peer_of(Request(scope))
                await state.untrusted_forwarders.note(peer, forwarded.decode("latin-1"))


def _record(scope: Scope, state: WebState, status: int) -> None:
    """Count and log the response. Successful reads are logged at level debug."""
    method = scope["method"] if scope["method"] in _METHODS else "other"
    state.responses[_documented_path(scope), method, status] += 1
    is_plain_read = scope["method"] in ("GET", "HEAD") and status < 400
    level: logging.Level = "debug" if is_plain_read else "info"
    if log.is_enabled(level):
        about = scope["state"]
        fields: dict[str, object] = {
            "method": scope["method"],
            "path": cut(scope["path"]),
            "status": status,
            "milliseconds": round((state.rt.clock.monotonic() - about["started_at"]) * 1000, 1),
            "request_id": about["id"],
        }
        if "caller" in about:
            fields["key"] = about["caller"].key_id
        log.write(level, "request", **fields)


def _documented_path(scope: Scope) -> str:
    """Return the path of the route that the request matched, such as `/api/v1/posts/{postId}`, or `none`."""
    route, root_path = scope.get("route"), scope.get("root_path", "")
    if isinstance(route, Route):
        return f"{root_path}{route.path_format}"
    return "/static/{name}" if root_path.startswith("/static/") else "none"


# --- errors -----------------------------------------------------------------------------------------------------------


async def respond_to_error(request: Request, error: Exception) -> Response:
    """Return the problem for an error of a handler, or for a refusal of Starlette."""
    problem = _refused_by_router(error, request) if isinstance(error, HTTPException) else error
    problem = problems.find_problem(problem, request)
    if isinstance(problem, NotFound | MethodNotAllowed):
        try:
            _check_unread_body(request)
        except SocialpubError as too_large:
            problem = too_large
    return await _missing_page(problem, request) or problems.respond(problem, request)


def _refused_by_router(error: HTTPException, request: Request) -> SocialpubError:
    if error.status_code == MethodNotAllowed.status:
        path = _documented_path(request.scope)
        allow, hint = routes.find_methods(request.app.routes, path, request.method) or (
            (error.headers or {})["Allow"],
            "",
        )
        return MethodNotAllowed(f"This URL supports {allow}.{hint}", headers=(("allow", allow),))
    if b"//" in request.scope["raw_path"]:
        return NotFound("This URL does not exist. Its path contains two slashes in a row: remove one of them.")
    return NotFound("This URL does not exist.")


def _check_unread_body(request: Request) -> None:
    """Raise PayloadTooLarge for a large body of a request that no handler answers."""
    body: RequestBody = request.state.body_limits
    if body.is_whole or not body.declared_bytes or body.declared_bytes <= body.max_bytes:
        return
    # The key is checked only now, because most requests to an unknown URL do not have a large body.
    if endpoint.find_caller(request) is not None:
        body.max_bytes = MAX_BODY_BYTES
    body.check_size(body.declared_bytes)


async def _missing_page(problem: SocialpubError, request: Request) -> Response | None:
    """Return the dashboard's page for an unknown URL. None if the client or the URL gets a problem."""
    if not (isinstance(problem, NotFound) and request.app.state.rt.settings.dashboard.enabled):
        return None
    if request.method not in ("GET", "HEAD") or not problems.is_for_page(request):
        return None
    with contextlib.suppress(SocialpubError, sqlite3.Error):
        return await visit.missing(request, problem)
    return None
