"""The consent page: an app asks, an account's owner decides, and the browser goes back to the app.

What a network asks for, shows and answers is its own; the way of a decision is the same everywhere.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode

from socialpub.sandbox.messages import Reply, SandboxRequest, html_reply, redirect
from socialpub.sandbox.network import OAuthNetwork
from socialpub.sandbox.pages import SOURCES
from socialpub.sandbox.tokens import AuthorizationCode, SandboxApp

ConsentNetworkT = TypeVar("ConsentNetworkT", bound=OAuthNetwork[Any, Any])
ConsentAppT = TypeVar("ConsentAppT", bound=SandboxApp)

Asked = dict[str, str]
"""What the app and the page's form sent."""


class ConsentPage(ABC, Generic[ConsentNetworkT, ConsentAppT]):
    client_id_fields: ClassVar[tuple[str, ...]] = ("client_id",)

    @abstractmethod
    def complaint(self, app: ConsentAppT, request: SandboxRequest, asked: Asked) -> str:
        """What is wrong with the app's wish, or nothing."""

    @abstractmethod
    def scopes(self, asked: Asked) -> list[str]: ...

    @abstractmethod
    def render(
        self, network: ConsentNetworkT, app: ConsentAppT, request: SandboxRequest, asked: Asked, scopes: list[str]
    ) -> str: ...

    @abstractmethod
    def render_refusal(self, message: str) -> str: ...

    @abstractmethod
    def new_code(self, network: ConsentNetworkT) -> str: ...

    def chosen_scopes(self, asked: Asked, scopes: list[str]) -> list[str]:  # noqa: ARG002
        """Which of them the form gives."""
        return scopes

    def admission_complaint(self, app: ConsentAppT, username: str) -> str:  # noqa: ARG002
        """Why this account may not log in to the app, or nothing."""
        return ""

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:  # noqa: ARG002
        """The parameters of the redirect after a yes."""
        return {"code": code}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied"}

    def redirect_parameters(self, asked: Asked, result: dict[str, str]) -> dict[str, str]:
        return {**result, "state": asked["state"]} if "state" in asked else result

    def authorize(self, network: ConsentNetworkT, request: SandboxRequest) -> Reply:
        """GET shows the page (or answers at once with `auto_approve` or `auto_deny`); POST is its form, with `account`
        and `decision`."""
        asked = {**request.query(), **(request.form() if request.method == "POST" else {})}
        client_id = next((asked[name] for name in self.client_id_fields if asked.get(name)), "")
        app = network.find_app(client_id)
        wrong = self.complaint(app, request, asked) if app else f"{self.client_id_fields[0]} is missing or not known."
        if app is None or wrong:
            return _page(400, self.render_refusal(wrong))
        scopes = self.scopes(asked)
        if request.method == "POST":
            if asked.get("decision") != "allow":
                return self._back(asked, self.denial())
            return self._approve(network, app, asked, asked.get("account", ""), self.chosen_scopes(asked, scopes))
        if network.auto_deny:
            return self._back(asked, self.denial())
        if network.auto_approve:
            wanted = network.auto_scopes.split(",") if network.auto_scopes else scopes
            given = [scope for scope in scopes if scope in wanted]
            return self._approve(network, app, asked, network.auto_approve, given)
        return _page(200, self.render(network, app, request, asked, scopes))

    def _approve(
        self, network: ConsentNetworkT, app: ConsentAppT, asked: Asked, username: str, scopes: list[str]
    ) -> Reply:
        account = network.account_named(username)
        if account is None:
            return self._back(asked, self.denial())
        if wrong := self.admission_complaint(app, username):
            return _page(400, self.render_refusal(wrong))
        text = self.new_code(network)
        code = AuthorizationCode(
            app.client_id,
            asked["redirect_uri"],
            account.id,
            tuple(scopes),
            network.timestamp() + network.code_seconds,
            asked.get("code_challenge", ""),
            asked.get("code_challenge_method", "plain"),
        )
        network.codes.add(text, code)
        return self._back(asked, self.approval(text, scopes))

    def _back(self, asked: Asked, result: dict[str, str]) -> Reply:
        uri = asked["redirect_uri"]
        return redirect(uri + ("&" if "?" in uri else "?") + urlencode(self.redirect_parameters(asked, result)))


def _page(status: int, text: str) -> Reply:
    # No `form-action`: browsers apply it to where a form's answer leads too, and a decision leads back to the app.
    reply = html_reply(status, text)
    reply.headers.append(("content-security-policy", SOURCES))
    return reply
