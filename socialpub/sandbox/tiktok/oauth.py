"""The consent page and the token endpoint of TikTok."""

from typing import Any, ClassVar

from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import NetworkAuthorization
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tiktok.tasks import TikTokAccount

SCOPES = {
    "user.info.basic": "See your avatar and display name",
    "user.info.profile": "See your username, bio and profile link",
    "user.info.stats": "See your follower, like and video counts",
    "video.list": "See your public videos",
    "video.publish": "Post to your profile",
    "video.upload": "Send drafts to your inbox",
}
REFUSALS = {
    "client": ("invalid_client", "Client key or secret is incorrect."),
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

    def note(self, account: TikTokAccount) -> str:
        return "private" if account.private else "public"

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied", "error_description": "User denied authorization", "errCode": "-2"}

    def refusal(self, network: TikTokSandbox, reason: str, name: str = "") -> Refusal:
        error, description = REFUSALS[reason]
        return Refusal(network.oauth_error(error, description.format(name)))

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
        token = network.tokens.bearer(form.get("token"))
        if token is None or token.client_id not in (None, client_id):
            raise Refusal(network.oauth_error("invalid_request", "token is missing or not an access token."))
        network.tokens.end_family(token.family)
        return json_reply(200, {})
