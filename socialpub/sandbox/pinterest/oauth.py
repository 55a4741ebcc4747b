"""Pinterest's OAuth: the consent page and the token endpoint. Revocation is refused to ordinary users."""

import secrets
from typing import Any, ClassVar
from urllib.parse import urlsplit

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest
from socialpub.sandbox.oauth import Asked, ConsentPage, TokenEndpoint
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.pinterest.requests import count
from socialpub.sandbox.tokens import SandboxApp, Token, basic_credentials

LOOPBACK = ("localhost", "127.0.0.1", "::1")
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


class PinterestConsent(ConsentPage[PinterestSandbox]):
    label = "Pinterest"
    client_id_fields = ("client_id", "consumer_id")
    meanings: ClassVar = MEANINGS

    def complaint(self, app: SandboxApp, asked: Asked) -> str:
        uri = asked.get("redirect_uri", "")
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        if not parts.hostname or not safe or parts.fragment or (app.redirect_uris and uri not in app.redirect_uris):
            return "redirect_uri is missing, not https, or not one of the app's, letter by letter."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        return self.scopes_complaint(asked)

    def accounts(self, network: PinterestSandbox) -> list[tuple[str, str, str]]:
        return [(one.username, one.business_name, one.account_type.lower()) for one in network.accounts.values()]

    def new_code(self, network: PinterestSandbox) -> str:  # noqa: ARG002
        return secrets.token_hex(20)


class PinterestTokens(TokenEndpoint[PinterestSandbox]):
    def authenticate(self, network: PinterestSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        client_id, secret = basic_credentials(request.headers.get("authorization", "")) or ("", "")
        app = network.find_app(client_id)
        if app is None or not app.accepts(secret):
            raise replies.refused(network, "authentication_failed")
        if not form:
            raise self.refusal(network, "form")
        count(network, "org_read", client_id, "")
        return client_id

    def refusal(self, network: PinterestSandbox, reason: str, name: str = "") -> Refusal:
        if reason in ("code", "redirect_uri", "refresh_token"):
            return replies.refused(network, "authentication_failed")
        missing = {"form": "request body", "grant_type": "or unknown grant_type in the request body"}
        wrong = missing.get(reason, f"{name} in the request body")
        return replies.invalid(network, 400, 1, f"Missing {wrong}.")

    def renew(self, network: PinterestSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id):
            return None
        if not network.old_refresh_survives and not network.omits_refresh_token:
            network.tokens.spend(old, access_survives=True)
        kept = old.refresh if network.omits_refresh_token else None
        return network.issue(old.account_id, old.scopes, client_id, family=old.family, refresh=kept)

    def answer(self, network: PinterestSandbox, pair: Token, grant_type: str) -> Reply:
        answer: dict[str, Any] = {
            "access_token": pair.access,
            "refresh_token": pair.refresh,
            "response_type": grant_type,
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "refresh_token_expires_in": int(pair.refresh_expires_at - network.timestamp()),
            "refresh_token_expires_at": int(pair.refresh_expires_at),
            "scope": " ".join(pair.scopes),
        }
        if network.omits_refresh_token and grant_type == "refresh_token":
            for name in ("refresh_token", "refresh_token_expires_in", "refresh_token_expires_at"):
                del answer[name]
        return replies.ok(network, 200, answer)

    def revoke(self, network: PinterestSandbox, request: SandboxRequest) -> Reply:
        """Refuse, as the real Pinterest does. Nothing is revoked."""
        self.client(network, request)
        return replies.named_error(network, "not_permitted")


authorize = PinterestConsent().authorize
token, revoke = PinterestTokens().token, PinterestTokens().revoke
