"""The ASGI application: routes, errors, request log and periodic writes.

Every error of a handler becomes a problem here. Every response has a request id.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import MutableMapping
from typing import Any

from starlette.routing import Router

from socialpub.accounts import usage
from socialpub.core import logging
from socialpub.core.errors import MethodNotAllowed, NotFound, SocialpubError, Unavailable
from socialpub.media.decoder import client
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser import visit as dashboard_page
from socialpub.web.http import connection_limits, endpoint, problems
from socialpub.web.http.answer import Answer
from socialpub.web.http.request import MAX_BODY_BYTES, ClientGone, Receive, Request, Send, WebState
from socialpub.web.routes import routes, verification_routes

log = logging.get_logger("socialpub.requests")

FLUSH_SECONDS = 60.0
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""The metrics count all other methods together."""


class App:
    def __init__(self, rt: Runtime) -> None:
        self.state = WebState(rt)
        first = verification_routes(rt.settings.providers.tiktok.verification_file)
        found = [*first, *routes(dashboard=rt.settings.dashboard.enabled, mcp=rt.settings.mcp.enabled)]
        self._router = Router(routes=found, default=_not_found, redirect_slashes=False)
        self._by_path = {route.path: route.app for route in reversed(found) if "{" not in route.path}
        """The routes without parameters: to find one here is faster than to compare the path with each route."""
        self._flushing: asyncio.Task[None] | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        scope["path"] = _without_last_slash(scope["path"])
        request = Request(self.state, scope, receive, send)
        scope["request"] = request
        try:
            if self.state.closed:
                raise Unavailable("The appliance is stopping. Try again in a few seconds.")
            handle = self._by_path.get(scope["path"], self._router)
            if request.method == "GET":
                await handle(scope, receive, send)
            else:
                # Only changes write other log lines that need the request id.
                with logging.bind(request_id=request.id.decode()):
                    await handle(scope, receive, send)
        except ClientGone:
            return
        except Exception as error:
            problem = problems.find_problem(error, request)
            if request.status:
                # A started response cannot change its status. A broken connection shows the client that it failed.
                raise
            await _answer_problem(problem, request)
        finally:
            connection_limits.release_body(scope)
            # Without this reference cycle, scope and request are freed at once and not by the garbage collector.
            del scope["request"]
        self._record(request)
        if (forwarded := request.headers.get(b"x-forwarded-for")) is not None and not self.state.closed:
            with contextlib.suppress(SocialpubError):
                await self.state.untrusted_forwarders.note(request.peer, forwarded)

    def _record(self, request: Request) -> None:
        """Count and log the response. Successful reads are logged at level debug."""
        method = request.method if request.method in _METHODS else "other"
        self.state.answers[request.route, method, request.status] += 1
        is_plain_read = request.method in ("GET", "HEAD") and request.status < 400
        level: logging.Level = "debug" if is_plain_read else "info"
        if log.is_enabled(level):
            fields: dict[str, object] = {
                "method": request.method,
                "path": request.logged_path,
                "status": request.status,
                "milliseconds": round((self.state.rt.clock.monotonic() - request.started_at) * 1000, 1),
                "request_id": request.id.decode(),
            }
            if request.caller is not None:
                fields["key"] = request.caller.key_id
            log.write(level, "request", **fields)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:
                return  # the server was stopped twice
            if message["type"] == "lifespan.startup":
                self._flushing = asyncio.create_task(self._flush_forever())
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def close(self) -> None:
        """Write counters from memory to the database. Later requests get 503."""
        if self._flushing is not None:
            self._flushing.cancel()
        await self._flush()
        self.state.closed = True

    async def _flush_forever(self) -> None:
        await self._flush_proxies()
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush()
            await asyncio.to_thread(client.retry_starting)

    async def _flush(self) -> None:
        # A failure to store the usage of keys must not fail anything else.
        with contextlib.suppress(SocialpubError):
            await self.state.last_uses.flush()
            await usage.write_calls_soon(self.state.rt)
        await self._flush_proxies()

    async def _flush_proxies(self) -> None:
        with contextlib.suppress(SocialpubError):
            await self.state.untrusted_forwarders.flush()


def create_app(rt: Runtime) -> App:
    return App(rt)


async def _not_found(scope: MutableMapping[str, Any], _receive: object, _send: object) -> None:
    if b"//" in scope["raw_path"]:
        raise NotFound("This URL does not exist. Its path contains two slashes in a row: remove one of them.")
    raise NotFound("This URL does not exist.")


def _without_last_slash(path: str) -> str:
    """Remove a slash at the end. A redirect would make curl need `-L` and send a POST twice.

    The path of a signed URL is part of the signature and stays unchanged.
    """
    return path[:-1] if path[-1:] == "/" and path != "/" and not path.startswith("/storage/") else path


async def _answer_problem(problem: SocialpubError, request: Request) -> None:
    """Send the problem, even if the body has not arrived completely."""
    length = request.content_length or 0
    if isinstance(problem, NotFound | MethodNotAllowed) and length > request.max_body_bytes:
        # The key is checked only now, because most requests to an unknown URL do not have a large body.
        if endpoint.find_caller(request) is not None:
            request.max_body_bytes = MAX_BODY_BYTES
        problem = request.too_large(length) or problem
    answer = await _page_of_missing(problem, request) or problems.answer_problem(problem, request)
    ends_connection = problem.status == 413 or length > MAX_BODY_BYTES or request.waits_for_continue
    if ends_connection and not request.is_whole:
        await problems.answer_and_close(request, answer)
    else:
        await request.answer(answer)


async def _page_of_missing(problem: SocialpubError, request: Request) -> Answer | None:
    """Return the dashboard's page for an unknown URL. None if the client or the URL gets a problem."""
    if not (isinstance(problem, NotFound) and request.state.rt.settings.dashboard.enabled):
        return None
    if request.method not in ("GET", "HEAD") or not problems.is_for_page(request):
        return None
    with contextlib.suppress(SocialpubError, sqlite3.Error):
        return await dashboard_page.missing(request, problem)
    return None
