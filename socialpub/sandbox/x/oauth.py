"""X's OAuth: the consent page and the token endpoint. PKCE is `S256` or `plain`."""

import base64
import hashlib
import re
import secrets
from typing import ClassVar

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, ConsentPage, TokenEndpoint
from socialpub.sandbox.tokens import AuthorizationCode, SandboxApp, Token, basic_credentials
from socialpub.sandbox.x import problems
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


class XConsent(ConsentPage[XSandbox]):
    label = "X"
    meanings: ClassVar = dict.fromkeys(SCOPES, "")
    # Encoded as `%20`, or as the `+` of X's own library.
    scope_mark = " "

    def complaint(self, app: SandboxApp, asked: Asked) -> str:
        if not _may_return_to(app, asked.get("redirect_uri", "")):
            return "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        if not 0 < len(asked.get("state", "")) <= 500:
            return "state must have 1 to 500 characters."
        method = asked.get("code_challenge_method", "plain")
        if method not in ("S256", "plain"):
            return "code_challenge_method must be S256 or plain."
        if not (CHALLENGE if method == "S256" else VERIFIER).fullmatch(asked.get("code_challenge", "")):
            return "code_challenge is missing or has the wrong form."
        return self.scopes_complaint(asked)

    def accounts(self, network: XSandbox) -> list[tuple[str, str, str]]:
        return [
            (one.username, one.name, "" if one.subscription_type == "None" else one.subscription_type)
            for one in network.accounts.values()
            if not one.suspended
        ]

    def new_code(self, network: XSandbox) -> str:  # noqa: ARG002
        return secrets.token_urlsafe(48)


def _may_return_to(app: SandboxApp, uri: str) -> bool:
    """Return whether it is a registered address (any, when none is registered), and not on `localhost`."""
    scheme, _, rest = uri.partition("://")
    host = rest.split("/", 1)[0].rsplit(":", 1)[0]
    if scheme not in ("http", "https") or not host or host == "localhost" or "#" in uri:
        return False
    return not app.redirect_uris or uri in app.redirect_uris


class XTokens(TokenEndpoint[XSandbox]):
    required = ("code", "redirect_uri", "code_verifier")

    def authenticate(self, network: XSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        """A confidential app sends Basic; a public one sends `client_id` in the body."""
        refused = problems.oauth(401, "unauthorized_client", "Missing valid authorization header")
        header = request.headers.get("authorization")
        if header is None:
            public = network.apps.get(form.get("client_id", ""))
            if public is None or public.client_secret is not None:
                raise refused
            return public.client_id
        credentials = basic_credentials(header)
        if credentials is None or any(sign.isspace() for sign in "".join(credentials)):
            raise refused
        client_id, secret = credentials
        app = network.find_app(client_id)
        if app is None:
            raise problems.oauth(401, "invalid_client", "Value passed for the client id was invalid.")
        if not app.accepts(secret) or "client_secret" in form:
            raise refused
        if form.get("client_id", client_id) != client_id:
            raise problems.oauth(400, "invalid_request", "Value passed for the client id does not match the header.")
        return client_id

    def refusal(self, network: XSandbox, reason: str, name: str = "") -> Refusal:  # noqa: ARG002
        error = "unsupported_grant_type" if reason == "grant_type" and name else "invalid_request"
        return problems.oauth(400, error, REFUSALS[reason].format(name))

    def verify(self, network: XSandbox, code: AuthorizationCode, verifier: str) -> None:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        shown = verifier if code.method == "plain" else digest
        if not VERIFIER.fullmatch(verifier) or shown != code.challenge:
            raise self.refusal(network, "verifier")

    def renew(self, network: XSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id):
            if old.spent and network.kill_family_on_reuse:
                network.tokens.end_family(old.family)
            return None
        network.tokens.spend(old, access_survives=network.old_access_token_survives)
        return network.issue(old.account_id, old.scopes, client_id, family=old.family)

    def answer(self, network: XSandbox, pair: Token, grant_type: str) -> Reply:  # noqa: ARG002
        answer = {
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "access_token": pair.access,
            "scope": " ".join(pair.scopes),
        }
        return json_reply(200, answer | ({"refresh_token": pair.refresh} if pair.refresh else {}))

    def revoke(self, network: XSandbox, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        self.require(network, form, "token")
        network.tokens.revoke(form["token"], client_id)
        return json_reply(200, {"revoked": True})


authorize = XConsent().authorize
token, revoke = XTokens().token, XTokens().revoke
