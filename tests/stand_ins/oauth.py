"""The strict consent pages and token endpoints of the stand-ins, and their registered apps."""

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from socialpub.sandbox.memory import SandboxContext
from socialpub.sandbox.messages import SandboxRequest
from socialpub.sandbox.oauth import AuthorizationCode, OAuthNetwork
from socialpub.sandbox.x.api import oauth_error

X_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
X_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
TIKTOK_CHALLENGE = re.compile(r"[0-9a-f]{64}")


def is_desktop(uri: str) -> bool:
    return urlsplit(uri).hostname in ("localhost", "127.0.0.1")


@dataclass(slots=True)
class RegisteredApp:
    client_id: str
    client_secret: str | None = field(default="", repr=False)
    """Empty: any. None: a public client, which has none."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that the network allows."""

    def accepts(self, secret: str) -> bool:
        return bool(secret) and self.client_secret in ("", secret)


class StrictOAuth(OAuthNetwork):
    """Checks apps, their addresses and their proof keys."""

    wrong_address = "redirect_uri is missing or is not one of the app's, letter by letter."

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.apps: dict[str, RegisteredApp] = {}

    def add_app(self, client_id: str, client_secret: str | None = "", redirect_uris: Iterable[str] = ()) -> None:
        """Register an app. From then on, its secret and addresses are checked. None as secret: a public client."""
        self.apps[client_id] = RegisteredApp(client_id, client_secret, tuple(redirect_uris))

    def find_app(self, client_id: str) -> RegisteredApp | None:
        """Return the app with this id. Every id has an app, even if it is not registered."""
        return self.apps.get(client_id) or (RegisteredApp(client_id) if client_id else None)

    def may_return_to(self, uri: str) -> bool:
        """Return whether the network permits the address at all."""
        raise NotImplementedError

    def complaint(self, asked: dict[str, str]) -> str:
        """Return what else is wrong with the app's request, or an empty text."""
        return ""

    def consent_problem(self, client_id: str, asked: dict[str, str]) -> str:
        uri, app = asked.get("redirect_uri", ""), self.apps.get(client_id)
        if not self.may_return_to(uri) or (app is not None and app.redirect_uris and uri not in app.redirect_uris):
            return self.wrong_address
        return self.complaint(asked) or super().consent_problem(client_id, asked)

    def authenticate(self, request: SandboxRequest, form: dict[str, str]) -> str:
        client_id = super().authenticate(request, form)
        _, secret = request.basic or ("", form.get("client_secret", ""))
        if client_id in self.apps and not self.apps[client_id].accepts(secret):
            raise self.oauth_refusal("client")
        return client_id


class StrictX(StrictOAuth):
    """PKCE is `S256` or `plain`."""

    wrong_address = "redirect_uri is missing or is not one of the app's callback addresses, letter by letter."
    exchange_fields = ("code", "redirect_uri", "code_verifier")

    def may_return_to(self, uri: str) -> bool:
        scheme, _, rest = uri.partition("://")
        host = rest.split("/", 1)[0].rsplit(":", 1)[0]
        return scheme in ("http", "https") and host not in ("", "localhost") and "#" not in uri

    def complaint(self, asked: dict[str, str]) -> str:
        if not 0 < len(asked.get("state", "")) <= 500:
            return "state must have 1 to 500 characters."
        method = asked.get("code_challenge_method", "plain")
        if method not in ("S256", "plain"):
            return "code_challenge_method must be S256 or plain."
        if not (X_CHALLENGE if method == "S256" else X_VERIFIER).fullmatch(asked.get("code_challenge", "")):
            return "code_challenge is missing or has the wrong form."
        return ""

    def authenticate(self, request: SandboxRequest, form: dict[str, str]) -> str:
        """A confidential app sends Basic; a public one sends `client_id` in the body."""
        unauthorized = self.oauth_refusal("client")
        if "authorization" not in request.headers:
            public = self.apps.get(form.get("client_id", ""))
            if public is None or public.client_secret is not None:
                raise unauthorized
            return public.client_id
        credentials = request.basic
        if credentials is None or any(sign.isspace() for sign in "".join(credentials)):
            raise unauthorized
        client_id, secret = credentials
        app = self.find_app(client_id)
        if app is None or not app.accepts(secret) or "client_secret" in form:
            raise unauthorized
        if form.get("client_id", client_id) != client_id:
            raise oauth_error(400, "invalid_request", "Value passed for the client id does not match the header.")
        return client_id

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        shown = digest if code.asked.get("code_challenge_method") == "S256" else verifier
        return bool(X_VERIFIER.fullmatch(verifier)) and shown == code.asked["code_challenge"]


class StrictTikTok(StrictOAuth):
    wrong_address = "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        if not parts.hostname or "?" in uri or "#" in uri or len(uri) >= 512:
            return False
        if is_desktop(uri):
            return parts.scheme in ("http", "https") and parts.port is not None
        return parts.scheme == "https"

    def complaint(self, asked: dict[str, str]) -> str:
        if not asked.get("state"):
            return "state is missing."
        if is_desktop(asked["redirect_uri"]) or "code_challenge" in asked:
            if not TIKTOK_CHALLENGE.fullmatch(asked.get("code_challenge", "")):
                return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
            if asked.get("code_challenge_method") != "S256":
                return "code_challenge_method must be S256."
        return ""

    def new_code(self) -> str:
        # The real codes contain such characters.
        return secrets.token_urlsafe(40) + "*1!4823.e1"

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        return code.asked.get("code_challenge", "") in ("", hashlib.sha256(verifier.encode()).hexdigest())


class StrictPinterest(StrictOAuth):
    wrong_address = "redirect_uri is missing, not https, or not one of the app's, letter by letter."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and (is_desktop(uri) or parts.hostname == "::1"))
        return bool(parts.hostname) and safe and not parts.fragment

    def authenticate(self, request: SandboxRequest, form: dict[str, str]) -> str:
        if request.basic is None:
            raise self.oauth_refusal("client")
        client_id = super().authenticate(request, form)
        if not form:
            raise self.oauth_refusal("form")
        return client_id
