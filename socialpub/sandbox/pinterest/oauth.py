"""Pinterest's token endpoint: exchange, refresh; revocation is refused to ordinary users."""

import base64
import binascii
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal
from socialpub.sandbox.pinterest.access import count, in_sandbox, with_rates
from socialpub.sandbox.pinterest.consent import find_app

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest
    from socialpub.sandbox.tokens import Token


def token(pinterest: "Pinterest", call: Call) -> Answer:
    client_id, form = _client(pinterest, call)
    rates = count(pinterest, "org_read", client_id, "")
    match form.get("grant_type"):
        case "authorization_code":
            new = _exchange(pinterest, call, client_id, form)
        case "refresh_token":
            new = _refresh(pinterest, call, client_id, form)
        case _:
            raise Refusal(pinterest.error(400, 1, "Missing or unknown grant_type in the request body."))
    answer: dict[str, Any] = {
        "access_token": new.access,
        "refresh_token": new.refresh,
        "response_type": form["grant_type"],
        "token_type": "bearer",
        "expires_in": pinterest.access_seconds,
        "refresh_token_expires_in": int(new.refresh_expires_at - pinterest.world.now().timestamp()),
        "refresh_token_expires_at": int(new.refresh_expires_at),
        "scope": pinterest.scope_separator.join(new.scopes),
    }
    if pinterest.omits_refresh_token and form["grant_type"] == "refresh_token":
        for name in ("refresh_token", "refresh_token_expires_in", "refresh_token_expires_at"):
            del answer[name]
    return with_rates(pinterest.answer(200, answer), rates)


def _exchange(pinterest: "Pinterest", call: Call, client_id: str, form: dict[str, str]) -> "Token":
    for name in ("code", "redirect_uri"):
        if not form.get(name):
            raise Refusal(pinterest.error(400, 1, f"Missing {name} in the request body."))
    code = pinterest.codes.pop(form["code"], None)
    now = pinterest.world.now().timestamp()
    if code is None or code.client_id != client_id or code.redirect_uri != form["redirect_uri"]:
        raise Refusal(pinterest.unauthorized_answer())
    if now >= code.expires_at or code.account_id not in pinterest.accounts:
        raise Refusal(pinterest.unauthorized_answer())
    return pinterest.issue(code.account_id, code.scopes, client_id, sandbox=in_sandbox(call))


def _refresh(pinterest: "Pinterest", call: Call, client_id: str, form: dict[str, str]) -> "Token":
    old = pinterest.tokens.by_refresh(form.get("refresh_token", ""))
    if (
        old is None
        or not pinterest.tokens.may_refresh(old, client_id)
        or pinterest.is_sandbox_token(old) != in_sandbox(call)
    ):
        raise Refusal(pinterest.unauthorized_answer())
    if not pinterest.old_refresh_survives and not pinterest.omits_refresh_token:
        pinterest.tokens.spend(old, access_survives=True)
    kept = old.refresh if pinterest.omits_refresh_token else None
    return pinterest.issue(
        old.account_id, old.scopes, client_id, family=old.family, sandbox=in_sandbox(call), refresh=kept
    )


def revoke(pinterest: "Pinterest", call: Call) -> Answer:
    """Refused for ordinary users, as the real one does; nothing is revoked."""
    _client(pinterest, call)
    return pinterest.refusal_answer("revoke", "not_permitted")


def _client(pinterest: "Pinterest", call: Call) -> tuple[str, dict[str, str]]:
    scheme, _, encoded = call.headers.get("authorization", "").partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    client_id, _, secret = decoded.partition(":")
    app = find_app(pinterest, client_id)
    if scheme.lower() != "basic" or app is None or not secret or (app.client_secret and secret != app.client_secret):
        raise Refusal(pinterest.unauthorized_answer())
    if call.content_type != "application/x-www-form-urlencoded" or not call.body:
        raise Refusal(pinterest.error(400, 1, "Missing request body."))
    return client_id, call.form()
