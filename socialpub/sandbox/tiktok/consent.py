"""TikTok's consent page, where the user picks an account and which permissions to give."""

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from socialpub.sandbox import page
from socialpub.sandbox.call import Answer, Call, answer_html, redirect
from socialpub.sandbox.tiktok import apps

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

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


@dataclass(slots=True)
class Code:
    client_key: str
    redirect_uri: str
    open_id: str
    scopes: tuple[str, ...]
    challenge: str
    expires_at: float


def authorize(tiktok: "TikTok", call: Call) -> Answer:
    """GET shows the page (or answers at once with `auto_approve` or `auto_deny`); POST is its form, with `account`,
    `decision` and one `grant:<scope>` for each permission given."""
    asked = {**call.query(), **(call.form() if call.method == "POST" else {})}
    wrong = _complaint(tiktok, asked)
    if wrong:
        return _refuse(wrong)
    app = apps.find(tiktok, asked["client_key"])
    assert app is not None
    scopes = asked["scope"].split(",")
    if call.method == "POST":
        if asked.get("decision") != "allow":
            return _deny(asked)
        given = [scope for scope in scopes if scope == ALWAYS_GIVEN or f"grant:{scope}" in asked]
        return _approve(tiktok, app, asked, asked.get("account", ""), given)
    if tiktok.auto_deny:
        return _deny(asked)
    if tiktok.auto_approve:
        chosen = tiktok.auto_scopes.split(",") if tiktok.auto_scopes else scopes
        return _approve(tiktok, app, asked, tiktok.auto_approve, [scope for scope in scopes if scope in chosen])
    accounts = [
        (user.username, user.display_name, "private" if user.private else "public") for user in tiktok.users.values()
    ]
    offered = [(scope, MEANINGS[scope], scope == ALWAYS_GIVEN) for scope in scopes]
    return answer_html(
        200,
        page.render(
            "consent.html",
            network="TikTok",
            app=app.label,
            accounts=accounts,
            scopes=offered,
            pick=True,
            asked=asked,
            up=UP,
        ),
    )


def _complaint(tiktok: "TikTok", asked: dict[str, str]) -> str:
    app = apps.find(tiktok, asked.get("client_key", ""))
    if app is None:
        return "client_key is missing or not known."
    uri = asked.get("redirect_uri", "")
    if not apps.may_return_to(app, uri):
        return "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."
    if asked.get("response_type") != "code":
        return "response_type must be code."
    if not asked.get("state"):
        return "state is missing."
    scopes = asked.get("scope", "").split(",")
    if not set(scopes) <= set(app.scopes) or not set(scopes) <= set(apps.SCOPES):
        return "scope must be a comma-separated list of scopes that the app has."
    if apps.platform_of(app, uri) == "desktop" or "code_challenge" in asked:
        if not CHALLENGE.fullmatch(asked.get("code_challenge", "")):
            return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
        if asked.get("code_challenge_method") != "S256":
            return "code_challenge_method must be S256."
    return ""


def _refuse(message: str) -> Answer:
    return answer_html(400, page.render("refused.html", message=message, up=UP))


def _approve(tiktok: "TikTok", app: apps.App, asked: dict[str, str], username: str, given: list[str]) -> Answer:
    user = tiktok.user_named(username)
    if user is None:
        return _deny(asked)
    if app.target_users and username not in app.target_users:
        return _refuse("unauthorized_client: this user is not a target user of the app's sandbox.")
    code = secrets.token_urlsafe(40) + ("*1!4823.e1" if tiktok.awkward_codes else "")
    tiktok.codes[code] = Code(
        app.client_key,
        asked["redirect_uri"],
        user.open_id,
        tuple(given),
        asked.get("code_challenge", ""),
        tiktok.world.now().timestamp() + tiktok.code_seconds,
    )
    return _return(asked, code=code, scopes=",".join(given))


def _deny(asked: dict[str, str]) -> Answer:
    return _return(asked, error="access_denied", error_description="User denied authorization", errCode="-2")


def _return(asked: dict[str, str], **result: str) -> Answer:
    return redirect(asked["redirect_uri"] + "?" + urlencode({**result, "state": asked["state"]}))
