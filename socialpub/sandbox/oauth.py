"""OAuth of the three networks: the consent page and the token endpoint.

A network declares what it requires, shows and answers. The way of a consent and of an exchange is the same everywhere.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.memory import AuthorizationCode, SandboxApp, Token
from socialpub.sandbox.messages import FORM, Refusal, Reply, SandboxRequest, html_reply, json_reply, redirect
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import SOURCES, render_template

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork[Any])

Asked = dict[str, str]
"""The parameters from the app and from the page's form."""


class NetworkAuthorization(ABC, Generic[NetworkT]):
    paths: ClassVar[tuple[str, str, str]]
    """Of the consent page, the token endpoint and the revocation."""
    client_id_fields: ClassVar[tuple[str, ...]] = ("client_id",)
    meanings: ClassVar[Mapping[str, str]]
    """Every scope, and what it permits."""
    scope_mark: ClassVar[str] = ","
    """The separator between the scopes in an app's request."""
    always_given: ClassVar[str] = ""
    """The scope that the user cannot refuse. Empty: the user grants all scopes or none."""
    wrong_address: ClassVar[str] = "redirect_uri is missing or is not one of the app's, letter by letter."
    required: ClassVar[tuple[str, ...]] = ("code", "redirect_uri")
    """Of an exchange."""

    def calls(self) -> tuple[SandboxCall, ...]:
        page, token, revoke = self.paths
        return (
            SandboxCall("", page, "authorize", self.authorize),
            SandboxCall("POST", token, "token", self.token),
            SandboxCall("POST", revoke, "revoke", self.revoke),
        )

    # --- the consent page ----------------------------------------------------------------------------------------

    def may_return_to(self, uri: str) -> bool:
        """Return whether the network permits the address at all."""
        return bool(uri)

    def complaint(self, asked: Asked) -> str:  # noqa: ARG002  # for stand-ins
        """Return what else is wrong with the app's request, or an empty text."""
        return ""

    @abstractmethod
    def note(self, account: Any) -> str:
        """Return a note beside the account's name."""

    def new_code(self) -> str:
        return secrets.token_urlsafe(48)

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:  # noqa: ARG002  # TikTok names the scopes
        """Return the parameters of the redirect after consent."""
        return {"code": code}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied"}

    def authorize(self, network: NetworkT, request: SandboxRequest) -> Reply:
        """Show the page. A POST is its form, with `account` and `decision`."""
        asked = {**request.query(), **(request.form() if request.method == "POST" else {})}
        app = network.find_app(next((asked[name] for name in self.client_id_fields if asked.get(name)), ""))
        up, scopes = "../" * request.path.count("/"), [s for s in asked.get("scope", "").split(self.scope_mark) if s]
        wrong = self._complaint(app, asked, scopes) if app else f"{self.client_id_fields[0]} is missing."
        if app is None or wrong:
            return _page(400, "refused.html", message=wrong, up=up)
        if request.method == "POST":
            return self._decide(network, app, asked, scopes)
        return _page(
            200,
            "consent.html",
            network=network.label,
            app=app.client_id,
            accounts=[
                (account.username, getattr(account, network.name_field), self.note(account))
                for account in network.accounts.values()
            ],
            scopes=[(scope, self.meanings[scope], scope == self.always_given) for scope in scopes],
            pick=bool(self.always_given),
            asked=asked,
            action=request.path.rpartition("/")[2] or "./",
            up=up,
        )

    def _complaint(self, app: SandboxApp, asked: Asked, scopes: list[str]) -> str:
        uri = asked.get("redirect_uri", "")
        if not self.may_return_to(uri) or (app.redirect_uris and uri not in app.redirect_uris):
            return self.wrong_address
        if asked.get("response_type") != "code":
            return "response_type must be code."
        are_known = scopes and set(scopes) <= set(self.meanings)
        return self.complaint(asked) or ("" if are_known else "invalid_scope: scope must be known scopes.")

    def _decide(self, network: NetworkT, app: SandboxApp, asked: Asked, scopes: list[str]) -> Reply:
        account = network.account_named(asked.get("account", ""))
        if asked.get("decision") == "allow" and account is not None:
            granted = [scope for scope in scopes if self.always_given in ("", scope) or f"grant:{scope}" in asked]
            code = self.new_code()
            network.codes[code] = AuthorizationCode(
                app.client_id,
                asked["redirect_uri"],
                account.id,
                tuple(granted),
                network.timestamp() + network.code_seconds,
                asked.get("code_challenge", ""),
                asked.get("code_challenge_method", "plain"),
            )
            result = self.approval(code, granted)
        else:
            result = self.denial()
        uri, state = asked["redirect_uri"], {"state": asked["state"]} if "state" in asked else {}
        return redirect(uri + ("&" if "?" in uri else "?") + urlencode({**result, **state}))

    # --- the token endpoint --------------------------------------------------------------------------------------

    def authenticate(self, network: NetworkT, request: SandboxRequest, form: dict[str, str]) -> str:
        """Return the id of the app that calls, by the header or the form. Raise Refusal."""
        client_id, secret = request.basic or (form.get(self.client_id_fields[0], ""), form.get("client_secret", ""))
        app = network.find_app(client_id)
        if app is None or not (app.client_secret is None or app.accepts(secret)):
            raise self.refusal(network, "client")
        return client_id

    @abstractmethod
    def refusal(self, network: NetworkT, reason: str, name: str = "") -> Refusal:
        """Return the refusal for `client`, `form`, `grant_type`, `missing` (parameter `name`), `code`, `redirect_uri`,
        `verifier` or `refresh_token`."""

    @abstractmethod
    def facts(self, network: NetworkT, pair: Token, grant_type: str) -> dict[str, Any]:
        """Return what the token endpoint responds."""

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:  # noqa: ARG002  # for stand-ins
        return True

    @abstractmethod
    def revoke(self, network: NetworkT, request: SandboxRequest) -> Reply: ...

    def token(self, network: NetworkT, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        match form.get("grant_type", ""):
            case "authorization_code":
                pair = self._exchange(network, form, client_id)
            case "refresh_token":
                pair = self._refresh(network, form, client_id)
            case other:
                raise self.refusal(network, "grant_type", other)
        return json_reply(200, self.facts(network, pair, form["grant_type"]), [("cache-control", "no-store")])

    def client(self, network: NetworkT, request: SandboxRequest) -> tuple[str, dict[str, str]]:
        """Return the id of the calling app and its form. Raise Refusal."""
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
        # Any call uses the code up.
        code = network.codes.pop(form["code"], None)
        if code is None or code.client_id != client_id or network.timestamp() >= code.expires_at:
            raise self.refusal(network, "code")
        if code.redirect_uri != form["redirect_uri"]:
            raise self.refusal(network, "redirect_uri")
        if not self.fits(code, form.get("code_verifier", "")):
            raise self.refusal(network, "verifier")
        return network.issue(code.account_id, code.scopes, client_id)

    def _refresh(self, network: NetworkT, form: dict[str, str], client_id: str) -> Token:
        self.require(network, form, "refresh_token")
        old = network.tokens.by_refresh(form["refresh_token"])
        pair = network.renew(old, client_id) if old is not None else None
        if pair is None:
            raise self.refusal(network, "refresh_token")
        return pair


def _page(status: int, template: str, **facts: Any) -> Reply:
    # No `form-action`: browsers apply it to redirects of the form as well, and a decision redirects to the app.
    reply = html_reply(status, render_template(template, **facts))
    reply.headers.append(("content-security-policy", SOURCES))
    return reply
