"""Whose API key a request carries; wrong keys are counted by address, right ones by key."""

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.core.errors import Unauthorized
from socialpub.web.request import MOST_BODY_BYTES, Request

FORM = "Authorization: Bearer <API_KEY>"
UNKNOWN = "This API key is not known, has expired or was revoked."


def authenticate(request: Request) -> Caller:
    """Returns who calls. Raises Unauthorized and RateLimited."""
    state = request.state
    if b"authorization" not in request.headers:
        raise unauthorized(f"Send an API key: {FORM}.")
    caller = find_caller(request)
    if caller is None:
        raise wrong(request, _what_is_wrong(request.headers[b"authorization"]))
    request.most_body_bytes = MOST_BODY_BYTES
    state.last_uses.note(caller.key_id)
    request.rate_headers = state.rate_limits.count(caller.key_id)
    return caller


def find_caller(request: Request) -> Caller | None:
    """Return the caller whose key the request carries, and count nothing."""
    scheme, _, token = request.headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return api_keys.authenticate(request.state.rt.reader, token.strip().decode("latin-1"), request.state.rt.clock.now())


def _what_is_wrong(authorization: bytes) -> str:
    """Return what to change. The detail repeats nothing of the header, which may be a key."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.startswith(b"spk_"):
        return f"Put Bearer before the key: {FORM}."
    if scheme.lower() != b"bearer":
        return f"Send the key with the scheme Bearer: {FORM}."
    if not token.strip().startswith(b"spk_"):
        return f"An API key begins with spk_. Put the key alone behind Bearer: {FORM}."
    return UNKNOWN


def authenticate_again(request: Request) -> Caller:
    """Who calls, after a wait in which the key may have ended. Raises Unauthorized."""
    rt = request.state.rt
    assert request.caller is not None
    caller = api_keys.find_caller(rt.reader, request.caller.key_id, rt.now())
    if caller is None:
        raise unauthorized(UNKNOWN)
    return caller


def wrong(request: Request, detail: str) -> Unauthorized:
    """The refusal of a wrong key or token, counted for the address it comes from. Raises RateLimited instead."""
    request.state.rate_limits.count_failure(request.client_address)
    return unauthorized(detail)


def unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers=(("www-authenticate", "Bearer"),))
