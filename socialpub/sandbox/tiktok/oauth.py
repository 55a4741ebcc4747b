"""Refreshing and revoking TikTok's tokens."""

from typing import TYPE_CHECKING

from socialpub.sandbox.call import Answer, Call, Refusal, answer_json

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok


def token(tiktok: "TikTok", call: Call) -> Answer:
    form = _form(tiktok, call)
    if form.get("grant_type") != "refresh_token":
        # The consent page comes with a later room; a code cannot exist yet.
        kind = "invalid_grant" if form.get("grant_type") == "authorization_code" else "unsupported_grant_type"
        raise Refusal(tiktok.oauth_error(kind, "Authorization code is invalid or the grant type is not supported."))
    if not form.get("refresh_token"):
        raise Refusal(tiktok.oauth_error("invalid_request", "refresh_token is missing."))
    old = tiktok.tokens.by_refresh(form["refresh_token"])
    if old is None or not tiktok.tokens.may_refresh(old, form["client_key"]):
        raise Refusal(tiktok.oauth_error("invalid_grant", "Refresh token is invalid or expired."))
    if tiktok.rotates:
        tiktok.tokens.spend(old, access_survives=True)
    kept = None if tiktok.rotates else old.refresh
    new = tiktok.issue(old.account_id, old.scopes, form["client_key"], refresh=kept, family=old.family)
    return answer_json(
        200,
        {
            "open_id": new.account_id,
            "scope": ",".join(new.scopes),
            "access_token": new.access,
            "expires_in": tiktok.access_seconds,
            "refresh_token": new.refresh,
            "refresh_expires_in": tiktok.refresh_seconds,
            "token_type": "Bearer",
        },
    )


def revoke(tiktok: "TikTok", call: Call) -> Answer:
    form = _form(tiktok, call)
    found = tiktok.tokens.bearer(form.get("token"))
    if found is None:
        raise Refusal(tiktok.oauth_error("invalid_request", "token is missing or not an access token."))
    tiktok.tokens.end_family(found.family)
    return answer_json(200, {})


def _form(tiktok: "TikTok", call: Call) -> dict[str, str]:
    if call.content_type != "application/x-www-form-urlencoded":
        raise Refusal(tiktok.oauth_error("invalid_request", "Only application/x-www-form-urlencoded is supported."))
    form = call.form()
    if not form.get("client_key") or not form.get("client_secret"):
        raise Refusal(tiktok.oauth_error("invalid_client", "Client key or secret is incorrect."))
    return form
