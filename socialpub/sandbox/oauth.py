"""OAuth of the three networks: the consent page and the token endpoint.

A network declares what it requires, shows and answers. The way of a consent and of an exchange is the same everywhere.
"""

import base64
import hashlib
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode, urlsplit

from socialpub.sandbox.memory import AuthorizationCode, SandboxApp, Token
from socialpub.sandbox.messages import FORM, Refusal, Reply, SandboxRequest, html_reply, json_reply, redirect
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.pages import SOURCES, render_template
from socialpub.sandbox.pinterest.network import PinterestSandbox, invalid, ok, refused
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.x.network import XSandbox

NetworkT = TypeVar("NetworkT", bound=SandboxNetwork[Any])

Asked = dict[str, str]
"""The parameters from the app and from the page's form."""


class NetworkAuthorization(ABC, Generic[NetworkT]):
    client_id_fields: ClassVar[tuple[str, ...]] = ("client_id",)
    meanings: ClassVar[Mapping[str, str]]
    """Every scope, and what it permits."""
    scope_mark: ClassVar[str] = ","
    """The separator between the scopes in an app's request."""
    always_given: ClassVar[str] = ""
    """The scope that the user cannot refuse. Empty: the user grants all scopes or none."""
    wrong_address: ClassVar[str]
    """The page's message for a `redirect_uri` that is not allowed."""
    required: ClassVar[tuple[str, ...]] = ("code", "redirect_uri")
    """Of an exchange."""

    # --- the consent page ----------------------------------------------------------------------------------------

    @abstractmethod
    def may_return_to(self, uri: str) -> bool:
        """Return whether the network permits the address at all."""

    def complaint(self, asked: Asked) -> str:  # noqa: ARG002  # X and TikTok require more
        """Return what else is wrong with the app's request, or an empty text."""
        return ""

    @abstractmethod
    def accounts(self, network: NetworkT) -> list[tuple[str, str, str]]:
        """Return the username, the name and a note for every account."""

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
            accounts=self.accounts(network),
            scopes=[(one, self.meanings[one], one == self.always_given) for one in scopes],
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
        known = scopes and set(scopes) <= set(self.meanings)
        return self.complaint(asked) or ("" if known else "invalid_scope: scope must be known scopes.")

    def _decide(self, network: NetworkT, app: SandboxApp, asked: Asked, scopes: list[str]) -> Reply:
        account = network.account_named(asked.get("account", ""))
        if asked.get("decision") == "allow" and account is not None:
            given = [one for one in scopes if self.always_given in ("", one) or f"grant:{one}" in asked]
            code = self.new_code()
            network.codes[code] = AuthorizationCode(
                app.client_id,
                asked["redirect_uri"],
                account.id,
                tuple(given),
                network.timestamp() + network.code_seconds,
                asked.get("code_challenge", ""),
                asked.get("code_challenge_method", "plain"),
            )
            result = self.approval(code, given)
        else:
            result = self.denial()
        uri, state = asked["redirect_uri"], {"state": asked["state"]} if "state" in asked else {}
        return redirect(uri + ("&" if "?" in uri else "?") + urlencode({**result, **state}))

    # --- the token endpoint --------------------------------------------------------------------------------------

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

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:  # noqa: ARG002  # Pinterest has no verifier
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
        reply = self.answer(network, pair, form["grant_type"])
        reply.headers.append(("cache-control", "no-store"))
        return reply

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
        pair = self.renew(network, old, client_id) if old is not None else None
        if pair is None:
            raise self.refusal(network, "refresh_token")
        return pair


def _page(status: int, template: str, **facts: Any) -> Reply:
    # No `form-action`: browsers apply it to redirects of the form as well, and a decision redirects to the app.
    reply = html_reply(status, render_template(template, **facts))
    reply.headers.append(("content-security-policy", SOURCES))
    return reply


# --- X ---------------------------------------------------------------------------------------------------------------

X_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
X_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
X_SCOPES = (
    "block.read", "block.write", "bookmark.read", "bookmark.write", "dm.read", "dm.write", "follows.read",
    "follows.write", "like.read", "like.write", "list.read", "list.write", "media.write", "mute.read", "mute.write",
    "offline.access", "space.read", "timeline.read", "tweet.moderate.write", "tweet.read", "tweet.write",
    "users.email", "users.read",
)  # fmt: skip
X_REFUSALS = {
    "form": "The body must be a form.",
    "grant_type": "Bad grant_type.",
    "missing": "Missing required parameter [{}].",
    "code": "Value passed for the authorization code was invalid.",
    "redirect_uri": "Value passed for the redirect uri did not match the uri of the authorization code.",
    "verifier": "Value passed for the code verifier did not match the code challenge.",
    "refresh_token": "Value passed for the token was invalid.",
}


class XAuthorization(NetworkAuthorization[XSandbox]):
    """PKCE is `S256` or `plain`."""

    meanings: ClassVar = dict.fromkeys(X_SCOPES, "")
    # Encoded as `%20`, or as the `+` of X's own library.
    scope_mark = " "
    wrong_address = "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
    required = ("code", "redirect_uri", "code_verifier")

    def may_return_to(self, uri: str) -> bool:
        scheme, _, rest = uri.partition("://")
        host = rest.split("/", 1)[0].rsplit(":", 1)[0]
        return scheme in ("http", "https") and host not in ("", "localhost") and "#" not in uri

    def complaint(self, asked: Asked) -> str:
        if not 0 < len(asked.get("state", "")) <= 500:
            return "state must have 1 to 500 characters."
        method = asked.get("code_challenge_method", "plain")
        if method not in ("S256", "plain"):
            return "code_challenge_method must be S256 or plain."
        if not (X_CHALLENGE if method == "S256" else X_VERIFIER).fullmatch(asked.get("code_challenge", "")):
            return "code_challenge is missing or has the wrong form."
        return ""

    def accounts(self, network: XSandbox) -> list[tuple[str, str, str]]:
        return [
            (one.username, one.name, "" if one.subscription_type == "None" else one.subscription_type)
            for one in network.accounts.values()
            if not one.suspended
        ]

    def authenticate(self, network: XSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        """A confidential app sends Basic; a public one sends `client_id` in the body."""
        unauthorized = _x_error(401, "unauthorized_client", "Missing valid authorization header")
        if "authorization" not in request.headers:
            public = network.apps.get(form.get("client_id", ""))
            if public is None or public.client_secret is not None:
                raise unauthorized
            return public.client_id
        credentials = request.basic
        if credentials is None or any(sign.isspace() for sign in "".join(credentials)):
            raise unauthorized
        client_id, secret = credentials
        app = network.find_app(client_id)
        if app is None:
            raise _x_error(401, "invalid_client", "Value passed for the client id was invalid.")
        if not app.accepts(secret) or "client_secret" in form:
            raise unauthorized
        if form.get("client_id", client_id) != client_id:
            raise _x_error(400, "invalid_request", "Value passed for the client id does not match the header.")
        return client_id

    def refusal(self, network: XSandbox, reason: str, name: str = "") -> Refusal:  # noqa: ARG002
        error = "unsupported_grant_type" if reason == "grant_type" and name else "invalid_request"
        return _x_error(400, error, X_REFUSALS[reason].format(name))

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        shown = verifier if code.method == "plain" else digest
        return bool(X_VERIFIER.fullmatch(verifier)) and shown == code.challenge

    def renew(self, network: XSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id):
            if old.spent and network.kill_family_on_reuse:
                network.tokens.end_family(old.family)
            return None
        network.tokens.spend(old, access_survives=network.old_access_token_survives)
        return network.issue(old.account_id, old.scopes, client_id, family=old.family)

    def answer(self, network: XSandbox, pair: Token, grant_type: str) -> Reply:  # noqa: ARG002
        answer = {
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "access_token": pair.access,
            "scope": " ".join(pair.scopes),
        }
        return json_reply(200, answer | ({"refresh_token": pair.refresh} if pair.refresh else {}))

    def revoke(self, network: XSandbox, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        self.require(network, form, "token")
        network.tokens.revoke(form["token"], client_id)
        return json_reply(200, {"revoked": True})


def _x_error(status: int, error: str, description: str) -> Refusal:
    answer = {"error": error, "error_description": description}
    return Refusal(json_reply(status, answer, [("cache-control", "no-store")]))


# --- TikTok ----------------------------------------------------------------------------------------------------------

TIKTOK_CHALLENGE = re.compile(r"[0-9a-f]{64}")
TIKTOK_SCOPES = {
    "user.info.basic": "See your avatar and display name",
    "user.info.profile": "See your username, bio and profile link",
    "user.info.stats": "See your follower, like and video counts",
    "video.list": "See your public videos",
    "video.publish": "Post to your profile",
    "video.upload": "Send drafts to your inbox",
}
TIKTOK_REFUSALS = {
    "form": ("invalid_request", "Only a form is supported."),
    "grant_type": ("unsupported_grant_type", "The grant type is not supported."),
    "missing": ("invalid_request", "{} is missing."),
    "code": ("invalid_grant", "Authorization code is expired or was used."),
    "redirect_uri": ("invalid_request", "Redirect_uri is not matched with the uri of the code."),
    "verifier": ("invalid_request", "Code verifier or code challenge is invalid."),
    "refresh_token": ("invalid_grant", "Refresh token is invalid or expired."),
}


class TikTokAuthorization(NetworkAuthorization[TikTokSandbox]):
    """The user picks the permissions."""

    client_id_fields = ("client_key",)
    meanings: ClassVar = TIKTOK_SCOPES
    always_given = "user.info.basic"
    wrong_address = "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        if not parts.hostname or "?" in uri or "#" in uri or len(uri) >= 512:
            return False
        if _is_desktop(uri):
            return parts.scheme in ("http", "https") and parts.port is not None
        return parts.scheme == "https"

    def complaint(self, asked: Asked) -> str:
        if not asked.get("state"):
            return "state is missing."
        if _is_desktop(asked["redirect_uri"]) or "code_challenge" in asked:
            if not TIKTOK_CHALLENGE.fullmatch(asked.get("code_challenge", "")):
                return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
            if asked.get("code_challenge_method") != "S256":
                return "code_challenge_method must be S256."
        return ""

    def accounts(self, network: TikTokSandbox) -> list[tuple[str, str, str]]:
        return [
            (one.username, one.display_name, "private" if one.private else "public")
            for one in network.accounts.values()
        ]

    def new_code(self) -> str:
        # The real codes contain such characters.
        return secrets.token_urlsafe(40) + "*1!4823.e1"

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied", "error_description": "User denied authorization", "errCode": "-2"}

    def authenticate(self, network: TikTokSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        app = network.find_app(form.get("client_key", ""))
        if app is None or not app.accepts(form.get("client_secret", "")):
            raise Refusal(network.oauth_error("invalid_client", "Client key or secret is incorrect."))
        return app.client_id

    def refusal(self, network: TikTokSandbox, reason: str, name: str = "") -> Refusal:
        error, description = TIKTOK_REFUSALS[reason]
        return Refusal(network.oauth_error(error, description.format(name)))

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        return code.challenge in ("", hashlib.sha256(verifier.encode()).hexdigest())

    def renew(self, network: TikTokSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id, network.refresh_grace_seconds):
            return None
        keeps = not network.rotates or network.omits_refresh_token
        if not keeps and not old.spent:
            network.tokens.spend(old, access_survives=network.old_access_token_survives)
        left = old.refresh_expires_at - network.timestamp()
        return network.issue(
            old.account_id,
            old.scopes,
            client_id,
            refresh=old.refresh if keeps else None,
            family=old.family,
            refresh_seconds=None if network.refresh_restarts else left,
        )

    def answer(self, network: TikTokSandbox, pair: Token, grant_type: str) -> Reply:
        answer: dict[str, Any] = {
            "open_id": pair.account_id,
            "scope": ",".join(pair.scopes),
            "access_token": pair.access,
            "expires_in": network.access_seconds,
            "refresh_token": pair.refresh,
            "refresh_expires_in": int(pair.refresh_expires_at - network.timestamp()),
            "token_type": "Bearer",
        }
        if network.omits_refresh_token and grant_type == "refresh_token":
            del answer["refresh_token"], answer["refresh_expires_in"]
        return json_reply(200, answer)

    def revoke(self, network: TikTokSandbox, request: SandboxRequest) -> Reply:
        client_id, form = self.client(network, request)
        found = network.tokens.bearer(form.get("token"))
        if found is None or found.client_id not in (None, client_id):
            raise Refusal(network.oauth_error("invalid_request", "token is missing or not an access token."))
        network.tokens.end_family(found.family)
        return json_reply(200, {})


def _is_desktop(uri: str) -> bool:
    return urlsplit(uri).hostname in ("localhost", "127.0.0.1")


# --- Pinterest -------------------------------------------------------------------------------------------------------

PINTEREST_SCOPES = {
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


class PinterestAuthorization(NetworkAuthorization[PinterestSandbox]):
    """Revocation is refused to ordinary users."""

    client_id_fields = ("client_id", "consumer_id")
    meanings: ClassVar = PINTEREST_SCOPES
    wrong_address = "redirect_uri is missing, not https, or not one of the app's, letter by letter."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and (_is_desktop(uri) or parts.hostname == "::1"))
        return bool(parts.hostname) and safe and not parts.fragment

    def accounts(self, network: PinterestSandbox) -> list[tuple[str, str, str]]:
        return [(one.username, one.business_name, one.account_type.lower()) for one in network.accounts.values()]

    def authenticate(self, network: PinterestSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        client_id, secret = request.basic or ("", "")
        app = network.find_app(client_id)
        if app is None or not app.accepts(secret):
            raise refused(network, "authentication_failed")
        if not form:
            raise self.refusal(network, "form")
        network.count("org_read", client_id, "")
        return client_id

    def refusal(self, network: PinterestSandbox, reason: str, name: str = "") -> Refusal:
        if reason in ("code", "redirect_uri", "refresh_token"):
            return refused(network, "authentication_failed")
        missing = {"form": "request body", "grant_type": "or unknown grant_type in the request body"}
        wrong = missing.get(reason, f"{name} in the request body")
        return invalid(network, 400, 1, f"Missing {wrong}.")

    def renew(self, network: PinterestSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id):
            return None
        if not network.old_refresh_survives and not network.omits_refresh_token:
            network.tokens.spend(old, access_survives=True)
        kept = old.refresh if network.omits_refresh_token else None
        return network.issue(old.account_id, old.scopes, client_id, family=old.family, refresh=kept)

    def answer(self, network: PinterestSandbox, pair: Token, grant_type: str) -> Reply:
        answer: dict[str, Any] = {
            "access_token": pair.access,
            "response_type": grant_type,
            "token_type": "bearer",
            "expires_in": network.access_seconds,
            "scope": " ".join(pair.scopes),
        }
        if not network.omits_refresh_token or grant_type != "refresh_token":
            answer |= {
                "refresh_token": pair.refresh,
                "refresh_token_expires_in": int(pair.refresh_expires_at - network.timestamp()),
                "refresh_token_expires_at": int(pair.refresh_expires_at),
            }
        return ok(network, 200, answer)

    def revoke(self, network: PinterestSandbox, request: SandboxRequest) -> Reply:
        """Refuse, as the real Pinterest does. Nothing is revoked."""
        self.client(network, request)
        raise refused(network, "not_permitted")
