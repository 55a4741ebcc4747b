"""OAuth at X for apps with and without a secret: consent, refresh, revocation and the account's identity.

A refresh token works once. Only a response about the token itself sends the owner back to the consent page.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from socialpub.core.settings.networks import XSection
from socialpub.providers.auth import Account, Identity, Tokens
from socialpub.providers.http import Http
from socialpub.providers.oauth import OAuth, pkce_challenge, read_tokens
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    ProviderError,
    Rejected,
    Throttled,
    as_object,
    json_object,
    object_at,
    quote_words,
    text_at,
)
from socialpub.providers.x import limits
from socialpub.providers.x.client import REQUEST_ID, classify, read_data, read_error, seconds_until_reset

SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
USER_FIELDS = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
FACTS = ("subscription_type", "verified", "verified_type", "protected")

MISSING = {
    scope: f"The connection lacks the scope {scope}, so {effect}. Connect the account again."
    for scope, effect in (
        ("tweet.write", "X does not accept posts"),
        ("media.write", "posts with media will fail"),
        ("offline.access", "the connection ends after two hours"),
        ("tweet.read", "socialpub cannot read back a post with an unknown outcome"),
        ("users.read", "socialpub cannot identify the account again"),
    )
}

REFUSED_TOKENS = re.compile(r"value passed for the (authorization code|(refresh )?token) was invalid", re.IGNORECASE)
"""A spent, revoked or expired token or code. `invalid_grant` means the same."""

OAUTH_ERROR = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""All names of RFC 6749. An `error` of another form does not come from X's token endpoint."""

FAULTS_OF_THE_APP = {
    "invalid_client": "X does not know the app. Check client_id in [providers.x] and the app at console.x.com.",
    "invalid_request": "X refused the token request. Check the app's callback URLs and settings at console.x.com.",
}

UNAUTHORIZED = (
    "X does not accept the app's credentials. Check client_id and client_secret in [providers.x]. At console.x.com, "
    "the app must be a confidential client (Web App). For a public client (Native App), leave client_secret empty."
)
UNAUTHORIZED_PUBLIC = (
    "X does not accept the app without its secret. Set client_secret in [providers.x], or make the app a public client "
    "(Native App) at console.x.com."
)


class XOAuth(OAuth):
    refresh_early_seconds = 300
    """Short on purpose: every refresh can break the chain of single-use tokens."""

    idle_refresh_seconds = 30 * 86400
    """X does not document how long a refresh token lives. Integrators report about six months."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    def __init__(self, section: XSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """Return the consent page for one connection. `state` has at most 500 characters."""
        query = {
            "response_type": "code",
            "client_id": self._section.client_id.strip(),
            "redirect_uri": redirect_uri,
            "scope": " ".join(SCOPES),
            "state": state,
            "code_challenge": pkce_challenge(verifier),
            "code_challenge_method": "S256",
        }
        # X answers a space written as "+" with `invalid_scope`.
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote)}"

    def identify(self, http: Http, account: Account, access_token: str) -> Identity:  # noqa: ARG002
        """Return the account that the token belongs to. X charges for this call, so this call is not a health check."""
        url = f"{self._section.api_url}/2/users/me"
        response = http.call("GET", url, token=access_token, params={"user.fields": USER_FIELDS})
        if response.status != 200:
            raise classify(response, now=None)
        user = object_at(as_object(response.json()), "data")
        account_id = text_at(user, "id")
        if account_id is None:
            raise NoAnswer("X's response does not identify the account.", request_id=response.headers.get(REQUEST_ID))
        return Identity(
            account_id=account_id,
            username=text_at(user, "username"),
            name=text_at(user, "name"),
            picture_url=text_at(user, "profile_image_url"),
            facts={key: user[key] for key in FACTS if key in user},
        )

    def revoke(self, http: Http, account: Account, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        for token in filter(None, (refresh_token, access_token)):
            response = self._post(http, "revoke", {"token": token})
            if response.ok:
                read_data(response)
                continue
            error = self._read_failure(response)
            if not (isinstance(error, Rejected) and error.reauth):
                raise error

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or "tweet.write" in scopes

    def _wanted_scopes(self) -> Mapping[str, str]:
        return MISSING

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:
        return {"code_verifier": verifier}

    def _request_tokens(self, http: Http, fields: Mapping[str, str]) -> Tokens:
        response = self._post(http, "token", fields)
        if response.status != 200:
            raise self._read_failure(response)
        tokens = read_tokens(as_object(response.json()))
        if tokens is None:
            raise NoAnswer("X's response does not contain a token.", request_id=response.headers.get(REQUEST_ID))
        return tokens

    def _post(self, http: Http, endpoint: str, fields: Mapping[str, str]) -> HttpResponse:
        # Some of X's servers require `client_id` in the body even from a client with a secret. A Basic header fails
        # for a client without a secret.
        section, secret = self._section, self._section.client_secret.get_secret_value()
        return http.call(
            "POST",
            f"{section.api_url}/2/oauth2/{endpoint}",
            form={**fields, "client_id": section.client_id},
            auth=(section.client_id, secret) if secret else None,
        )

    def _read_failure(self, response: HttpResponse) -> ProviderError:
        """Return the error that a failed response of the token or revocation endpoint means."""
        request_id = response.headers.get(REQUEST_ID)
        body = read_error(response)
        kind = text_at(json_object(response), "error")
        if kind is not None and not OAUTH_ERROR.fullmatch(kind):
            kind = None
        if response.status == 429 and (body.own_form or kind):
            wait = seconds_until_reset(response.headers, None)
            message = "X's rate limit for token requests is reached."
            return Throttled(message, retry_after_seconds=wait, request_id=request_id)
        if not 400 <= response.status < 500 or kind is None:
            message = f"X's token endpoint sent no usable response (HTTP {response.status}){quote_words(response)}."
            return NoAnswer(message, request_id=request_id)
        spent = kind == "invalid_grant" or (
            response.status == 400 and kind == "invalid_request" and any(map(REFUSED_TOKENS.search, body.texts))
        )
        if spent:
            message = "X no longer accepts the authorization. Connect the account again."
        elif kind == "unauthorized_client":
            message = UNAUTHORIZED if self._section.client_secret else UNAUTHORIZED_PUBLIC
        else:
            message = FAULTS_OF_THE_APP.get(kind, "X refused to issue a token.")
        quoted = f' X says: "{body.message}"' if body.message and body.message != kind else ""
        return Rejected(message + quoted, status=response.status, reauth=spent, code=kind, request_id=request_id)
