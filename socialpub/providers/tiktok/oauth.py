"""TikTok's side of tokens: who an account is, fresh tokens, revocation.

Answers are judged by their body: TikTok puts errors into answers with status 200. Each endpoint has one of two shapes
(an envelope for data, a flat one for tokens). An answer of another shape does not come from TikTok and is no answer.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from socialpub.core import commands
from socialpub.core.settings.networks import PKCE_BASE64URL, TikTokSection
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, OAuth, Tokens, pkce_challenge, read_tokens
from socialpub.providers.responses import (
    AuthExpired,
    HttpResponse,
    NoAnswer,
    ProviderError,
    Rejected,
    Throttled,
    json_object,
    object_at,
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


class TikTokOAuth(OAuth):
    refresh_early_seconds = 7200
    """Of 24 hours: a token must outlive the upload and the polls that follow it."""

    idle_refresh_seconds = 90 * 86400
    """Of 365 days. Whether a refresh restarts them is not documented; a few a year cost nothing."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    revokes_every_grant = True
    """The documentation does not say; its word for it is that the developer removed the authorization."""

    def __init__(self, section: TikTokSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        query = {
            "client_key": self._section.client_key,
            "response_type": "code",
            "scope": ",".join(self._section.scopes),
            "redirect_uri": redirect_uri,
            "state": state,
        }
        if self._section.pkce:
            # TikTok documents hexadecimal, and not base64url as the standard has it.
            standard = self._section.pkce == PKCE_BASE64URL
            query["code_challenge"] = (
                pkce_challenge(verifier) if standard else hashlib.sha256(verifier.encode()).hexdigest()
            )
            query["code_challenge_method"] = "S256"
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote)}"

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:
        """Return the account that this token belongs to. Ask only for fields within `scopes`: others may fail the
        whole question."""
        fields = BASIC_FIELDS + (PROFILE_FIELDS if limits.SCOPE_PROFILE in scopes else ())
        url = f"{self._section.api_url}/v2/user/info/"
        user = object_at(_data(http.call("GET", url, token=access_token, params={"fields": ",".join(fields)})), "user")
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

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        """Take the whole grant back; TikTok wants the access token for it."""
        response = self._post(http, "revoke", {"token": access_token})
        if not response.ok or not _says_nothing(response):
            raise _read_failure(response, "revoke the account's access")

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or not scopes.isdisjoint({limits.SCOPE_DIRECT, limits.SCOPE_DRAFT})

    def _wanted_scopes(self) -> Mapping[str, str]:
        uses = {
            limits.SCOPE_DIRECT: 'posts with mode "direct" are not possible',
            limits.SCOPE_DRAFT: 'drafts (mode "draft") are not possible',
            limits.SCOPE_LIST: "TikTok does not tell the exact links of posts",
        }
        asked = self._section.scopes
        return {scope: f"{scope} was not granted: {use}." for scope, use in uses.items() if scope in asked}

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:
        return {"code_verifier": verifier} if self._section.pkce else {}

    def _request_tokens(self, http: Http, fields: Mapping[str, str]) -> Tokens:
        response = self._post(http, "token", fields)
        found = json_object(response)
        tokens = read_tokens(found)
        if tokens is None or text_at(found, "error"):
            login = fields["grant_type"] == "authorization_code"
            doing = "connect the account" if login else "refresh the account's access"
            raise _read_failure(response, doing, login=login)
        return tokens

    def _post(self, http: Http, endpoint: str, form: Mapping[str, str]) -> HttpResponse:
        secret = self._section.client_secret.get_secret_value()
        credentials = {"client_key": self._section.client_key, "client_secret": secret}
        return http.call("POST", f"{self._section.api_url}/v2/oauth/{endpoint}/", form={**credentials, **form})


def _says_nothing(response: HttpResponse) -> bool:
    """An empty body, or an object without an error: TikTok's yes to a revocation."""
    if not response.body.strip():
        return True
    try:
        found = response.json()
    except NoAnswer:
        return False
    return isinstance(found, dict) and not found.get("error")


def _data(response: HttpResponse) -> dict[str, Any]:
    """Return what an envelope holds. Raises what its error means."""
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


def _read_failure(response: HttpResponse, doing: str, *, login: bool = False) -> ProviderError:
    """Return what a token endpoint's error means. Of a refresh only `invalid_grant` says that the owner must act."""
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
        # A new consent with the same setting ends the same way.
        message, reauth = f"{message} {PKCE_REMEDY} {commands.here().restart()}.", False
    return Rejected(message, status=response.status, reauth=reauth, **about)
