"""The consent page and the token endpoint of Pinterest."""

from typing import Any, ClassVar

from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest
from socialpub.sandbox.oauth import NetworkAuthorization
from socialpub.sandbox.pinterest.network import PinterestAccount, PinterestSandbox, invalid, refused

SCOPES = {
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


class PinterestAuthorization(NetworkAuthorization[PinterestSandbox]):
    """Revocation is refused to ordinary users."""

    paths = ("/oauth/", "/v5/oauth/token", "/v5/oauth/token/revoke")
    client_id_fields = ("client_id", "consumer_id")
    meanings: ClassVar = SCOPES

    def note(self, account: PinterestAccount) -> str:
        return account.account_type.lower()

    def refusal(self, network: PinterestSandbox, reason: str, name: str = "") -> Refusal:  # noqa: ARG002
        if reason in ("client", "code", "redirect_uri", "refresh_token"):
            return refused("authentication_failed")
        missing = {"form": "request body", "grant_type": "or unknown grant_type in the request body"}
        wrong = missing.get(reason, f"{name} in the request body")
        return invalid(400, 1, f"Missing {wrong}.")

    def facts(self, network: PinterestSandbox, pair: Token, grant_type: str) -> dict[str, Any]:
        return {
            "access_token": pair.access,
            "response_type": grant_type,
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "scope": " ".join(pair.scopes),
            "refresh_token": pair.refresh,
            "refresh_token_expires_in": int(pair.refresh_expires_at - network.timestamp()),
            "refresh_token_expires_at": int(pair.refresh_expires_at),
        }

    def revoke(self, network: PinterestSandbox, request: SandboxRequest) -> Reply:
        """Refuse, as the real Pinterest does. Nothing is revoked."""
        self.client(network, request)
        raise refused("not_permitted")
