"""Publishing logs at the door (spec 4.4)."""

from socialpub.accounts.api_keys import Caller
from socialpub.db import json_views
from socialpub.db.database import Reader
from socialpub.runtime import Runtime
from socialpub.web.api.requests import LogsQuery
from socialpub.web.endpoint import Answer, Request, endpoint

_DEEP = 2000
"""Entries that may be skipped in place, on the event loop."""


@endpoint(scope="read", query=LogsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """What happened to deliveries, newest first."""
    asked: LogsQuery = request.query

    def read(reader: Reader) -> bytes:
        return json_views.log_entries(reader, caller, asked.limit, asked.offset)

    entries = await rt.read_aside(read) if asked.offset > _DEEP else read(rt.reader)
    return Answer(200, b'{"data":' + entries + b"}")
