"""X's consent page: choose an account, give access or not."""

import secrets

from socialpub.sandbox.apps import SandboxApp
from socialpub.sandbox.consent import Asked, ConsentPage
from socialpub.sandbox.rendering import render_template
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.x.network import XSandbox
from socialpub.sandbox.x.oauth import CHALLENGE, VERIFIER
from socialpub.sandbox.x.query import SCOPES


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
