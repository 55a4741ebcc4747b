"""The consent page and the token endpoint of TikTok."""

import hashlib
import re
import secrets
from typing import Any, ClassVar
from urllib.parse import urlsplit

from socialpub.sandbox.memory import AuthorizationCode, Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, NetworkAuthorization, is_desktop
from socialpub.sandbox.tiktok.models import TikTokAccount
from socialpub.sandbox.tiktok.network import TikTokSandbox

CHALLENGE = re.compile(r"[0-9a-f]{64}")
SCOPES = {
    "user.info.basic": "See your avatar and display name",
    "user.info.profile": "See your username, bio and profile link",
    "user.info.stats": "See your follower, like and video counts",
    "video.list": "See your public videos",
    "video.publish": "Post to your profile",
    "video.upload": "Send drafts to your inbox",
}
REFUSALS = {
    "form": ("invalid_request", "Only a form is supported."),
    "grant_type": ("unsupported_grant_type", "The grant type is not supported."),
    "missing": ("invalid_request", "{} is missing."),
    "code": ("invalid_grant", "Authorization code is expired or was used."),
    "redirect_uri": ("invalid_request", "Redirect_uri is not matched with the uri of the code."),
    "verifier": ("invalid_request", "Code verifier or code challenge is invalid."),
    "refresh_token": ("invalid_grant", "Refresh token is invalid or expired."),
}


class TikTokAuthorization(NetworkAuthorization[TikTokSandbox]):
    """The user picks the permissions."""

    paths = ("/v2/auth/authorize/", "/v2/oauth/token/", "/v2/oauth/revoke/")
    client_id_fields = ("client_key",)
    meanings: ClassVar = SCOPES
    always_given = "user.info.basic"
    wrong_address = "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        if not parts.hostname or "?" in uri or "#" in uri or len(uri) >= 512:
            return False
        if is_desktop(uri):
            return parts.scheme in ("http", "https") and parts.port is not None
        return parts.scheme == "https"

    def complaint(self, asked: Asked) -> str:
        if not asked.get("state"):
            return "state is missing."
        if is_desktop(asked["redirect_uri"]) or "code_challenge" in asked:
            if not CHALLENGE.fullmatch(asked.get("code_challenge", "")):
                return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
            if asked.get("code_challenge_method") != "S256":
                return "code_challenge_method must be S256."
        return ""

    def note(self, account: TikTokAccount) -> str:
        return "private" if account.private else "public"

    def new_code(self) -> str:
        # The real codes contain such characters.
        return secrets.token_urlsafe(40) + "*1!4823.e1"

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied", "error_description": "User denied authorization", "errCode": "-2"}

    def authenticate(self, network: TikTokSandbox, request: SandboxRequest, form: dict[str, str]) -> str:  # noqa: ARG002
        app = network.find_app(form.get("client_key", ""))
        if app is None or not app.accepts(form.get("client_secret", "")):
            raise Refusal(network.oauth_error("invalid_client", "Client key or secret is incorrect."))
        return app.client_id

    def refusal(self, network: TikTokSandbox, reason: str, name: str = "") -> Refusal:
        error, description = REFUSALS[reason]
        return Refusal(network.oauth_error(error, description.format(name)))

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        return code.challenge in ("", hashlib.sha256(verifier.encode()).hexdigest())

    def facts(self, network: TikTokSandbox, pair: Token, grant_type: str) -> dict[str, Any]:  # noqa: ARG002
        return {
            "open_id": pair.account_id,
            "scope": ",".join(pair.scopes),
            "access_token": pair.access,
            "expires_in": network.access_seconds,
            "refresh_token": pair.refresh,
            "refresh_expires_in": int(pair.refresh_expires_at - network.timestamp()),
            "token_type": "Bearer",
        }

    def revoke(self, network: TikTokSandbox, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        found = network.tokens.bearer(form.get("token"))
        if found is None or found.client_id not in (None, client_id):
            raise Refusal(network.oauth_error("invalid_request", "token is missing or not an access token."))
        network.tokens.end_family(found.family)
        return json_reply(200, {})
