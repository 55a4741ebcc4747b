"""TikTok's token endpoint: exchange, refresh, revocation."""

import base64
import hashlib
from typing import Any

from socialpub.sandbox.reply import Refusal, Reply, json_reply
from socialpub.sandbox.request import FORM, SandboxRequest
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tokens import Token


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
