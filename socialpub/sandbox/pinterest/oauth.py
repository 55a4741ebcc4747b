"""Pinterest's OAuth: the consent page, and the token endpoint with exchange and refresh. Revocation is refused."""

import secrets
from typing import Any
from urllib.parse import urlsplit

from socialpub.sandbox.messages import FORM, Reply, SandboxRequest
from socialpub.sandbox.oauth import Asked, ConsentPage
from socialpub.sandbox.pages import render_template
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.requests import count, in_sandbox
from socialpub.sandbox.tokens import SandboxApp, Token, basic_credentials

# MERGED from sandbox/pinterest/oauth.py: Pinterest's token endpoint: exchange, refresh; revocation is refused to o


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


# MERGED from sandbox/pinterest/consent.py: Pinterest's consent page: choose an account, give access or not. Scopes

MEANINGS = {
    "user_accounts:read": "See your account",
    "boards:read": "See your public boards",
    "boards:write": "Create and change your public boards",
    "boards:read_secret": "See your secret boards",
    "boards:write_secret": "Create and change your secret boards",
    "pins:read": "See your public Pins",
    "pins:write": "Create and change your public Pins",
    "pins:read_secret": "See your secret Pins",
    "pins:write_secret": "Create and change your secret Pins",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
UP = "../../"


class PinterestConsent(ConsentPage[PinterestSandbox, SandboxApp]):
    client_id_fields = ("client_id", "consumer_id")

    def complaint(self, app: SandboxApp, request: SandboxRequest, asked: Asked) -> str:  # noqa: ARG002
        uri = asked.get("redirect_uri", "")
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        if not parts.hostname or not safe or parts.fragment or (app.redirect_uris and uri not in app.redirect_uris):
            return "redirect_uri is missing, not https, or not one of the app's, letter by letter."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        scopes = self.scopes(asked)
        if not scopes or not set(scopes) <= set(MEANINGS):
            return "scope must be a comma-separated list of known scopes."
        return ""

    def scopes(self, asked: Asked) -> list[str]:
        return [scope for scope in asked.get("scope", "").split(",") if scope]

    def render(
        self,
        network: PinterestSandbox,
        app: SandboxApp,
        request: SandboxRequest,  # noqa: ARG002
        asked: Asked,
        scopes: list[str],
    ) -> str:
        return render_template(
            "consent.html",
            network="Pinterest",
            app=app.label,
            accounts=[
                (account.username, account.business_name, account.account_type.lower())
                for account in network.accounts.values()
            ],
            scopes=[(scope, MEANINGS[scope], True) for scope in scopes],
            pick=False,
            asked=asked,
            up=UP,
        )

    def render_refusal(self, message: str) -> str:
        return render_template("refused.html", message=message, up=UP)

    def new_code(self, network: PinterestSandbox) -> str:  # noqa: ARG002
        return secrets.token_hex(20)


authorize = PinterestConsent().authorize
