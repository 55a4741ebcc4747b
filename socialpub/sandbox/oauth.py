"""The two halves of OAuth: the consent page and the token endpoint.

A network declares what it requires, shows and answers. The way of a consent and of an exchange is the same everywhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode

from socialpub.sandbox.messages import FORM, Refusal, Reply, SandboxRequest, html_reply, redirect
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import SOURCES, render_template
from socialpub.sandbox.tokens import AuthorizationCode, SandboxApp, Token

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork[Any])

Asked = dict[str, str]
"""What the app and the page's form sent."""


class ConsentPage(ABC, Generic[NetworkT]):
    label: ClassVar[str]
    client_id_fields: ClassVar[tuple[str, ...]] = ("client_id",)
    meanings: ClassVar[Mapping[str, str]]
    """Every scope, and what it permits."""
    scope_mark: ClassVar[str] = ","
    """Between the scopes that an app asks for."""
    always_given: ClassVar[str] = ""
    """The scope that the user cannot refuse. Empty: the user gives all scopes or none."""

    @abstractmethod
    def complaint(self, app: SandboxApp, asked: Asked) -> str:
        """Return what is wrong with the app's request, or an empty text."""

    @abstractmethod
    def accounts(self, network: NetworkT) -> list[tuple[str, str, str]]:
        """Return username, name and a note of every account."""

    @abstractmethod
    def new_code(self, network: NetworkT) -> str: ...

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:  # noqa: ARG002
        """Return the parameters of the redirect after a yes."""
        return {"code": code}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied"}

    def authorize(self, network: NetworkT, request: SandboxRequest) -> Reply:
        """Show the page. A POST is its form, with `account` and `decision`."""
        asked = {**request.query(), **(request.form() if request.method == "POST" else {})}
        app = network.find_app(next((asked[name] for name in self.client_id_fields if asked.get(name)), ""))
        up = "../" * request.path.count("/")
        wrong = self.complaint(app, asked) if app else f"{self.client_id_fields[0]} is missing."
        if app is None or wrong:
            return _page(400, "refused.html", message=wrong, up=up)
        scopes = self._scopes(asked)
        if request.method == "POST":
            account = network.account_named(asked.get("account", ""))
            if asked.get("decision") != "allow" or account is None:
                return self._back(asked, self.denial())
            given = [one for one in scopes if self.always_given in ("", one) or f"grant:{one}" in asked]
            code = self.new_code(network)
            network.codes.add(
                code,
                AuthorizationCode(
                    app.client_id,
                    asked["redirect_uri"],
                    account.id,
                    tuple(given),
                    network.timestamp() + network.code_seconds,
                    asked.get("code_challenge", ""),
                    asked.get("code_challenge_method", "plain"),
                ),
            )
            return self._back(asked, self.approval(code, given))
        return _page(
            200,
            "consent.html",
            network=self.label,
            app=app.label,
            accounts=self.accounts(network),
            scopes=[(one, self.meanings[one], one == self.always_given) for one in scopes],
            pick=bool(self.always_given),
            asked=asked,
            action=request.path.rpartition("/")[2] or "./",
            up=up,
        )

    def scopes_complaint(self, asked: Asked) -> str:
        scopes = self._scopes(asked)
        return "" if scopes and set(scopes) <= set(self.meanings) else "invalid_scope: scope must be known scopes."

    def _scopes(self, asked: Asked) -> list[str]:
        return [one for one in asked.get("scope", "").split(self.scope_mark) if one]

    def _back(self, asked: Asked, result: dict[str, str]) -> Reply:
        uri, state = asked["redirect_uri"], {"state": asked["state"]} if "state" in asked else {}
        return redirect(uri + ("&" if "?" in uri else "?") + urlencode({**result, **state}))


def _page(status: int, template: str, **facts: Any) -> Reply:
    # No `form-action`: browsers apply it to redirects of the form as well, and a decision redirects to the app.
    reply = html_reply(status, render_template(template, **facts))
    reply.headers.append(("content-security-policy", SOURCES))
    return reply


class TokenEndpoint(ABC, Generic[NetworkT]):
    required: ClassVar[tuple[str, ...]] = ("code", "redirect_uri")
    """Of an exchange."""

    @abstractmethod
    def authenticate(self, network: NetworkT, request: SandboxRequest, form: dict[str, str]) -> str:
        """Return the id of the app that calls. Raise Refusal."""

    @abstractmethod
    def refusal(self, network: NetworkT, reason: str, name: str = "") -> Refusal:
        """Return the refusal for `form`, `grant_type`, `missing` (parameter `name`), `code`, `redirect_uri`,
        `verifier` or `refresh_token`."""

    @abstractmethod
    def renew(self, network: NetworkT, old: Token, client_id: str) -> Token | None:
        """Return the new pair for a refresh token, or None if the token no longer works."""

    @abstractmethod
    def answer(self, network: NetworkT, pair: Token, grant_type: str) -> Reply: ...

    def verify(self, network: NetworkT, code: AuthorizationCode, verifier: str) -> None:
        """Raise Refusal if the verifier does not fit the code's challenge."""

    def token(self, network: NetworkT, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        match form.get("grant_type", ""):
            case "authorization_code":
                pair = self._exchange(network, form, client_id)
            case "refresh_token":
                pair = self._refresh(network, form, client_id)
            case other:
                raise self.refusal(network, "grant_type", other)
        reply = self.answer(network, pair, form["grant_type"])
        reply.headers.append(("cache-control", "no-store"))
        return reply

    def client(self, network: NetworkT, request: SandboxRequest) -> tuple[str, dict[str, str]]:
        """Return the id of the app that calls, and its form. Raise Refusal."""
        if request.content_type != FORM:
            raise self.refusal(network, "form")
        form = request.form()
        return self.authenticate(network, request, form), form

    def require(self, network: NetworkT, form: dict[str, str], *names: str) -> None:
        for name in names:
            if not form.get(name):
                raise self.refusal(network, "missing", name)

    def _exchange(self, network: NetworkT, form: dict[str, str], client_id: str) -> Token:
        self.require(network, form, *self.required)
        code = network.codes.redeem(form["code"], client_id)
        if code is None:
            raise self.refusal(network, "code")
        if code.redirect_uri != form["redirect_uri"]:
            raise self.refusal(network, "redirect_uri")
        self.verify(network, code, form.get("code_verifier", ""))
        return network.issue(code.account_id, code.scopes, client_id)

    def _refresh(self, network: NetworkT, form: dict[str, str], client_id: str) -> Token:
        self.require(network, form, "refresh_token")
        old = network.tokens.by_refresh(form["refresh_token"])
        pair = self.renew(network, old, client_id) if old is not None else None
        if pair is None:
            raise self.refusal(network, "refresh_token")
        return pair
