"""TikTok's consent page, where the user picks an account and which permissions to give."""

import re
import secrets

from socialpub.sandbox.consent import Asked, ConsentPage
from socialpub.sandbox.rendering import render_template
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.tiktok.apps import SCOPES, TikTokApp, may_return_to, platform_of
from socialpub.sandbox.tiktok.network import TikTokSandbox

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
