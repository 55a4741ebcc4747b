"""TikTok's OAuth: the consent page, and the token endpoint with exchange, refresh and revocation."""

import base64
import hashlib
import re
import secrets
from typing import Any

from socialpub.sandbox.messages import FORM, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, ConsentPage
from socialpub.sandbox.pages import render_template
from socialpub.sandbox.tiktok.models import SCOPES, TikTokApp, may_return_to, platform_of
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tokens import Token

# MERGED from sandbox/tiktok/oauth.py: TikTok's token endpoint: exchange, refresh, revocation.


def token(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
    form = _form(tiktok, request)
    match form.get("grant_type"):
        case "authorization_code":
            new = _exchange(tiktok, form)
        case "refresh_token":
            new = _refresh(tiktok, form)
        case None | "":
            raise Refusal(tiktok.oauth_error("invalid_request", "grant_type is missing."))
        case _:
            raise Refusal(tiktok.oauth_error("unsupported_grant_type", "The grant type is not supported."))
    answer: dict[str, Any] = {
        "open_id": new.account_id,
        "scope": ",".join(new.scopes),
        "access_token": new.access,
        "expires_in": tiktok.access_seconds,
        "refresh_token": new.refresh,
        "refresh_expires_in": int(new.refresh_expires_at - tiktok.timestamp()),
        "token_type": "Bearer",
    }
    if tiktok.omits_refresh_token and form["grant_type"] == "refresh_token":
        del answer["refresh_token"], answer["refresh_expires_in"]
    return json_reply(200, answer, [("cache-control", "no-store")])


def _exchange(tiktok: TikTokSandbox, form: dict[str, str]) -> Token:
    for name in ("code", "redirect_uri"):
        _require(tiktok, form, name)
    code = tiktok.codes.redeem(form["code"], form["client_key"])
    if code is None:
        raise Refusal(tiktok.oauth_error("invalid_grant", "Authorization code is expired or was used."))
    if code.redirect_uri != form["redirect_uri"]:
        raise Refusal(tiktok.oauth_error("invalid_request", "Redirect_uri is not matched with the uri of the code."))
    if code.challenge:
        _verify(tiktok, code.challenge, form.get("code_verifier", ""))
    return tiktok.issue(code.account_id, code.scopes, form["client_key"])


def _verify(tiktok: TikTokSandbox, challenge: str, verifier: str) -> None:
    digest = hashlib.sha256(verifier.encode()).digest()
    if digest.hex() == challenge:
        return
    refused = tiktok.oauth_error("invalid_request", "Code verifier or code challenge is invalid.")
    if not verifier:
        hint = "code_verifier is missing"
    elif base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge:
        hint = "the challenge is base64url; TikTok wants lower-case hex"
    else:
        hint = "the verifier does not belong to this challenge"
    refused.headers.append(("x-sandbox-hint", hint))
    raise Refusal(refused)


def _refresh(tiktok: TikTokSandbox, form: dict[str, str]) -> Token:
    _require(tiktok, form, "refresh_token")
    old = tiktok.tokens.by_refresh(form["refresh_token"])
    if old is None or not _works(tiktok, old, form["client_key"]):
        raise Refusal(tiktok.oauth_error("invalid_grant", "Refresh token is invalid or expired."))
    keeps = not tiktok.rotates or tiktok.omits_refresh_token
    if not keeps and not old.spent:
        tiktok.spent_at[form["refresh_token"]] = tiktok.timestamp()
        tiktok.tokens.spend(old, access_survives=tiktok.old_access_token_survives)
    left = old.refresh_expires_at - tiktok.timestamp()
    return tiktok.issue(
        old.account_id,
        old.scopes,
        form["client_key"],
        refresh=old.refresh if keeps else None,
        family=old.family,
        refresh_seconds=None if tiktok.refresh_restarts else left,
    )


def _works(tiktok: TikTokSandbox, old: Token, client_key: str) -> bool:
    if tiktok.tokens.may_refresh(old, client_key):
        return True
    used_at = tiktok.spent_at.get(old.refresh or "")
    return (
        old.spent
        and not old.dead
        and old.client_id in (None, client_key)
        and used_at is not None
        and tiktok.timestamp() - used_at < tiktok.refresh_grace_seconds
    )


def revoke(tiktok: TikTokSandbox, request: SandboxRequest) -> Reply:
    form = _form(tiktok, request)
    found = tiktok.tokens.bearer(form.get("token"))
    if found is None or found.client_id not in (None, form["client_key"]):
        raise Refusal(tiktok.oauth_error("invalid_request", "token is missing or not an access token."))
    tiktok.tokens.end_family(found.family)
    return json_reply(200, {})


def _form(tiktok: TikTokSandbox, request: SandboxRequest) -> dict[str, str]:
    if request.content_type != FORM:
        raise Refusal(tiktok.oauth_error("invalid_request", f"Only {FORM} is supported."))
    form = request.form()
    app = tiktok.find_app(form.get("client_key", ""))
    if app is None or not app.accepts(form.get("client_secret", "")):
        raise Refusal(tiktok.oauth_error("invalid_client", "Client key or secret is incorrect."))
    return form


def _require(tiktok: TikTokSandbox, form: dict[str, str], name: str) -> None:
    if not form.get(name):
        raise Refusal(tiktok.oauth_error("invalid_request", f"{name} is missing."))


# MERGED from sandbox/tiktok/consent.py: TikTok's consent page, where the user picks an account and which permissio

CHALLENGE = re.compile(r"[0-9a-f]{64}")
ALWAYS_GIVEN = "user.info.basic"
MEANINGS = {
    "user.info.basic": "See your avatar and display name",
    "user.info.profile": "See your username, bio and profile link",
    "user.info.stats": "See your follower, like and video counts",
    "video.list": "See your public videos",
    "video.publish": "Post to your profile",
    "video.upload": "Send drafts to your inbox",
}
UP = "../../../../"


class TikTokConsent(ConsentPage[TikTokSandbox, TikTokApp]):
    client_id_fields = ("client_key",)

    def complaint(self, app: TikTokApp, request: SandboxRequest, asked: Asked) -> str:  # noqa: ARG002
        uri = asked.get("redirect_uri", "")
        if not may_return_to(app, uri):
            return "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        if not asked.get("state"):
            return "state is missing."
        scopes = asked.get("scope", "").split(",")
        if not set(scopes) <= set(app.scopes) or not set(scopes) <= set(SCOPES):
            return "scope must be a comma-separated list of scopes that the app has."
        if platform_of(app, uri) == "desktop" or "code_challenge" in asked:
            if not CHALLENGE.fullmatch(asked.get("code_challenge", "")):
                return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
            if asked.get("code_challenge_method") != "S256":
                return "code_challenge_method must be S256."
        return ""

    def scopes(self, asked: Asked) -> list[str]:
        return asked["scope"].split(",")

    def chosen_scopes(self, asked: Asked, scopes: list[str]) -> list[str]:
        return [scope for scope in scopes if scope == ALWAYS_GIVEN or f"grant:{scope}" in asked]

    def admission_complaint(self, app: TikTokApp, username: str) -> str:
        if app.target_users and username not in app.target_users:
            return "unauthorized_client: this user is not a target user of the app's sandbox."
        return ""

    def render(
        self,
        network: TikTokSandbox,
        app: TikTokApp,
        request: SandboxRequest,  # noqa: ARG002
        asked: Asked,
        scopes: list[str],
    ) -> str:
        return render_template(
            "consent.html",
            network="TikTok",
            app=app.label,
            accounts=[
                (account.username, account.display_name, "private" if account.private else "public")
                for account in network.accounts.values()
            ],
            scopes=[(scope, MEANINGS[scope], scope == ALWAYS_GIVEN) for scope in scopes],
            pick=True,
            asked=asked,
            up=UP,
        )

    def render_refusal(self, message: str) -> str:
        return render_template("refused.html", message=message, up=UP)

    def new_code(self, network: TikTokSandbox) -> str:
        return secrets.token_urlsafe(40) + ("*1!4823.e1" if network.awkward_codes else "")

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied", "error_description": "User denied authorization", "errCode": "-2"}


authorize = TikTokConsent().authorize
