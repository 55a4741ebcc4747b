"""OAuth of the three networks: the consent page and the token endpoint.

A network declares its scopes, its words and its lifetimes. The way of a consent and of an exchange is the same
everywhere. Every app id and every secret is accepted.
"""

import secrets
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlencode

from socialpub.sandbox.memory import SandboxContext, Token
from socialpub.sandbox.messages import FORM, Refusal, Reply, SandboxRequest, html_reply, json_reply
from socialpub.sandbox.network import SandboxCall, SandboxNetwork
from socialpub.sandbox.pages import SOURCES, render_template


class AuthorizationCode(NamedTuple):
    """The consent of an account, until the app exchanges it for tokens."""

    asked: dict[str, str]
    """The parameters from the app and from the page's form."""
    client_id: str
    account_id: str
    scopes: tuple[str, ...]
    expires_at: float
    """Unix seconds."""


class OAuthNetwork(SandboxNetwork):
    oauth_paths: ClassVar[tuple[str, str, str]]
    """Of the consent page, the token endpoint and the revocation."""
    client_id_fields: ClassVar[tuple[str, ...]] = ("client_id",)
    scopes: ClassVar[Mapping[str, str]]
    """Every scope, and what it permits."""
    scope_separator: ClassVar[str] = ","
    """Between the scopes in an app's request."""
    fixed_scope: ClassVar[str] = ""
    """The scope that the user cannot refuse. Empty: the user grants all scopes or none."""
    denial: ClassVar[Mapping[str, str]] = {"error": "access_denied"}
    """The parameters of the redirect when the user cancels."""
    code_seconds: ClassVar[int]
    exchange_fields: ClassVar[tuple[str, ...]] = ("code", "redirect_uri")

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.codes: dict[str, AuthorizationCode] = {}

    @classmethod
    def declared_calls(cls) -> list[SandboxCall]:
        page, token, revoke = cls.oauth_paths
        return [
            SandboxCall("", page, "authorize", None),
            SandboxCall("POST", token, "token", None),
            SandboxCall("POST", revoke, "revoke", None),
            *super().declared_calls(),
        ]

    # --- the consent page ----------------------------------------------------------------------------------------

    @abstractmethod
    def account_note(self, account: Any) -> str:
        """Return a note beside the account's name."""

    def new_code(self) -> str:
        return secrets.token_urlsafe(48)

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:  # noqa: ARG002  # TikTok names the scopes
        """Return the parameters of the redirect after consent."""
        return {"code": code}

    def consent_problem(self, client_id: str, asked: dict[str, str]) -> str:  # noqa: ARG002  # for stand-ins
        """Return what is wrong with the app's request, or an empty text."""
        scopes = asked.get("scope", "").split(self.scope_separator)
        if not asked.get("redirect_uri"):
            return "redirect_uri is missing."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        return "" if set(scopes) <= set(self.scopes) else "invalid_scope: scope must be known scopes."

    def authorize(self, request: SandboxRequest) -> Reply:
        """Show the page. A POST is its form, with `account` and `decision`."""
        asked = {**request.query(), **(request.form() if request.method == "POST" else {})}
        client_id = next((asked[name] for name in self.client_id_fields if asked.get(name)), "")
        up = "../" * request.path.count("/")
        problem = self.consent_problem(client_id, asked) if client_id else f"{self.client_id_fields[0]} is missing."
        if problem:
            return _page(400, "refused.html", message=problem, up=up)
        scopes = asked["scope"].split(self.scope_separator)
        if request.method == "POST":
            return self._decide(client_id, asked, scopes)
        return _page(
            200,
            "consent.html",
            network=self.label,
            app=client_id,
            accounts=[
                (account.username, getattr(account, self.name_field), self.account_note(account))
                for account in self.accounts.values()
            ],
            scopes=[(scope, self.scopes[scope], scope == self.fixed_scope) for scope in scopes],
            pick=bool(self.fixed_scope),
            asked=asked,
            action=request.path.rpartition("/")[2] or "./",
            up=up,
        )

    def _decide(self, client_id: str, asked: dict[str, str], scopes: list[str]) -> Reply:
        account = self.account_named(asked.get("account", ""))
        result = dict(self.denial)
        if asked.get("decision") == "allow" and account is not None:
            granted = [scope for scope in scopes if self.fixed_scope in ("", scope) or f"grant:{scope}" in asked]
            code, ends = self.new_code(), self.timestamp() + self.code_seconds
            self.codes[code] = AuthorizationCode(asked, client_id, account.id, tuple(granted), ends)
            result = self.approval(code, granted)
        if "state" in asked:
            result["state"] = asked["state"]
        uri = asked["redirect_uri"]
        url = uri + ("&" if "?" in uri else "?") + urlencode(result)
        return Reply(302, headers=[("location", url), ("cache-control", "no-store")])

    # --- the token endpoint --------------------------------------------------------------------------------------

    @abstractmethod
    def oauth_refusal(self, reason: str, name: str = "") -> Refusal:
        """Return the refusal for `client`, `form`, `grant_type`, `missing` (parameter `name`), `code`, `redirect_uri`,
        `verifier` or `refresh_token`."""

    @abstractmethod
    def token_facts(self, pair: Token, grant_type: str) -> dict[str, Any]:
        """Return what the token endpoint responds."""

    def authenticate(self, request: SandboxRequest, form: dict[str, str]) -> str:
        """Return the id of the app that calls, by the header or the form. Raise Refusal."""
        client_id, secret = request.basic or (form.get(self.client_id_fields[0], ""), form.get("client_secret", ""))
        if not client_id or not secret:
            raise self.oauth_refusal("client")
        return client_id

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:  # noqa: ARG002  # for stand-ins
        return True

    def token(self, request: SandboxRequest) -> Reply:
        client_id, form = self.client(request)
        match form.get("grant_type", ""):
            case "authorization_code":
                pair = self._exchange(form, client_id)
            case "refresh_token":
                pair = self._refresh(form, client_id)
            case other:
                raise self.oauth_refusal("grant_type", other)
        return json_reply(200, self.token_facts(pair, form["grant_type"]), [("cache-control", "no-store")])

    @abstractmethod
    def revoke(self, request: SandboxRequest) -> Reply: ...

    def client(self, request: SandboxRequest) -> tuple[str, dict[str, str]]:
        """Return the id of the calling app and its form. Raise Refusal."""
        if request.content_type != FORM:
            raise self.oauth_refusal("form")
        form = request.form()
        return self.authenticate(request, form), form

    def require(self, form: dict[str, str], *names: str) -> None:
        for name in names:
            if not form.get(name):
                raise self.oauth_refusal("missing", name)

    def _exchange(self, form: dict[str, str], client_id: str) -> Token:
        self.require(form, *self.exchange_fields)
        # Any call uses the code up.
        code = self.codes.pop(form["code"], None)
        if code is None or code.client_id != client_id or self.timestamp() >= code.expires_at:
            raise self.oauth_refusal("code")
        if code.asked["redirect_uri"] != form["redirect_uri"]:
            raise self.oauth_refusal("redirect_uri")
        if not self.fits(code, form.get("code_verifier", "")):
            raise self.oauth_refusal("verifier")
        return self.issue(code.account_id, code.scopes, client_id)

    def _refresh(self, form: dict[str, str], client_id: str) -> Token:
        self.require(form, "refresh_token")
        old = self.tokens.by_refresh(form["refresh_token"])
        pair = self.renew(old, client_id) if old is not None else None
        if pair is None:
            raise self.oauth_refusal("refresh_token")
        return pair


def _page(status: int, template: str, **facts: Any) -> Reply:
    # No `form-action`: browsers apply it to redirects of the form as well, and a decision redirects to the app.
    reply = html_reply(status, render_template(template, **facts))
    reply.headers.append(("content-security-policy", SOURCES))
    return reply
