"""OAuth 2.0 of X: the consent page, the token endpoint, revocation."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from socialpub.sandbox import page
from socialpub.sandbox.call import Answer, Call, answer_html, answer_json, redirect
from socialpub.sandbox.x import apps, problems
from socialpub.sandbox.x.fields import SCOPES

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.x.network import X

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
BAD_CODE = "Value passed for the authorization code was invalid."
BAD_TOKEN = "Value passed for the token was invalid."


@dataclass(slots=True)
class Code:
    client_id: str
    redirect_uri: str
    account_id: str
    scopes: tuple[str, ...]
    challenge: str
    method: str
    expires_at: float


# --- consent ---------------------------------------------------------------------------------------------------------


def authorize(x: "X", call: Call) -> Answer:
    """GET shows the page (or answers at once with `auto_approve`); POST is its form, with `account` and `decision`."""
    asked = {**call.query(), **(call.form() if call.method == "POST" else {})}
    wrong = _complaint(x, call, asked)
    if wrong:
        return answer_html(400, page.render("x_refused.html", message=wrong))
    app = apps.find(x, asked["client_id"])
    assert app is not None
    if call.method == "POST":
        account = x.account_named(asked.get("account", ""))
        if asked.get("decision") != "allow" or account is None:
            return _return(asked, error="access_denied")
        return _return(asked, code=_issue_code(x, asked, account.id))
    chosen = x.account_named(x.auto_approve) if x.auto_approve else None
    if chosen is not None:
        return _return(asked, code=_issue_code(x, asked, chosen.id))
    accounts = [account for account in x.accounts.values() if not account.suspended]
    scopes = asked["scope"].split()
    return answer_html(
        200,
        page.render("x_consent.html", app=app.label, accounts=accounts, scopes=scopes, asked=asked, action=call.path),
    )


def _complaint(x: "X", call: Call, asked: dict[str, str]) -> str:
    app = apps.find(x, asked.get("client_id", ""))
    if app is None:
        return "client_id is missing or not known."
    if not apps.may_return_to(app, asked.get("redirect_uri", "")):
        return "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
    if asked.get("response_type") != "code":
        return "response_type must be code."
    if not 0 < len(asked.get("state", "")) <= 500:
        return "state must have 1 to 500 characters."
    scopes = asked.get("scope", "").split(" ")
    if re.search(r"(?:^|&)scope=[^&]*\+", call.raw_query) or not SCOPES.issuperset(scopes):
        return "invalid_scope: scope must be a list of known scopes, with %20 between them."
    method = asked.get("code_challenge_method", "plain")
    if method not in ("S256", "plain"):
        return "code_challenge_method must be S256 or plain."
    challenge = asked.get("code_challenge", "")
    if not (CHALLENGE if method == "S256" else VERIFIER).fullmatch(challenge):
        return "code_challenge is missing or has the wrong form."
    return ""


def _issue_code(x: "X", asked: dict[str, str], account_id: str) -> str:
    code = secrets.token_urlsafe(48)
    x.codes[code] = Code(
        asked["client_id"],
        asked["redirect_uri"],
        account_id,
        tuple(asked["scope"].split()),
        asked["code_challenge"],
        asked.get("code_challenge_method", "plain"),
        x.world.now().timestamp() + x.code_seconds,
    )
    return code


def _return(asked: dict[str, str], **result: str) -> Answer:
    uri = asked["redirect_uri"]
    return redirect(uri + ("&" if "?" in uri else "?") + urlencode({"state": asked["state"], **result}))


# --- tokens ----------------------------------------------------------------------------------------------------------


def token(x: "X", call: Call) -> Answer:
    form = _form(call)
    kind = form.get("grant_type")
    if kind == "authorization_code":
        pair = _exchange(x, call, form)
    elif kind == "refresh_token":
        pair = _refresh(x, call, form)
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
    return answer_json(200, answer, [("cache-control", "no-store")])


def _exchange(x: "X", call: Call, form: dict[str, str]) -> "Token":
    app = apps.authenticate(x, call, form)
    for name in ("code", "redirect_uri", "code_verifier"):
        if not form.get(name):
            raise problems.oauth(400, "invalid_request", f"Missing required parameter [{name}].")
    code = x.codes.pop(form["code"], None)
    if code is None or code.client_id != app.client_id or x.world.now().timestamp() >= code.expires_at:
        raise problems.oauth(400, "invalid_request", BAD_CODE)
    if code.redirect_uri != form["redirect_uri"]:
        message = "Value passed for the redirect uri did not match the uri of the authorization code."
        raise problems.oauth(400, "invalid_request", message)
    if not _verifies(code, form["code_verifier"]):
        raise problems.oauth(
            400, "invalid_request", "Value passed for the code verifier did not match the code challenge."
        )
    return x.issue(code.account_id, code.scopes, client_id=app.client_id)


def _verifies(code: Code, verifier: str) -> bool:
    if not VERIFIER.fullmatch(verifier):
        return False
    if code.method == "plain":
        return verifier == code.challenge
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == code.challenge


def _refresh(x: "X", call: Call, form: dict[str, str]) -> "Token":
    app = apps.authenticate(x, call, form)
    if not form.get("refresh_token"):
        raise problems.oauth(400, "invalid_request", "Missing required parameter [refresh_token].")
    old = x.tokens.by_refresh(form["refresh_token"])
    if old is None or not x.tokens.may_refresh(old, app.client_id):
        if old is not None and old.spent and x.kill_family_on_reuse:
            x.tokens.end_family(old.family)
        raise problems.oauth(400, "invalid_request", BAD_TOKEN)
    x.tokens.spend(old, access_survives=x.old_access_token_survives)
    return x.issue(old.account_id, old.scopes, client_id=app.client_id, family=old.family)


def revoke(x: "X", call: Call) -> Answer:
    form = _form(call)
    app = apps.authenticate(x, call, form)
    if not form.get("token"):
        raise problems.oauth(400, "invalid_request", "Missing required parameter [token].")
    x.tokens.revoke(form["token"], app.client_id)
    return answer_json(200, {"revoked": True})


def _form(call: Call) -> dict[str, str]:
    if call.content_type != "application/x-www-form-urlencoded":
        message = "The body must be application/x-www-form-urlencoded."
        raise problems.oauth(400, "invalid_request", message)
    return call.form()
