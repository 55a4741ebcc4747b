"""Publishing logs at the door (spec 4.4)."""

from socialpub.api.endpoint import Answer, Request, endpoint
from socialpub.api.requests import LogsQuery
from socialpub.keys import Caller
from socialpub.runtime import Runtime
from socialpub.store import views
from socialpub.store.database import Reader

_DEEP = 2000
"""Entries that may be skipped in place, on the event loop."""


@endpoint(scope="read", query=LogsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """What happened to deliveries, newest first."""
    asked: LogsQuery = request.query

    def read(reader: Reader) -> bytes:
        return views.log_entries(reader, caller, asked.limit, asked.offset)

    entries = await rt.read_aside(read) if asked.offset > _DEEP else read(rt.reader)
    return Answer(200, b'{"data":' + entries + b"}")
