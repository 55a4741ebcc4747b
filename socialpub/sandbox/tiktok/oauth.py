"""TikTok's OAuth: the consent page, where the user picks the permissions, and the token endpoint."""

import base64
import hashlib
import re
import secrets
from typing import Any, ClassVar
from urllib.parse import urlsplit

from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.oauth import Asked, ConsentPage, TokenEndpoint
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tokens import AuthorizationCode, SandboxApp, Token

CHALLENGE = re.compile(r"[0-9a-f]{64}")
LOOPBACK = ("localhost", "127.0.0.1")
MEANINGS = {
    "user.info.basic": "See your avatar and display name",
    "user.info.profile": "See your username, bio and profile link",
    "user.info.stats": "See your follower, like and video counts",
    "video.list": "See your public videos",
    "video.publish": "Post to your profile",
    "video.upload": "Send drafts to your inbox",
}
SCOPES = tuple(MEANINGS)
REFUSALS = {
    "form": ("invalid_request", "Only a form is supported."),
    "grant_type": ("unsupported_grant_type", "The grant type is not supported."),
    "missing": ("invalid_request", "{} is missing."),
    "code": ("invalid_grant", "Authorization code is expired or was used."),
    "redirect_uri": ("invalid_request", "Redirect_uri is not matched with the uri of the code."),
    "verifier": ("invalid_request", "Code verifier or code challenge is invalid."),
    "refresh_token": ("invalid_grant", "Refresh token is invalid or expired."),
}


class TikTokConsent(ConsentPage[TikTokSandbox]):
    label = "TikTok"
    client_id_fields = ("client_key",)
    meanings: ClassVar = MEANINGS
    always_given = "user.info.basic"

    def complaint(self, app: SandboxApp, asked: Asked) -> str:
        uri = asked.get("redirect_uri", "")
        if not _may_return_to(app, uri):
            return "redirect_uri is missing, not one of the app's, or not of a form that the app's platform allows."
        if asked.get("response_type") != "code":
            return "response_type must be code."
        if not asked.get("state"):
            return "state is missing."
        if _is_desktop(uri) or "code_challenge" in asked:
            if not CHALLENGE.fullmatch(asked.get("code_challenge", "")):
                return "code_challenge must be the SHA-256 of the verifier in 64 lower-case hexadecimal digits."
            if asked.get("code_challenge_method") != "S256":
                return "code_challenge_method must be S256."
        return self.scopes_complaint(asked)

    def accounts(self, network: TikTokSandbox) -> list[tuple[str, str, str]]:
        return [
            (one.username, one.display_name, "private" if one.private else "public")
            for one in network.accounts.values()
        ]

    def new_code(self, network: TikTokSandbox) -> str:  # noqa: ARG002
        # The real codes contain such characters.
        return secrets.token_urlsafe(40) + "*1!4823.e1"

    def approval(self, code: str, scopes: list[str]) -> dict[str, str]:
        return {"code": code, "scopes": ",".join(scopes)}

    def denial(self) -> dict[str, str]:
        return {"error": "access_denied", "error_description": "User denied authorization", "errCode": "-2"}


def _is_desktop(uri: str) -> bool:
    return urlsplit(uri).hostname in LOOPBACK


def _may_return_to(app: SandboxApp, uri: str) -> bool:
    """Return whether the address follows the rules of its platform, and is a registered one where there are any."""
    parts = urlsplit(uri)
    if not parts.hostname or "?" in uri or "#" in uri or len(uri) >= 512:
        return False
    if _is_desktop(uri):
        fits = parts.scheme in ("http", "https") and parts.port is not None
    else:
        fits = parts.scheme == "https"
    return fits and (not app.redirect_uris or uri in app.redirect_uris)


class TikTokTokens(TokenEndpoint[TikTokSandbox]):
    def authenticate(self, network: TikTokSandbox, request: SandboxRequest, form: dict[str, str]) -> str:  # noqa: ARG002
        app = network.find_app(form.get("client_key", ""))
        if app is None or not app.accepts(form.get("client_secret", "")):
            raise Refusal(network.oauth_error("invalid_client", "Client key or secret is incorrect."))
        return app.client_id

    def refusal(self, network: TikTokSandbox, reason: str, name: str = "") -> Refusal:
        error, description = REFUSALS[reason]
        return Refusal(network.oauth_error(error, description.format(name)))

    def verify(self, network: TikTokSandbox, code: AuthorizationCode, verifier: str) -> None:
        digest = hashlib.sha256(verifier.encode()).digest()
        if code.challenge in ("", digest.hex()):
            return
        refusal = self.refusal(network, "verifier")
        if not verifier:
            hint = "code_verifier is missing"
        elif base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == code.challenge:
            hint = "the challenge is base64url; TikTok requires lower-case hex"
        else:
            hint = "the verifier does not belong to this challenge"
        refusal.reply.headers.append(("x-sandbox-hint", hint))
        raise refusal

    def renew(self, network: TikTokSandbox, old: Token, client_id: str) -> Token | None:
        if not network.tokens.may_refresh(old, client_id) and not _in_grace(network, old, client_id):
            return None
        keeps = not network.rotates or network.omits_refresh_token
        if not keeps and not old.spent:
            network.spent_at[old.refresh or ""] = network.timestamp()
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


def _in_grace(network: TikTokSandbox, old: Token, client_id: str) -> bool:
    """Return whether a used refresh token still works."""
    used_at = network.spent_at.get(old.refresh or "")
    return (
        used_at is not None
        and not old.dead
        and old.client_id in (None, client_id)
        and network.timestamp() - used_at < network.refresh_grace_seconds
    )


authorize = TikTokConsent().authorize
token, revoke = TikTokTokens().token, TikTokTokens().revoke
