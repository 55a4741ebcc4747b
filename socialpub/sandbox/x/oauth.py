"""The consent page and the token endpoint of X."""

from typing import Any, ClassVar

from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import NetworkAuthorization
from socialpub.sandbox.x.network import XAccount, XSandbox

SCOPES = (
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
)  # fmt: skip
REFUSALS = {
    "form": "The body must be a form.",
    "grant_type": "Bad grant_type.",
    "missing": "Missing required parameter [{}].",
    "code": "Value passed for the authorization code was invalid.",
    "redirect_uri": "Value passed for the redirect uri did not match the uri of the authorization code.",
    "verifier": "Value passed for the code verifier did not match the code challenge.",
    "refresh_token": "Value passed for the token was invalid.",
}


class XAuthorization(NetworkAuthorization[XSandbox]):
    paths = ("/i/oauth2/authorize", "/2/oauth2/token", "/2/oauth2/revoke")
    meanings: ClassVar = dict.fromkeys(SCOPES, "")
    # Encoded as `%20`, or as the `+` of X's own library.
    scope_mark = " "

    def note(self, account: XAccount) -> str:
        return "" if account.subscription_type == "None" else account.subscription_type

    def refusal(self, network: XSandbox, reason: str, name: str = "") -> Refusal:  # noqa: ARG002
        if reason == "client":
            return error(401, "unauthorized_client", "Missing valid authorization header")
        kind = "unsupported_grant_type" if reason == "grant_type" and name else "invalid_request"
        return error(400, kind, REFUSALS[reason].format(name))

    def facts(self, network: XSandbox, pair: Token, grant_type: str) -> dict[str, Any]:  # noqa: ARG002
        facts = {
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "access_token": pair.access,
            "scope": " ".join(pair.scopes),
        }
        return facts | ({"refresh_token": pair.refresh} if pair.refresh else {})

    def revoke(self, network: XSandbox, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        self.require(network, form, "token")
        network.tokens.revoke(form["token"], client_id)
        return json_reply(200, {"revoked": True})


def error(status: int, kind: str, description: str) -> Refusal:
    answer = {"error": kind, "error_description": description}
    return Refusal(json_reply(status, answer, [("cache-control", "no-store")]))
