"""Pinterest's consent page: choose an account, give access or not. Scopes are not picked one by one."""

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from socialpub.sandbox import page
from socialpub.sandbox.call import Answer, Call, answer_html, redirect

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest

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


@dataclass(slots=True)
class App:
    client_id: str
    client_secret: str = field(default="", repr=False)
    """Empty: any."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that is https, or http on this machine."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.client_id


@dataclass(slots=True)
class Code:
    client_id: str
    redirect_uri: str
    account_id: str
    scopes: tuple[str, ...]
    expires_at: float


def find_app(pinterest: "Pinterest", client_id: str) -> App | None:
    """The app with this id; one that nobody registered takes any secret, unless `strict_apps`."""
    app = pinterest.apps.get(client_id)
    if app is None and client_id and not pinterest.strict_apps:
        return App(client_id)
    return app


def authorize(pinterest: "Pinterest", call: Call) -> Answer:
    """GET shows the page (or answers at once with `auto_approve` or `auto_deny`); POST is its form, with `account` and
    `decision`."""
    asked = {**call.query(), **(call.form() if call.method == "POST" else {})}
    app, wrong = _complaint(pinterest, asked)
    if app is None or wrong:
        return answer_html(400, page.render("refused.html", message=wrong, up=UP))
    scopes = _scopes(asked)
    if call.method == "POST":
        allowed = asked.get("decision") == "allow"
        return _approve(pinterest, app, asked, asked.get("account", ""), scopes) if allowed else _deny(asked)
    if pinterest.auto_deny:
        return _deny(asked)
    if pinterest.auto_approve:
        chosen = pinterest.auto_scopes.split(",") if pinterest.auto_scopes else scopes
        given = [scope for scope in scopes if scope in chosen]
        return _approve(pinterest, app, asked, pinterest.auto_approve, given)
    accounts = [(one.username, one.business_name, one.account_type.lower()) for one in pinterest.accounts.values()]
    offered = [(scope, MEANINGS[scope], True) for scope in scopes]
    return answer_html(
        200,
        page.render(
            "consent.html",
            network="Pinterest",
            app=app.label,
            accounts=accounts,
            scopes=offered,
            pick=False,
            asked=asked,
            up=UP,
        ),
    )


def _complaint(pinterest: "Pinterest", asked: dict[str, str]) -> tuple[App | None, str]:
    app = find_app(pinterest, asked.get("client_id") or asked.get("consumer_id") or "")
    if app is None:
        return None, "client_id is missing or not known."
    uri = asked.get("redirect_uri", "")
    parts = urlsplit(uri)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not parts.hostname or not safe or parts.fragment or (app.redirect_uris and uri not in app.redirect_uris):
        return app, "redirect_uri is missing, not https, or not one of the app's, letter by letter."
    if asked.get("response_type") != "code":
        return app, "response_type must be code."
    if not set(_scopes(asked)) <= set(MEANINGS) or not _scopes(asked):
        return app, "scope must be a comma-separated list of known scopes."
    return app, ""


def _scopes(asked: dict[str, str]) -> list[str]:
    return [scope for scope in asked.get("scope", "").split(",") if scope]


def _approve(pinterest: "Pinterest", app: App, asked: dict[str, str], username: str, given: list[str]) -> Answer:
    account = pinterest.account_named(username)
    if account is None:
        return _deny(asked)
    code = secrets.token_hex(20)
    expires_at = pinterest.world.now().timestamp() + pinterest.code_seconds
    pinterest.codes[code] = Code(app.client_id, asked["redirect_uri"], account.id, tuple(given), expires_at)
    return _return(asked, code=code)


def _deny(asked: dict[str, str]) -> Answer:
    return _return(asked, error="access_denied")


def _return(asked: dict[str, str], **result: str) -> Answer:
    uri = asked["redirect_uri"]
    state = {"state": asked["state"]} if "state" in asked else {}
    return redirect(uri + ("&" if "?" in uri else "?") + urlencode({**result, **state}))
