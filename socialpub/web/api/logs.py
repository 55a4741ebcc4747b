"""The endpoint of publishing logs (spec 4.4)."""

from socialpub.accounts.api_keys import Caller
from socialpub.db.connection import Reader
from socialpub.db.queries import api_json
from socialpub.runtime import Runtime
from socialpub.web.api.requests import LogsQuery
from socialpub.web.http.answer import Answer, ok
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.request import Request

_MOST_SKIPPED_IN_PLACE = 2000
"""Entries that may be skipped on the event loop."""


@endpoint(scope="read", query=LogsQuery)
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """What happened to deliveries, newest first."""
    query: LogsQuery = request.query

    def read(reader: Reader) -> bytes:
        return api_json.log_entries(reader, caller, query.limit, query.offset)

    return ok(await rt.read_in_thread(read) if query.offset > _MOST_SKIPPED_IN_PLACE else read(rt.reader))
