"""TikTok's token endpoint: exchange, refresh, revocation."""

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, Call, Refusal, answer_json
from socialpub.sandbox.tiktok import apps

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok
    from socialpub.sandbox.tokens import Token


def token(tiktok: "TikTok", call: Call) -> Answer:
    form = _form(tiktok, call)
    match form.get("grant_type"):
        case "authorization_code":
            new = _exchange(tiktok, form)
        case "refresh_token":
            new = _refresh(tiktok, form)
        case None | "":
            raise Refusal(tiktok.oauth_error("invalid_request", "grant_type is missing."))
        case _:
            raise Refusal(tiktok.oauth_error("unsupported_grant_type", "The grant type is not supported."))
    now = tiktok.world.now().timestamp()
    answer: dict[str, Any] = {
        "open_id": new.account_id,
        "scope": ",".join(new.scopes),
        "access_token": new.access,
        "expires_in": tiktok.access_seconds,
        "refresh_token": new.refresh,
        "refresh_expires_in": int(new.refresh_expires_at - now),
        "token_type": "Bearer",
    }
    if tiktok.omits_refresh_token and form["grant_type"] == "refresh_token":
        del answer["refresh_token"], answer["refresh_expires_in"]
    return answer_json(200, answer, [("cache-control", "no-store")])


def _exchange(tiktok: "TikTok", form: dict[str, str]) -> "Token":
    for name in ("code", "redirect_uri"):
        if not form.get(name):
            raise Refusal(tiktok.oauth_error("invalid_request", f"{name} is missing."))
    code = tiktok.codes.pop(form["code"], None)
    if (
        code is None
        or code.client_key != form["client_key"]
        or tiktok.world.now().timestamp() >= code.expires_at
        or code.open_id not in tiktok.users
    ):
        raise Refusal(tiktok.oauth_error("invalid_grant", "Authorization code is expired or was used."))
    if code.redirect_uri != form["redirect_uri"]:
        raise Refusal(tiktok.oauth_error("invalid_request", "Redirect_uri is not matched with the uri of the code."))
    if code.challenge:
        _verify(tiktok, code.challenge, form.get("code_verifier", ""))
    return tiktok.issue(code.open_id, code.scopes, form["client_key"])


def _verify(tiktok: "TikTok", challenge: str, verifier: str) -> None:
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


def _refresh(tiktok: "TikTok", form: dict[str, str]) -> "Token":
    if not form.get("refresh_token"):
        raise Refusal(tiktok.oauth_error("invalid_request", "refresh_token is missing."))
    old = tiktok.tokens.by_refresh(form["refresh_token"])
    if old is None or not _works(tiktok, old, form["client_key"]):
        raise Refusal(tiktok.oauth_error("invalid_grant", "Refresh token is invalid or expired."))
    keeps = not tiktok.rotates or tiktok.omits_refresh_token
    if not keeps and not old.spent:
        tiktok.spent_at[form["refresh_token"]] = tiktok.world.now().timestamp()
        tiktok.tokens.spend(old, access_survives=tiktok.old_access_token_survives)
    left = old.refresh_expires_at - tiktok.world.now().timestamp()
    return tiktok.issue(
        old.account_id,
        old.scopes,
        form["client_key"],
        refresh=old.refresh if keeps else None,
        family=old.family,
        refresh_seconds=None if tiktok.refresh_restarts else left,
    )


def _works(tiktok: "TikTok", old: "Token", client_key: str) -> bool:
    if tiktok.tokens.may_refresh(old, client_key):
        return True
    now = tiktok.world.now().timestamp()
    used_at = tiktok.spent_at.get(old.refresh or "")
    return (
        old.spent
        and not old.dead
        and old.client_id in (None, client_key)
        and used_at is not None
        and now - used_at < tiktok.refresh_grace_seconds
    )


def revoke(tiktok: "TikTok", call: Call) -> Answer:
    form = _form(tiktok, call)
    found = tiktok.tokens.bearer(form.get("token"))
    if found is None or found.client_id not in (None, form["client_key"]):
        raise Refusal(tiktok.oauth_error("invalid_request", "token is missing or not an access token."))
    tiktok.tokens.end_family(found.family)
    return answer_json(200, {})


def _form(tiktok: "TikTok", call: Call) -> dict[str, str]:
    if call.content_type != "application/x-www-form-urlencoded":
        raise Refusal(tiktok.oauth_error("invalid_request", "Only application/x-www-form-urlencoded is supported."))
    form = call.form()
    app = apps.find(tiktok, form.get("client_key", ""))
    secret = form.get("client_secret", "")
    if app is None or not secret or (app.client_secret and secret != app.client_secret):
        raise Refusal(tiktok.oauth_error("invalid_client", "Client key or secret is incorrect."))
    return form
