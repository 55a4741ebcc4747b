"""TikTok's side of tokens: who an account is, fresh tokens, giving them back.

Answers are judged by their body: TikTok puts errors into answers with status 200. Of the two shapes (an envelope for
data, a flat one for tokens) each endpoint has one; what has another one was not written by TikTok and is no answer.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from socialpub.core import commands
from socialpub.core.settings.networks import PKCE_BASE64URL, TikTokSection
from socialpub.providers.errors import AuthExpired, NoAnswer, ProviderError, Rejected, Throttled
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, Tokens
from socialpub.providers.responses import (
    HttpResponse,
    json_object,
    object_at,
    positive_int_at,
    shortened,
    text_at,
)
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.client import SCOPE_CODES, named_wait, read_error

BASIC_FIELDS = ("open_id", "union_id", "display_name", "avatar_url")
PROFILE_FIELDS = ("username",)

TOKEN_FAULTS: Mapping[str, str] = {
    "invalid_client": "the client key or secret in [providers.tiktok] is not accepted",
    "unauthorized_client": "the app may not sign people in (it is not live, or the account is not a target user of it)",
    "invalid_scope": "a scope is not granted to the app",
    "invalid_grant": "the owner must connect the account again",
}
PKCE_FAULT = re.compile(r"code[ _](verifier|challenge)", re.IGNORECASE)
"""In TikTok's description of an `invalid_request`: "Code verifier or code challenge is invalid."."""
PKCE_REMEDY = (
    "Set pkce in [providers.tiktok] to another value: true (TikTok's hexadecimal challenge), "
    f'"{PKCE_BASE64URL}" (the standard\'s challenge) or false (no challenge). Connect the account again after that.'
)
BEGIN_AGAIN = frozenset({"invalid_request", "access_denied"})
"""A code that came too late, twice or from another consent, and an owner who said no."""
PASSING_FAULTS = frozenset({"server_error", "temporarily_unavailable"})


class TikTokOAuth:
    refresh_early_seconds = 7200
    """Of 24 hours: a token must outlive the upload and the looks at it that follow."""

    idle_refresh_seconds = 90 * 86400
    """Of 365 days. Whether a refresh begins them anew is not documented; a few a year cost nothing."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    revokes_every_grant = True
    """The documentation does not say; its word for it is that the developer removed the authorization."""

    def __init__(self, section: TikTokSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """The consent page for one connection. `verifier` is PKCE's (43 to 128 characters)."""
        query = {
            "client_key": self._section.client_key,
            "response_type": "code",
            "scope": ",".join(self._section.scopes),
            "redirect_uri": redirect_uri,
            "state": state,
        }
        if self._section.pkce:
            query["code_challenge"] = _challenge(verifier, self._section)
            query["code_challenge_method"] = "S256"
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote)}"

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:
        """Trade the code of a consent (URL-decoded once, as frameworks do) for tokens. `redirect_uri` is the very one
        of the consent.

        Raises `Rejected` with `reauth` when the owner must begin again, without it when the app's settings are wrong.
        """
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        if self._section.pkce:
            fields["code_verifier"] = verifier
        return _tokens(_post(http, self._section, "token", fields), "connect the account", login=True)

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:
        """Who this token belongs to. Only fields within `scopes` are asked for: others may fail the whole question."""
        fields = BASIC_FIELDS + (PROFILE_FIELDS if limits.SCOPE_PROFILE in scopes else ())
        response = http.call(
            "GET",
            f"{self._section.api_url}/v2/user/info/",
            token=access_token,
            params={"fields": ",".join(fields)},
        )
        user = object_at(_data(response), "user")
        open_id = text_at(user, "open_id")
        if open_id is None:
            raise NoAnswer("TikTok's answer does not say whose account this is.")
        union_id = text_at(user, "union_id")
        return Identity(
            account_id=open_id,
            username=text_at(user, "username"),
            name=text_at(user, "display_name"),
            picture_url=text_at(user, "avatar_url"),
            facts={"union_id": union_id} if union_id else {},
        )

    def refresh(self, http: Http, refresh_token: str) -> Tokens:
        """A new pair. TikTok may change the refresh token; then only the new one counts."""
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        response = _post(http, self._section, "token", fields)
        return _tokens(response, "refresh the account's access")

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        """Take the whole grant back; TikTok wants the access token for it."""
        response = _post(http, self._section, "revoke", {"token": access_token})
        if not response.ok or not _says_nothing(response):
            raise _token_error(response, "revoke the account's access")

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        if not scopes:
            return []
        uses = (
            (limits.SCOPE_DIRECT, 'posts with mode "direct" are not possible'),
            (limits.SCOPE_DRAFT, 'drafts (mode "draft") are not possible'),
            (limits.SCOPE_LIST, "TikTok does not tell the exact links of posts"),
        )
        asked = self._section.scopes
        return [f"{scope} was not granted: {use}." for scope, use in uses if scope in asked and scope not in scopes]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or not scopes.isdisjoint({limits.SCOPE_DIRECT, limits.SCOPE_DRAFT})


def _challenge(verifier: str, section: TikTokSection) -> str:
    """TikTok documents hexadecimal, and not base64url as the standard has it."""
    digest = hashlib.sha256(verifier.encode())
    if section.pkce == PKCE_BASE64URL:
        return base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
    return digest.hexdigest()


def _post(http: Http, section: TikTokSection, endpoint: str, form: Mapping[str, str]) -> HttpResponse:
    credentials = {
        "client_key": section.client_key,
        "client_secret": section.client_secret.get_secret_value(),
    }
    return http.call("POST", f"{section.api_url}/v2/oauth/{endpoint}/", form={**credentials, **form})


def _says_nothing(response: HttpResponse) -> bool:
    """An empty body, or an object without an error: TikTok's yes to a revocation."""
    if not response.body.strip():
        return True
    try:
        found = response.json()
    except NoAnswer:
        return False
    return isinstance(found, dict) and not found.get("error")


def _tokens(response: HttpResponse, doing: str, *, login: bool = False) -> Tokens:
    found = json_object(response)
    access_token = text_at(found, "access_token")
    if access_token is None or text_at(found, "error"):
        raise _token_error(response, doing, login=login)
    scope = text_at(found, "scope")
    return Tokens(
        access_token=access_token,
        refresh_token=text_at(found, "refresh_token"),
        expires_in_seconds=positive_int_at(found, "expires_in"),
        refresh_expires_in_seconds=positive_int_at(found, "refresh_expires_in"),
        scopes=frozenset(scope.replace(",", " ").split()) if scope else None,
    )


def _data(response: HttpResponse) -> dict[str, Any]:
    """What an envelope holds. Raises what its error means."""
    body, status = read_error(response), response.status
    code = body.code
    if code == "ok" and status < 400:
        return object_at(json_object(response), "data")
    about: dict[str, Any] = {"code": code, "request_id": body.request_id}
    if code in (None, "ok", "internal_error") or status >= 500:
        raise NoAnswer(f"TikTok gave no usable answer (HTTP {status}).", **about)
    quoted = body.message or code
    if code == "rate_limit_exceeded":
        raise Throttled("TikTok's rate limit is reached.", retry_after_seconds=named_wait(response), **about)
    if code in SCOPE_CODES:
        message = f"TikTok wants a permission that was not granted: {quoted}. Connect the account again."
        raise Rejected(message, status=status, reauth=True, **about)
    if code == "access_token_invalid":
        raise AuthExpired("TikTok does not accept the access token.", **about)
    raise Rejected(f"TikTok refused: {quoted} ({code}).", status=status, **about)


def _token_error(response: HttpResponse, doing: str, *, login: bool = False) -> ProviderError:
    """What a token endpoint's error means. Of a refresh only `invalid_grant` says that the owner must act."""
    found = json_object(response)
    code = text_at(found, "error")
    about: dict[str, Any] = {"code": code, "request_id": text_at(found, "log_id")}
    if code is None or code in PASSING_FAULTS or response.status >= 500:
        return NoAnswer(f"TikTok could not {doing} (HTTP {response.status}).", **about)
    if response.status == 429 or code == "rate_limit_exceeded":
        return Throttled("TikTok's rate limit is reached.", retry_after_seconds=named_wait(response), **about)
    said = shortened(text_at(found, "error_description"))
    why = (TOKEN_FAULTS.get(code) or said or code).rstrip(".")
    message = f"TikTok refused to {doing}: {why}."
    reauth = code == "invalid_grant" or (login and code in BEGIN_AGAIN)
    if login and PKCE_FAULT.search(said):
        message, reauth = (
            f"{message} {PKCE_REMEDY} {commands.restart()}.",
            False,
        )  # a new consent with the same setting ends the same way
    return Rejected(message, status=response.status, reauth=reauth, **about)
