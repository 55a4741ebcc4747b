"""X's OAuth: the consent page and the token endpoint. PKCE is `S256` or `plain`."""

import base64
import hashlib
import re
import secrets

from socialpub.sandbox.messages import FORM, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, ConsentPage
from socialpub.sandbox.pages import render_template
from socialpub.sandbox.tokens import AuthorizationCode, SandboxApp, Token, basic_credentials
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.requests import SCOPES

# MERGED from sandbox/x/oauth.py: X's token endpoint: exchange, refresh, revocation. PKCE is `S256` (base64url of t

BAD_CODE = "Value passed for the authorization code was invalid."
BAD_TOKEN = "Value passed for the token was invalid."
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def token(x: XSandbox, request: SandboxRequest) -> Reply:
    form = _form(request)
    kind = form.get("grant_type")
    if kind == "authorization_code":
        pair = _exchange(x, request, form)
    elif kind == "refresh_token":
        pair = _refresh(x, request, form)
    else:
        raise problems.oauth(400, "unsupported_grant_type" if kind else "invalid_request", "Bad grant_type.")
    answer = {
        "token_type": "bearer",
        "expires_in": x.access_seconds,
        "access_token": pair.access,
        "scope": " ".join(pair.scopes),
    }
    if pair.refresh is not None:
        answer["refresh_token"] = pair.refresh
    return json_reply(200, answer, [("cache-control", "no-store")])


def _exchange(x: XSandbox, request: SandboxRequest, form: dict[str, str]) -> Token:
    app = _authenticate(x, request, form)
    for name in ("code", "redirect_uri", "code_verifier"):
        _require(form, name)
    code = x.codes.redeem(form["code"], app.client_id)
    if code is None:
        raise problems.oauth(400, "invalid_request", BAD_CODE)
    if code.redirect_uri != form["redirect_uri"]:
        message = "Value passed for the redirect uri did not match the uri of the authorization code."
        raise problems.oauth(400, "invalid_request", message)
    if not verifies(code, form["code_verifier"]):
        raise problems.oauth(
            400, "invalid_request", "Value passed for the code verifier did not match the code challenge."
        )
    return x.issue(code.account_id, code.scopes, app.client_id)


def _refresh(x: XSandbox, request: SandboxRequest, form: dict[str, str]) -> Token:
    app = _authenticate(x, request, form)
    _require(form, "refresh_token")
    old = x.tokens.by_refresh(form["refresh_token"])
    if old is None or not x.tokens.may_refresh(old, app.client_id):
        if old is not None and old.spent and x.kill_family_on_reuse:
            x.tokens.end_family(old.family)
        raise problems.oauth(400, "invalid_request", BAD_TOKEN)
    x.tokens.spend(old, access_survives=x.old_access_token_survives)
    return x.issue(old.account_id, old.scopes, app.client_id, family=old.family)


def revoke(x: XSandbox, request: SandboxRequest) -> Reply:
    form = _form(request)
    app = _authenticate(x, request, form)
    _require(form, "token")
    x.tokens.revoke(form["token"], app.client_id)
    return json_reply(200, {"revoked": True})


def _form(request: SandboxRequest) -> dict[str, str]:
    if request.content_type != FORM:
        raise problems.oauth(400, "invalid_request", f"The body must be {FORM}.")
    return request.form()


def _require(form: dict[str, str], name: str) -> None:
    if not form.get(name):
        raise problems.oauth(400, "invalid_request", f"Missing required parameter [{name}].")


def _authenticate(x: XSandbox, request: SandboxRequest, form: dict[str, str]) -> SandboxApp:
    """The app behind the call: Basic for a confidential one, `client_id` in the body for a public one."""
    refusal = problems.oauth(401, "unauthorized_client", "Missing valid authorization header")
    header = request.headers.get("authorization")
    if header is None:
        app = x.apps.get(form.get("client_id", ""))
        if app is None or app.client_secret is not None:
            raise refusal
        return app
    credentials = basic_credentials(header)
    if credentials is None or any(sign.isspace() for sign in "".join(credentials)):
        raise refusal
    client_id, secret = credentials
    app = x.find_app(client_id)
    if app is None:
        raise problems.oauth(401, "invalid_client", "Value passed for the client id was invalid.")
    if not app.accepts(secret) or "client_secret" in form:
        raise refusal
    if form.get("client_id", client_id) != client_id:
        raise problems.oauth(400, "invalid_request", "Value passed for the client id does not match the header.")
    return app


def verifies(code: AuthorizationCode, verifier: str) -> bool:
    if not VERIFIER.fullmatch(verifier):
        return False
    if code.method == "plain":
        return verifier == code.challenge
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == code.challenge


# MERGED from sandbox/x/consent.py: X's consent page: choose an account, give access or not.


class XConsent(ConsentPage[XSandbox, SandboxApp]):
    def complaint(self, app: SandboxApp, request: SandboxRequest, asked: Asked) -> str:  # noqa: ARG002
        if not _may_return_to(app, asked.get("redirect_uri", "")):
            return "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        if not 0 < len(asked.get("state", "")) <= 500:
            return "state must have 1 to 500 characters."
        # Between them `%20`, or the `+` of X's own library.
        if not SCOPES.issuperset(asked.get("scope", "").split(" ")):
            return "invalid_scope: scope must be a list of known scopes, with a space between them."
        method = asked.get("code_challenge_method", "plain")
        if method not in ("S256", "plain"):
            return "code_challenge_method must be S256 or plain."
        challenge = asked.get("code_challenge", "")
        if not (CHALLENGE if method == "S256" else VERIFIER).fullmatch(challenge):
            return "code_challenge is missing or has the wrong form."
        return ""

    def scopes(self, asked: Asked) -> list[str]:
        return asked["scope"].split()

    def render(
        self, network: XSandbox, app: SandboxApp, request: SandboxRequest, asked: Asked, scopes: list[str]
    ) -> str:
        accounts = [account for account in network.accounts.values() if not account.suspended]
        return render_template(
            "x_consent.html", app=app.label, accounts=accounts, scopes=scopes, asked=asked, action=request.path
        )

    def render_refusal(self, message: str) -> str:
        return render_template("x_refused.html", message=message)

    def new_code(self, network: XSandbox) -> str:  # noqa: ARG002
        return secrets.token_urlsafe(48)

    def redirect_parameters(self, asked: Asked, result: dict[str, str]) -> dict[str, str]:
        return {"state": asked["state"], **result}


authorize = XConsent().authorize


def _may_return_to(app: SandboxApp, uri: str) -> bool:
    """Exactly a registered address (any, when none is registered); never one on `localhost`."""
    scheme, _, rest = uri.partition("://")
    host = rest.split("/", 1)[0].rsplit(":", 1)[0]
    if scheme not in ("http", "https") or not host or host == "localhost" or "#" in uri:
        return False
    return not app.redirect_uris or uri in app.redirect_uris
