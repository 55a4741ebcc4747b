"""Profiles at the door: listed, shown, disconnected (spec 4.1)."""

from socialpub import profiles
from socialpub.api.endpoint import Answer, Request, endpoint
from socialpub.errors import NotFound
from socialpub.keys import Caller
from socialpub.runtime import Runtime
from socialpub.store import views


def is_visible(rt: Runtime, caller: Caller, path_params: dict[str, str]) -> bool:
    """Whether the path names a profile in this key's scope."""
    row = rt.reader.one("SELECT provider, id FROM profile WHERE id = ?", (path_params["id"],))
    return row is not None and caller.sees(row[0], row[1])


@endpoint(scope="read")
async def index(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Every profile in this key's scope, oldest first."""
    return Answer(200, b'{"data":' + views.profiles(rt.reader, caller) + b"}")


@endpoint(scope="read", resource=is_visible, late=True)
async def show(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """One profile."""
    shown = views.profile(rt.reader, request.path_params["id"])
    if shown is None:
        raise NotFound("There is no profile with this id.")
    return Answer(200, b'{"data":' + shown + b"}")


@endpoint(scope="write", resource=is_visible)
async def disconnect(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Unlink a profile for good: from this answer on nothing is sent with its tokens but their revocation."""
    await rt.write_soon(profiles.disconnect, request.path_params["id"])
    return Answer(204)
