"""Pinterest's consent page: choose an account, give access or not. Scopes are not picked one by one."""

import secrets
from urllib.parse import urlsplit

from socialpub.sandbox.apps import SandboxApp
from socialpub.sandbox.consent import Asked, ConsentPage
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.rendering import render_template
from socialpub.sandbox.request import SandboxRequest

MEANINGS = {
    "user_accounts:read": "See your account",
    "boards:read": "See your public boards",
    "boards:write": "Create and change your public boards",
    "boards:read_secret": "See your secret boards",
    "boards:write_secret": "Create and change your secret boards",
    "pins:read": "See your public Pins",
    "pins:write": "Create and change your public Pins",
    "pins:read_secret": "See your secret Pins",
    "pins:write_secret": "Create and change your secret Pins",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
UP = "../../"


class PinterestConsent(ConsentPage[PinterestSandbox, SandboxApp]):
    client_id_fields = ("client_id", "consumer_id")

    def complaint(self, app: SandboxApp, request: SandboxRequest, asked: Asked) -> str:  # noqa: ARG002
        uri = asked.get("redirect_uri", "")
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        if not parts.hostname or not safe or parts.fragment or (app.redirect_uris and uri not in app.redirect_uris):
            return "redirect_uri is missing, not https, or not one of the app's, letter by letter."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        scopes = self.scopes(asked)
        if not scopes or not set(scopes) <= set(MEANINGS):
            return "scope must be a comma-separated list of known scopes."
        return ""

    def scopes(self, asked: Asked) -> list[str]:
        return [scope for scope in asked.get("scope", "").split(",") if scope]

    def render(
        self,
        network: PinterestSandbox,
        app: SandboxApp,
        request: SandboxRequest,  # noqa: ARG002
        asked: Asked,
        scopes: list[str],
    ) -> str:
        return render_template(
            "consent.html",
            network="Pinterest",
            app=app.label,
            accounts=[
                (account.username, account.business_name, account.account_type.lower())
                for account in network.accounts.values()
            ],
            scopes=[(scope, MEANINGS[scope], True) for scope in scopes],
            pick=False,
            asked=asked,
            up=UP,
        )

    def render_refusal(self, message: str) -> str:
        return render_template("refused.html", message=message, up=UP)

    def new_code(self, network: PinterestSandbox) -> str:  # noqa: ARG002
        return secrets.token_hex(20)


authorize = PinterestConsent().authorize
