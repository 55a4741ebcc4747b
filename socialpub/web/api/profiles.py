"""The endpoints of profiles (spec 4.1) and of the publishing logs (spec 4.4)."""

import orjson
from starlette.requests import Request
from starlette.responses import Response

from socialpub.accounts import choices, profiles
from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import FieldError, InvalidRequest, NotFound
from socialpub.db.connection import Database
from socialpub.db.queries import api_json
from socialpub.db.tables import profile_rows
from socialpub.runtime import Runtime
from socialpub.web.api.requests import LOG_START, ChoicesQuery, LogsQuery
from socialpub.web.http.endpoint import endpoint
from socialpub.web.http.responses import ok


def is_visible(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    profile = profile_rows.find(rt.db, path_params["id"])
    return profile is not None and caller.sees(profile.provider, profile.id)


@endpoint(scope="read")
async def index(rt: Runtime, caller: Caller, request: Request) -> Response:
    return ok(api_json.profiles(rt.db, caller))


@endpoint(scope="read", resource=is_visible)
async def show(rt: Runtime, caller: Caller, request: Request) -> Response:
    profile = api_json.profile(rt.db, request.path_params["id"])
    if profile is None:
        raise NotFound("There is no profile with this id.")
    return ok(profile)


@endpoint(scope="write", resource=is_visible, for_restricted=False)
async def disconnect(rt: Runtime, caller: Caller, request: Request) -> Response:
    """Disconnect a profile. After the response, its tokens are used only for their revocation."""
    await rt.write_soon(profiles.disconnect, request.path_params["id"])
    return Response(status_code=204)


@endpoint(scope="read", resource=is_visible, query=ChoicesQuery)
async def list_choices(rt: Runtime, caller: Caller, request: Request) -> Response:
    query: ChoicesQuery = request.state.query
    return ok(orjson.dumps(await choices.describe(rt, request.path_params["id"], query.board_id)))


# --- publishing logs --------------------------------------------------------------------------------------------------

_MAX_SKIPPED_IN_PLACE = 2000
"""Skipping more entries would block the event loop."""
_MAX_SKIPPED_OF_EACH = 100
"""The same for a limited key. The query reads the skipped entries of each of its profiles."""


@endpoint(scope="read", query=LogsQuery)
async def logs(rt: Runtime, caller: Caller, request: Request) -> Response:
    query: LogsQuery = request.state.query

    if query.after:
        return ok(api_json.log_entries_after(rt.db, caller, _find_number(rt, caller, query), query.limit))

    def read(db: Database) -> bytes:
        return api_json.log_entries(db, caller, query.limit, query.offset)

    most = _MAX_SKIPPED_OF_EACH if caller.limited else _MAX_SKIPPED_IN_PLACE
    return ok(await rt.read_in_thread(read) if query.offset > most else read(rt.db))


def _find_number(rt: Runtime, caller: Caller, query: LogsQuery) -> int:
    """Return the number of the entry that `after` names. Raises InvalidRequest."""
    number = 0 if query.after == LOG_START else api_json.log_number(rt.db, caller, query.after)
    errors = []
    if number is None:
        message = "is not the id of a stored log entry that this key can see; begin again with after=start"
        errors.append(FieldError(("after",), message))
    if "offset" in query.model_fields_set:
        errors.append(FieldError(("offset",), "cannot be combined with after; use the last id as after instead"))
    if number is None or errors:
        raise InvalidRequest.from_errors(errors)
    return number
