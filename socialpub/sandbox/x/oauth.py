"""X's token endpoint: exchange, refresh, revocation. PKCE is `S256` (base64url of the hash) or `plain`."""

import base64
import hashlib
import re

from socialpub.sandbox.apps import SandboxApp, basic_credentials
from socialpub.sandbox.authorization_codes import AuthorizationCode
from socialpub.sandbox.reply import Reply, json_reply
from socialpub.sandbox.request import FORM, SandboxRequest
from socialpub.sandbox.tokens import Token
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.network import XSandbox

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
