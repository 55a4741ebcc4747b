"""Refreshing and revoking Pinterest's tokens."""

import base64
import binascii
from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call, Refusal

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest


def token(pinterest: "Pinterest", call: Call) -> Answer:
    client_id, form = _client(pinterest, call)
    if form.get("grant_type") not in ("refresh_token", "authorization_code"):
        raise Refusal(pinterest.error(400, 1, "Missing or unknown grant_type in the request body."))
    # The consent page comes with a later room; a code cannot exist yet.
    old = pinterest.tokens.by_refresh(form.get("refresh_token", "")) if form["grant_type"] == "refresh_token" else None
    if old is None or not pinterest.tokens.may_refresh(old, client_id):
        raise Refusal(pinterest.unauthorized_answer())
    pinterest.tokens.spend(old, access_survives=True)
    new = pinterest.issue(old.account_id, old.scopes, client_id, family=old.family)
    return pinterest.answer(
        200,
        {
            "access_token": new.access,
            "refresh_token": new.refresh,
            "response_type": form["grant_type"],
            "token_type": "bearer",
            "expires_in": pinterest.access_seconds,
            "refresh_token_expires_in": pinterest.refresh_seconds,
            "refresh_token_expires_at": int(new.refresh_expires_at),
            "scope": " ".join(new.scopes),
        },
    )


def revoke(pinterest: "Pinterest", call: Call) -> Answer:
    """Refused for ordinary users, as the real one does; nothing is revoked."""
    _client(pinterest, call)
    return pinterest.error(403, 29, "You are not permitted to access that resource.")


def _client(pinterest: "Pinterest", call: Call) -> tuple[str, dict[str, str]]:
    scheme, _, encoded = call.headers.get("authorization", "").partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    client_id, _, secret = decoded.partition(":")
    if scheme.lower() != "basic" or not client_id or not secret:
        raise Refusal(pinterest.unauthorized_answer())
    if call.content_type != "application/x-www-form-urlencoded" or not call.body:
        raise Refusal(pinterest.error(400, 1, "Missing request body."))
    return client_id, call.form()
