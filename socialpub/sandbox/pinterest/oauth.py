"""Pinterest's token endpoint: exchange, refresh; revocation is refused to ordinary users."""

from typing import Any

from socialpub.sandbox.apps import basic_credentials
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.access import count, in_sandbox
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.request import FORM, SandboxRequest
from socialpub.sandbox.tokens import Token


def token(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
    client_id, form = _client(pinterest, request)
    rates = count(pinterest, "org_read", client_id, "")
    match form.get("grant_type"):
        case "authorization_code":
            new = _exchange(pinterest, request, client_id, form)
        case "refresh_token":
            new = _refresh(pinterest, request, client_id, form)
        case _:
            raise replies.invalid(pinterest, 400, 1, "Missing or unknown grant_type in the request body.")
    answer: dict[str, Any] = {
        "access_token": new.access,
        "refresh_token": new.refresh,
        "response_type": form["grant_type"],
        "token_type": "bearer",
        "expires_in": pinterest.access_seconds,
        "refresh_token_expires_in": int(new.refresh_expires_at - pinterest.timestamp()),
        "refresh_token_expires_at": int(new.refresh_expires_at),
        "scope": pinterest.scope_separator.join(new.scopes),
    }
    if pinterest.omits_refresh_token and form["grant_type"] == "refresh_token":
        for name in ("refresh_token", "refresh_token_expires_in", "refresh_token_expires_at"):
            del answer[name]
    return replies.with_rate_headers(replies.ok(pinterest, 200, answer), rates)


def _exchange(pinterest: PinterestSandbox, request: SandboxRequest, client_id: str, form: dict[str, str]) -> Token:
    for name in ("code", "redirect_uri"):
        if not form.get(name):
            raise replies.invalid(pinterest, 400, 1, f"Missing {name} in the request body.")
    code = pinterest.codes.redeem(form["code"], client_id)
    if code is None or code.redirect_uri != form["redirect_uri"]:
        raise replies.refused(pinterest, "authentication_failed")
    return pinterest.issue(code.account_id, code.scopes, client_id, sandbox=in_sandbox(request))


def _refresh(pinterest: PinterestSandbox, request: SandboxRequest, client_id: str, form: dict[str, str]) -> Token:
    old = pinterest.tokens.by_refresh(form.get("refresh_token", ""))
    if (
        old is None
        or not pinterest.tokens.may_refresh(old, client_id)
        or pinterest.is_sandbox_token(old) != in_sandbox(request)
    ):
        raise replies.refused(pinterest, "authentication_failed")
    if not pinterest.old_refresh_survives and not pinterest.omits_refresh_token:
        pinterest.tokens.spend(old, access_survives=True)
    kept = old.refresh if pinterest.omits_refresh_token else None
    return pinterest.issue(
        old.account_id, old.scopes, client_id, family=old.family, sandbox=in_sandbox(request), refresh=kept
    )


def revoke(pinterest: PinterestSandbox, request: SandboxRequest) -> Reply:
    """Refused for ordinary users, as the real one does; nothing is revoked."""
    _client(pinterest, request)
    return replies.named_error(pinterest, "not_permitted")


def _client(pinterest: PinterestSandbox, request: SandboxRequest) -> tuple[str, dict[str, str]]:
    client_id, secret = basic_credentials(request.headers.get("authorization", "")) or ("", "")
    app = pinterest.find_app(client_id)
    if app is None or not app.accepts(secret):
        raise replies.refused(pinterest, "authentication_failed")
    if request.content_type != FORM or not request.body:
        raise replies.invalid(pinterest, 400, 1, "Missing request body.")
    return client_id, request.form()
