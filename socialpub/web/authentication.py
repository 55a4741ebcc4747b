"""Whose API key a request carries; wrong keys are counted by address, right ones by key."""

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Unauthorized
from socialpub.web.request import Request


def authenticate(request: Request) -> Caller:
    """Returns who calls. Raises Unauthorized and RateLimited."""
    state = request.state
    header = request.headers.get(b"authorization")
    if header is None:
        raise _unauthorized("Send an API key: Authorization: Bearer <API_KEY>.")
    scheme, _, token = header.partition(b" ")
    caller = None
    if scheme.lower() == b"bearer":
        caller = api_keys.authenticate(state.rt.reader, token.strip().decode("latin-1"), state.rt.clock.now())
    if caller is None:
        state.rate_limits.count_failure(request.client_address)
        raise _unauthorized("This API key is not known, has expired or was revoked.")
    state.last_uses.note(caller.key_id)
    request.rate_headers = state.rate_limits.count(caller.key_id)
    return caller


def _unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))
