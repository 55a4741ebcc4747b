"""One HTTP connection: uvicorn's protocol with limits, and problems for invalid HTTP.

Invalid HTTP gets a problem only if no other response was or will be sent. A running request gets its own response, then
the connection ends.
"""

import asyncio
import sys
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from socialpub.core.errors import HeadersTooLarge, InvalidRequest, RequestTimeout, SocialpubError
from socialpub.web.http import connection_limits, problems
from socialpub.web.http.answer import CLOSE
from socialpub.web.http.app import App
from socialpub.web.http.connection_limits import BODY, BodyShare, ConnectionWatch, Limit
from socialpub.web.http.request import TRANSPORT, new_id

_NO_HTTP = "The request is not valid HTTP."


class _Refused(Exception):
    """Raised inside the parser's callbacks, to make it stop."""


class _AnyLength(int):
    """The number of missing bytes of a response that ends with its connection."""

    def __sub__(self, _: int) -> "_AnyLength":
        return self

    def __ne__(self, other: object) -> bool:
        return False  # at the end of the response, no byte is missing

    __hash__ = int.__hash__


class ResponseTransport(asyncio.Transport):
    """The transport of one response. Between `hold` and `release`, all writes become one.

    Otherwise, uvicorn would make a system call for the head of a response and another for its body.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] | None = None

    def hold(self) -> None:
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        if held:
            self._transport.write(b"".join(held))

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._held is None:
            self._transport.write(data)
        else:
            self._held.append(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.release()
        self._transport.close()


class HttpProtocol(HttpToolsProtocol):
    def __init__(self, watch: ConnectionWatch, **parts: Any) -> None:
        super().__init__(**parts)
        self._watch = watch
        self._limits = watch.limits
        self._closed_for_input = False
        """No more input is read. The connection ends after the pending responses."""
        self._in_body = False
        self._in_head = False
        """Between requests, both flags are false."""
        self._unfinished_bytes = 0
        """Bytes of a head, of trailers or of chunk metadata since the last complete head or body data."""
        self._since = 0.0
        """The time at which the client last made progress with its request."""
        self._body_since = 0.0
        """The time at which the last head was complete."""
        self._discarded_bytes = 0
        """The bytes of the current body after its response."""
        self._unread_bytes = 0
        self._unread_since = 0.0
        self._reading_bytes = 0
        self._refusal: SocialpubError | None = None

    # --- input -------------------------------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None and "." in self.client[0]:  # an IPv4 client of a socket at [::]
            self.client = (self.client[0].removeprefix("::ffff:"), self.client[1])
        self._since = self.loop.time()
        if not self._watch.admit(self, self._since):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.forget(self)
        for cycle, _ in self.pipeline:  # these requests never start, so no handler releases their bodies
            connection_limits.release_body(cast("connection_limits.Scope", cycle.scope))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        room = self._limits.head_bytes - self._unfinished_bytes
        if len(data) > room and not self._in_body:
            # Split at the limit, so that a head that is slightly too long is refused as well.
            self._read(data[:room])
            data = data[room:]
        if data:
            self._read(data)

    def _read(self, data: bytes) -> None:
        if self._closed_for_input:
            return
        is_first = self._unfinished_bytes == 0
        self._unfinished_bytes += len(data)
        self._reading_bytes = len(data)
        self._parse(data)
        if is_first or self._unfinished_bytes == 0:
            self._since = self.loop.time()
        if self._unfinished_bytes >= self._limits.head_bytes and not self._closed_for_input:
            self._refuse(self._too_large())

    def _parse(self, data: bytes) -> None:
        """Parse like uvicorn's `data_received`, but decline an upgrade (`curl --http2`): the parser would read neither
        the body nor later requests."""
        self._unset_keepalive_if_required()
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                (read_bytes,) = offer.args
                data = self._head_without_offer() + data[read_bytes:]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # like uvicorn
            except httptools.HttpParserError as error:
                if not isinstance(error, httptools.HttpParserCallbackError):
                    self.logger.warning(_NO_HTTP)
                self.send_400_response(_NO_HTTP)
                return
            else:
                return

    def _head_without_offer(self) -> bytes:
        request_line = b"%b %b HTTP/%b" % (
            self.parser.get_method(), self.url, self.parser.get_http_version().encode()
        )  # fmt: skip
        lines = (b"%b: %b" % header for header in self.headers if header[0] != b"upgrade")
        return b"\r\n".join((request_line, *lines, b"", b""))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= self._limits.head_fields:
            self._refusal = self._too_large()
            raise _Refused
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            raise _Refused  # the following bytes would not be HTTP
        if self.parser.should_upgrade():
            return  # `_parse` reads the head again
        if self._reading_bytes > self._limits.head_bytes and self._head_bytes() > self._limits.head_bytes:
            self._refusal = self._too_large()
            raise _Refused
        self._body_since = self.loop.time()
        share = self.scope[BODY] = BodyShare(self._watch.bodies)  # type: ignore[literal-required]
        if self._is_answering:
            if len(self.pipeline) >= self._limits.pipelined:
                self._watch.report(Limit.PIPELINED, self._body_since, self.peer)
                raise _Refused
            self._hold(share, self._head_bytes())  # the request waits for earlier requests
        self._in_head, self._in_body, self._unfinished_bytes, self._discarded_bytes = False, True, 0, 0
        transport = self.scope[TRANSPORT] = ResponseTransport(self.transport)  # type: ignore[literal-required]
        super().on_headers_complete()
        self.cycle.transport = transport
        if self.parser.get_http_version() == "1.0":
            # uvicorn would send chunks, which HTTP/1.0 does not have. It closes these connections after the response.
            self.cycle.chunked_encoding, self.cycle.expected_content_length = False, _AnyLength(sys.maxsize)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        if self.cycle.response_complete:
            self._discarded_bytes += len(body)
            if self._discarded_bytes > self._limits.discarded_bytes:
                self._watch.report(Limit.DISCARDED_BYTES, self.loop.time(), self.peer)
                raise _Refused
            return
        self._hold(self._share, len(body))
        super().on_body(body)

    @property
    def _share(self) -> BodyShare:
        return cast("BodyShare", self.cycle.scope[BODY])  # type: ignore[literal-required]

    def _hold(self, share: BodyShare, size_bytes: int) -> None:
        """Count bytes of a request in memory. Refuse the request if they exceed the limit."""
        if not share.add(size_bytes, goes_to_file=share.goes_to_file):
            self._watch.report(Limit.BODY_MEMORY, self.loop.time(), self.peer)
            self._refusal = connection_limits.memory_full()
            raise _Refused

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._in_body, self._unfinished_bytes = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._in_head:
            self._since = self.loop.time()
        if self.cycle.response_complete and self.cycle.body:
            self.cycle.body = bytearray()  # no handler reads the rest, but the cycle lives until the next request
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()  # uvicorn would continue to read requests

    def _head_bytes(self) -> int:
        request_line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n")
        return request_line + sum(len(name) + len(value) + 4 for name, value in self.headers) + 2

    # --- refusals ----------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or InvalidRequest.at(message=msg))

    def _too_large(self) -> SocialpubError:
        self._watch.report(Limit.HEAD_BYTES, self.loop.time(), self.peer)
        limits = self._limits
        return HeadersTooLarge(
            f"A request may have at most {limits.head_fields} headers. The request line and the headers together may "
            f"have at most {limits.head_bytes} bytes."
        )

    def _refuse(self, error: SocialpubError) -> None:
        """Stop reading. Send a problem, unless another response was started."""
        self._closed_for_input = True
        cycle = self.cycle
        if not self._in_body and cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False  # earlier requests are complete and get their responses
        elif self._in_body and (self.pipeline or cycle.response_started):
            self.transport.close()
        else:
            if self._in_body:
                # The handler still waits for the body, so it has changed nothing. It must end now.
                cycle.disconnected = True
                cycle.message_event.set()
            self._write_problem(error)
            self.transport.close()

    def _write_problem(self, error: SocialpubError) -> None:
        app = cast("App", self.config.app)
        problem = problems.render_problem(error, app.state.rt.settings.base_url)
        headers = [
            *(header for header in self.server_state.default_headers if header != CLOSE),
            (b"content-type", problem.content_type),
            (b"content-length", b"%d" % len(problem.body)),
            (b"x-request-id", new_id()),
            *problem.headers,
            CLOSE,
        ]
        status_line = b"HTTP/1.1 %d %b" % (problem.status, error.title.encode())
        lines = [status_line, *(name + b": " + value for name, value in headers), b"", problem.body]
        self.transport.write(b"\r\n".join(lines))

    # --- limits of time ----------------------------------------------------------------------------------------------

    def exceeded_limit(self, now: float) -> Limit | None:
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes != self._unread_bytes:
            self._unread_bytes, self._unread_since = unread_bytes, now
        if unread_bytes and now - self._unread_since >= self._limits.reader_seconds:
            return Limit.READER_SECONDS
        if self._closed_for_input:
            return None
        if self.flow.read_paused:
            self._since = self._body_since = now  # the server does not read
        waited = now - self._since
        if self._in_body:
            if self._share.goes_to_file:
                return Limit.STALL_SECONDS if waited >= self._limits.stall_seconds else None
            return Limit.BODY_SECONDS if now - self._body_since >= self._limits.body_seconds else None
        # uvicorn's timer closes an idle connection, until bytes arrive that do not start a request.
        is_owed = self.cycle is None or (self.cycle.response_complete and self.timeout_keep_alive_task is None)
        if (self._in_head or is_owed) and waited >= self._limits.head_seconds:
            return Limit.HEAD_SECONDS
        return None

    def end(self, reached: Limit) -> None:
        """End the connection, after the responses that the client still reads."""
        cycle = self.cycle
        if reached is Limit.HEAD_SECONDS and cycle is not None and not cycle.response_complete:
            self._closed_for_input, self._in_head = True, False
            cycle.keep_alive = False
        elif reached is Limit.BODY_SECONDS:
            self._refuse(
                RequestTimeout(
                    f"The request body was not complete within {self._limits.body_seconds:.0f} seconds. "
                    "Send the request again."
                )
            )
        else:
            self.transport.abort()

    def idle_since(self) -> float | None:
        """Return the time at which the client last sent data, while the server waits for a complete request.

        Return None while a request runs, a response is being sent or a file arrives: these need a valid key, session or
        signature.
        """
        if self.flow.read_paused or self.transport.get_write_buffer_size():
            return None
        if self._is_answering and (self.pipeline or not self._in_body or self._share.goes_to_file):
            return None
        return self._since

    def abort(self) -> None:
        self._closed_for_input = True
        self.transport.abort()
