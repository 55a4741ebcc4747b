"""X's side of tokens: consent, refresh, revocation, and who the account is; for apps with a secret and without one.

A refresh token works once. Whoever calls `refresh` stores the new pair before doing anything else with it, and only
an answer that speaks of the token itself sends the owner back to the consent page.
"""

import base64
import hashlib
import re
from typing import NoReturn
from urllib.parse import quote, urlencode

from socialpub.core.settings.networks import XSection
from socialpub.providers.errors import NoAnswer, Rejected, Throttled
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, Tokens
from socialpub.providers.responses import HttpResponse, as_object, json_object, object_at, text_at
from socialpub.providers.x import limits
from socialpub.providers.x.client import REQUEST_ID, classify, read_data, read_error, seconds_until_reset

SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
USER_FIELDS = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
FACTS = ("subscription_type", "verified", "verified_type", "protected")

MISSING = {
    "tweet.write": "X lets it publish nothing: the scope tweet.write is missing. Connect the account again.",
    "media.write": "Posts with media will fail: the scope media.write is missing. Connect the account again to get it.",
    "offline.access": "It ends after two hours: the scope offline.access is missing. Connect the account again.",
    "tweet.read": "A post whose outcome is unknown cannot be read back: the scope tweet.read is missing.",
    "users.read": "The account cannot be identified again: the scope users.read is missing.",
}


class XOAuth:
    refresh_early_seconds = 300
    """Late on purpose: every refresh is a chance for the chain of single-use tokens to break."""

    idle_refresh_seconds = 30 * 86400
    """X does not tell how long a refresh token lives; about six months was reported."""

    revokes_every_grant = False

    redirect_rules = limits.REDIRECT_ADDRESSES

    def __init__(self, section: XSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """The consent page for one connection. `state` has at most 500 characters; `verifier` is PKCE's, 43 to 128."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._section.client_id.strip(),
            "redirect_uri": redirect_uri,
            "scope": " ".join(SCOPES),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        # A space written as "+" was answered with `invalid_scope`.
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote)}"

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:
        """Trade the code of a consent for tokens, within its 30 seconds. `redirect_uri` is the very one of the consent.

        Raises `Rejected` with `reauth` when the owner must begin again, without it when the app's settings are wrong.
        """
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return _ask_for_tokens(http, self._section, fields)

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:  # noqa: ARG002
        """Who the token belongs to. Billed by X: at connect time, not as a health check."""
        response = http.call(
            "GET",
            f"{self._section.api_url}/2/users/me",
            token=access_token,
            params={"user.fields": USER_FIELDS},
        )
        if response.status != 200:
            raise classify(response, now=None).rejected()
        user = object_at(as_object(response.json()), "data")
        account_id = text_at(user, "id")
        if account_id is None:
            raise NoAnswer("X did not say whose token this is.", request_id=response.headers.get(REQUEST_ID))
        return Identity(
            account_id=account_id,
            username=text_at(user, "username"),
            name=text_at(user, "name"),
            picture_url=text_at(user, "profile_image_url"),
            facts={key: user[key] for key in FACTS if key in user},
        )

    def refresh(self, http: Http, refresh_token: str) -> Tokens:
        """Trade the refresh token, which is spent by it, for a new pair.

        `NoAnswer` leaves open whether it was spent; the same token may then be tried once more.
        """
        return _ask_for_tokens(http, self._section, {"grant_type": "refresh_token", "refresh_token": refresh_token})

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None:
        """Take both tokens back. One that X does not know any more counts as taken back."""
        for token in filter(None, (refresh_token, access_token)):
            response = _post(http, self._section, "revoke", {"token": token})
            if response.ok:
                read_data(response)
                continue
            try:
                _fail(response, self._section)
            except Rejected as error:
                if not error.reauth:
                    raise

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        """What this grant cannot do, as sentences."""
        return [MISSING[scope] for scope in MISSING if scopes and scope not in scopes]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        """Posts without media need `tweet.write` alone."""
        return not scopes or "tweet.write" in scopes


def _post(http: Http, section: XSection, endpoint: str, fields: dict[str, str]) -> HttpResponse:
    """A confidential client sends its secret as Basic, and `client_id` in the body as well, which some of X's servers
    want too. A public client has no secret: it only names itself in the body, since a Basic header would fail."""
    secret = section.client_secret.get_secret_value()
    return http.call(
        "POST",
        f"{section.api_url}/2/oauth2/{endpoint}",
        form={**fields, "client_id": section.client_id},
        auth=(section.client_id, secret) if secret else None,
    )


def _ask_for_tokens(http: Http, section: XSection, fields: dict[str, str]) -> Tokens:
    response = _post(http, section, "token", fields)
    if response.status != 200:
        _fail(response, section)
    body = as_object(response.json())
    access_token = text_at(body, "access_token")
    if access_token is None:
        raise NoAnswer("X answered without a token.", request_id=response.headers.get(REQUEST_ID))
    expires_in, scope = body.get("expires_in"), text_at(body, "scope")
    return Tokens(
        access_token=access_token,
        refresh_token=text_at(body, "refresh_token"),
        expires_in_seconds=expires_in if type(expires_in) is int else None,
        scopes=frozenset(scope.split()) if scope else None,
    )


REFUSED_TOKENS = re.compile(r"value passed for the (authorization code|(refresh )?token) was invalid", re.IGNORECASE)
"""A spent, revoked or expired token or code; `invalid_grant` says the same."""

OAUTH_ERROR = re.compile(r"[a-z]+(?:_[a-z]+)+")
"""The names of RFC 6749, all of them. Whoever writes `error` otherwise is not X's token endpoint."""

FAULTS_OF_THE_APP = {
    "invalid_client": "X does not know the app: check client_id of [providers.x] and the app at console.x.com.",
    "invalid_request": "X refused the request for a token: check the app's callback URLs and its settings at "
    "console.x.com.",
}

UNAUTHORIZED = (
    "X does not accept the app's credentials: check client_id and client_secret of [providers.x], and that the app is "
    "a confidential client (Web App) at console.x.com; a public client (Native App) leaves client_secret empty."
)
UNAUTHORIZED_PUBLIC = (
    "X does not accept the app without its secret: set client_secret of [providers.x], or make the app a public client "
    "(Native App) at console.x.com."
)


def _fail(response: HttpResponse, section: XSection) -> NoReturn:
    """Raise what an answer of the token or revocation endpoint other than success means."""
    request_id = response.headers.get(REQUEST_ID)
    body = read_error(response)
    kind = text_at(json_object(response), "error")
    if kind is not None and not OAUTH_ERROR.fullmatch(kind):
        kind = None
    if response.status == 429 and (body.own_form or kind):
        raise Throttled(
            "X asks to wait before the next request for a token.",
            retry_after_seconds=seconds_until_reset(response.headers, None),
            request_id=request_id,
        )
    if not 400 <= response.status < 500 or kind is None:
        raise NoAnswer(f"X gave no token (HTTP {response.status}).", request_id=request_id)
    spent = kind == "invalid_grant" or (
        response.status == 400 and kind == "invalid_request" and any(map(REFUSED_TOKENS.search, body.texts))
    )
    if spent:
        message = "X does not accept the authorization any more: connect the account again."
    elif kind == "unauthorized_client":
        message = UNAUTHORIZED if section.client_secret else UNAUTHORIZED_PUBLIC
    else:
        message = FAULTS_OF_THE_APP.get(kind, "X refused to give a token.")
    quoted = f' X says: "{body.message}"' if body.message and body.message != kind else ""
    raise Rejected(message + quoted, status=response.status, reauth=spent, code=kind, request_id=request_id)
