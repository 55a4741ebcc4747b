"""The consent page and the token endpoint of X."""

import base64
import hashlib
import re
from typing import Any, ClassVar

from socialpub.sandbox.memory import AuthorizationCode, Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, NetworkAuthorization
from socialpub.sandbox.x.models import XAccount
from socialpub.sandbox.x.network import XSandbox

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
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
    """PKCE is `S256` or `plain`."""

    paths = ("/i/oauth2/authorize", "/2/oauth2/token", "/2/oauth2/revoke")
    meanings: ClassVar = dict.fromkeys(SCOPES, "")
    # Encoded as `%20`, or as the `+` of X's own library.
    scope_mark = " "
    wrong_address = "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
    required = ("code", "redirect_uri", "code_verifier")

    def may_return_to(self, uri: str) -> bool:
        scheme, _, rest = uri.partition("://")
        host = rest.split("/", 1)[0].rsplit(":", 1)[0]
        return scheme in ("http", "https") and host not in ("", "localhost") and "#" not in uri

    def complaint(self, asked: Asked) -> str:
        if not 0 < len(asked.get("state", "")) <= 500:
            return "state must have 1 to 500 characters."
        method = asked.get("code_challenge_method", "plain")
        if method not in ("S256", "plain"):
            return "code_challenge_method must be S256 or plain."
        if not (CHALLENGE if method == "S256" else VERIFIER).fullmatch(asked.get("code_challenge", "")):
            return "code_challenge is missing or has the wrong form."
        return ""

    def note(self, account: XAccount) -> str:
        return "" if account.subscription_type == "None" else account.subscription_type

    def authenticate(self, network: XSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        """A confidential app sends Basic; a public one sends `client_id` in the body."""
        unauthorized = _error(401, "unauthorized_client", "Missing valid authorization header")
        if "authorization" not in request.headers:
            public = network.apps.get(form.get("client_id", ""))
            if public is None or public.client_secret is not None:
                raise unauthorized
            return public.client_id
        credentials = request.basic
        if credentials is None or any(sign.isspace() for sign in "".join(credentials)):
            raise unauthorized
        client_id, secret = credentials
        app = network.find_app(client_id)
        if app is None:
            raise _error(401, "invalid_client", "Value passed for the client id was invalid.")
        if not app.accepts(secret) or "client_secret" in form:
            raise unauthorized
        if form.get("client_id", client_id) != client_id:
            raise _error(400, "invalid_request", "Value passed for the client id does not match the header.")
        return client_id

    def refusal(self, network: XSandbox, reason: str, name: str = "") -> Refusal:  # noqa: ARG002
        error = "unsupported_grant_type" if reason == "grant_type" and name else "invalid_request"
        return _error(400, error, REFUSALS[reason].format(name))

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        shown = verifier if code.method == "plain" else digest
        return bool(VERIFIER.fullmatch(verifier)) and shown == code.challenge

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


def _error(status: int, error: str, description: str) -> Refusal:
    answer = {"error": error, "error_description": description}
    return Refusal(json_reply(status, answer, [("cache-control", "no-store")]))
