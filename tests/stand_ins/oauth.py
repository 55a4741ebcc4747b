"""The strict consent pages and token endpoints of the stand-ins."""

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable
from urllib.parse import urlsplit

from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.memory import AuthorizationCode
from socialpub.sandbox.messages import SandboxRequest
from socialpub.sandbox.oauth import Asked
from socialpub.sandbox.pinterest import oauth as pinterest
from socialpub.sandbox.pinterest.network import PinterestSandbox, refused
from socialpub.sandbox.tiktok import oauth as tiktok
from socialpub.sandbox.x import oauth as x
from socialpub.sandbox.x.network import XSandbox

X_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
X_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
TIKTOK_CHALLENGE = re.compile(r"[0-9a-f]{64}")


def is_desktop(uri: str) -> bool:
    return urlsplit(uri).hostname in ("localhost", "127.0.0.1")


class XAuthorization(x.XAuthorization):
    """PKCE is `S256` or `plain`."""

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

    def authenticate(self, network: XSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        """A confidential app sends Basic; a public one sends `client_id` in the body."""
        unauthorized = x.error(401, "unauthorized_client", "Missing valid authorization header")
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
            raise x.error(401, "invalid_client", "Value passed for the client id was invalid.")
        if not app.accepts(secret) or "client_secret" in form:
            raise unauthorized
        if form.get("client_id", client_id) != client_id:
            raise x.error(400, "invalid_request", "Value passed for the client id does not match the header.")
        return client_id

    def fits(self, code: AuthorizationCode, verifier: str) -> bool:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        shown = verifier if code.method == "plain" else digest
        return bool(X_VERIFIER.fullmatch(verifier)) and shown == code.challenge


class TikTokAuthorization(tiktok.TikTokAuthorization):
    wrong_address = "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        if not parts.hostname or "?" in uri or "#" in uri or len(uri) >= 512:
            return False
        if is_desktop(uri):
            return parts.scheme in ("http", "https") and parts.port is not None
        return parts.scheme == "https"

    def complaint(self, asked: Asked) -> str:
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
        return code.challenge in ("", hashlib.sha256(verifier.encode()).hexdigest())


class PinterestAuthorization(pinterest.PinterestAuthorization):
    wrong_address = "redirect_uri is missing, not https, or not one of the app's, letter by letter."

    def may_return_to(self, uri: str) -> bool:
        parts = urlsplit(uri)
        safe = parts.scheme == "https" or (parts.scheme == "http" and (is_desktop(uri) or parts.hostname == "::1"))
        return bool(parts.hostname) and safe and not parts.fragment

    def authenticate(self, network: PinterestSandbox, request: SandboxRequest, form: dict[str, str]) -> str:
        client_id, secret = request.basic or ("", "")
        app = network.find_app(client_id)
        if app is None or not app.accepts(secret):
            raise refused("authentication_failed")
        if not form:
            raise self.refusal(network, "form")
        return client_id


def strict(calls: Iterable[SandboxCall], *authorization: SandboxCall) -> tuple[SandboxCall, ...]:
    """Return the calls of a network with these instead of its own consent page and token endpoints."""
    names = {call.name for call in authorization}
    return (*authorization, *(call for call in calls if call.name not in names))
