"""OAuth at TikTok: consent, tokens, revocation and the account's identity.

The body of a response decides: TikTok also sends errors with status 200. Each endpoint has one of two shapes (an
envelope for data, a flat object for tokens). A response of another shape does not come from TikTok.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from socialpub.core import commands
from socialpub.core.settings.networks import PKCE_BASE64URL, TikTokSection
from socialpub.providers.auth import Account, Identity, Tokens
from socialpub.providers.http import Http
from socialpub.providers.oauth import OAuth, pkce_challenge, read_tokens
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
    "invalid_client": "Check client_key and client_secret in [providers.tiktok].",
    "unauthorized_client": "The app is not live, or the account is not one of its target users.",
    "invalid_scope": "The app lacks one of the scopes in [providers.tiktok].",
    "invalid_grant": "Connect the account again.",
}
PKCE_FAULT = re.compile(r"code[ _](verifier|challenge)", re.IGNORECASE)
"""In TikTok's description of an `invalid_request`: "Code verifier or code challenge is invalid."."""
PKCE_REMEDY = (
    "Set pkce in [providers.tiktok] to another value: true (TikTok's hexadecimal challenge), "
    f'"{PKCE_BASE64URL}" (the standard\'s challenge) or false (no challenge).'
)
BEGIN_AGAIN = frozenset({"invalid_request", "access_denied"})
"""A code that is late, used or from another consent, and a consent that the owner refused."""
PASSING_FAULTS = frozenset({"server_error", "temporarily_unavailable"})


class TikTokOAuth(OAuth):
    refresh_early_seconds = 7200
    """Of 24 hours: a token must outlive the upload and the polls after it."""

    idle_refresh_seconds = 90 * 86400
    """Of 365 days. TikTok does not document whether a refresh restarts them."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    revokes_every_grant = True
    """Assumed: TikTok documents only that the developer removed the authorization."""

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
            # TikTok documents hexadecimal instead of the standard's base64url.
            standard = self._section.pkce == PKCE_BASE64URL
            query["code_challenge"] = (
                pkce_challenge(verifier) if standard else hashlib.sha256(verifier.encode()).hexdigest()
            )
            query["code_challenge_method"] = "S256"
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote)}"

    def identify(self, http: Http, account: Account, access_token: str) -> Identity:
        # A field outside the granted scopes may fail the whole call.
        fields = BASIC_FIELDS + (PROFILE_FIELDS if limits.SCOPE_PROFILE in account.scopes else ())
        url = f"{self._section.api_url}/v2/user/info/"
        user = object_at(_data(http.call("GET", url, token=access_token, params={"fields": ",".join(fields)})), "user")
        open_id = text_at(user, "open_id")
        if open_id is None:
            raise NoAnswer("TikTok's response does not identify the account.")
        union_id = text_at(user, "union_id")
        return Identity(
            account_id=open_id,
            username=text_at(user, "username"),
            name=text_at(user, "display_name"),
            picture_url=text_at(user, "avatar_url"),
            facts={"union_id": union_id} if union_id else {},
        )

    def revoke(self, http: Http, account: Account, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        response = self._post(http, "revoke", {"token": access_token})
        if not response.ok or not _is_confirmed(response):
            raise _read_failure(response, "revoke the account's access")

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or not scopes.isdisjoint({limits.SCOPE_DIRECT, limits.SCOPE_DRAFT})

    def _wanted_scopes(self) -> Mapping[str, str]:
        uses = {
            limits.SCOPE_DIRECT: 'posts with mode "direct" are not possible',
            limits.SCOPE_DRAFT: 'drafts (mode "draft") are not possible',
            limits.SCOPE_LIST: "TikTok does not report the exact links of posts",
        }
        asked = self._section.scopes
        return {scope: f"{scope} was not granted, so {use}." for scope, use in uses.items() if scope in asked}

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:
        return {"code_verifier": verifier} if self._section.pkce else {}

    def _request_tokens(self, http: Http, fields: Mapping[str, str]) -> Tokens:
        response = self._post(http, "token", fields)
        body = json_object(response)
        tokens = read_tokens(body)
        if tokens is None or text_at(body, "error"):
            login = fields["grant_type"] == "authorization_code"
            doing = "connect the account" if login else "refresh the account's access"
            raise _read_failure(response, doing, login=login)
        return tokens

    def _post(self, http: Http, endpoint: str, form: Mapping[str, str]) -> HttpResponse:
        secret = self._section.client_secret.get_secret_value()
        credentials = {"client_key": self._section.client_key, "client_secret": secret}
        return http.call("POST", f"{self._section.api_url}/v2/oauth/{endpoint}/", form={**credentials, **form})


def _is_confirmed(response: HttpResponse) -> bool:
    """Return whether TikTok confirmed a revocation: an empty body, or an object without an error."""
    if not response.body.strip():
        return True
    try:
        body = response.json()
    except NoAnswer:
        return False
    return isinstance(body, dict) and not body.get("error")


def _data(response: HttpResponse) -> dict[str, Any]:
    body, status = read_error(response), response.status
    code = body.code
    if code == "ok" and status < 400:
        return object_at(json_object(response), "data")
    about: dict[str, Any] = {"code": code, "request_id": body.request_id}
    if code in (None, "ok", "internal_error") or status >= 500:
        raise NoAnswer(f"TikTok sent no usable response (HTTP {status}).", **about)
    quoted = body.message or code
    if code == "rate_limit_exceeded":
        raise Throttled("TikTok's rate limit is reached.", retry_after_seconds=named_wait(response), **about)
    if code in SCOPE_CODES:
        message = f"TikTok requires a permission that was not granted: {quoted}. Connect the account again."
        raise Rejected(message, status=status, reauth=True, **about)
    if code == "access_token_invalid":
        raise AuthExpired("TikTok does not accept the access token.", **about)
    raise Rejected(f"TikTok refused the request: {quoted} ({code}).", status=status, **about)


def _read_failure(response: HttpResponse, doing: str, *, login: bool = False) -> ProviderError:
    """Return the error of a token endpoint. Of a refresh, only `invalid_grant` requires a new consent."""
    body = json_object(response)
    code = text_at(body, "error")
    about: dict[str, Any] = {"code": code, "request_id": text_at(body, "log_id")}
    if code is None or code in PASSING_FAULTS or response.status >= 500:
        return NoAnswer(f"TikTok could not {doing} (HTTP {response.status}).", **about)
    if response.status == 429 or code == "rate_limit_exceeded":
        return Throttled("TikTok's rate limit is reached.", retry_after_seconds=named_wait(response), **about)
    said = shortened(text_at(body, "error_description"))
    remedy = TOKEN_FAULTS.get(code)
    message = f"TikTok refused to {doing}. {remedy}" if remedy else f"TikTok refused to {doing}: {said or code}"
    message = f"{message.rstrip('.')}."
    reauth = code == "invalid_grant" or (login and code in BEGIN_AGAIN)
    if login and PKCE_FAULT.search(said):
        # A new consent with the same setting ends the same way.
        restart = commands.restart()
        message, reauth = f"{message} {PKCE_REMEDY} {restart}. Then connect the account again.", False
    return Rejected(message, status=response.status, reauth=reauth, **about)
