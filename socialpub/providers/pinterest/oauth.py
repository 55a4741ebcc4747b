"""Pinterest's side of tokens: who an account is, fresh tokens, revocation.

Status and code together tell errors apart. A 401 has two meanings: code 3 is about the app, which no new consent can
help, and every other code is about the token.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, OAuth, Tokens, read_tokens
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.client import TABLE
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, Rejected, json_object, text_at

NOT_PERMITTED_CODE = 29
REFUSED = {
    "authorization_code": "Pinterest does not accept the consent: begin again. When that happens every time, check "
    "client_id and client_secret in [providers.pinterest].",
    "refresh_token": "Pinterest does not accept the refresh token: connect the account again. When this happens to "
    "every account at once, check client_id and client_secret in [providers.pinterest].",
}
"""By grant type: a 401 with code 2 is about what was given, or about the app's secret. Pinterest does not say which."""
NEEDED = {scope: f"{scope} was not granted: pins cannot be created without it." for scope in limits.SCOPES_TO_PUBLISH}


class PinterestOAuth(OAuth):
    refresh_early_seconds = 3 * 86400
    """Of 30 days: the refresh token lives 60, so that even a quiet account is renewed in time."""

    idle_refresh_seconds = 27 * 86400
    """Of the refresh token's 60 days, and before the access token's 30 are over."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    def __init__(self, section: PinterestSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:  # noqa: ARG002
        """Return the consent page for one connection. `redirect_uri` must be registered with the app letter by letter.

        Pinterest describes no PKCE, so `verifier` is not used.
        """
        query = {
            "client_id": self._section.client_id,
            "redirect_uri": redirect_uri,
            "response_type": "code",
            "scope": ",".join(self._section.scopes),
            "state": state,
        }
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote, safe=':,')}"

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:  # noqa: ARG002
        response = http.call("GET", f"{self._section.api_url}/user_account", token=access_token)
        found = json_object(response)
        if not response.ok:
            raise TABLE.classify(response)
        username = text_at(found, "username")
        account_id = text_at(found, "id") or username
        if account_id is None:
            raise NoAnswer("Pinterest's answer does not say whose account this is.")
        account_type = text_at(found, "account_type")
        return Identity(
            account_id=account_id,
            username=username,
            name=text_at(found, "business_name") or username,
            picture_url=text_at(found, "profile_image"),
            facts={"account_type": account_type} if account_type else {},
        )

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None:
        """Ask Pinterest to take the tokens back. It does so for system users only and refuses all others, which is no
        failure: their tokens end by being erased here, and in Pinterest's own settings."""
        response = self._post(http, "/oauth/token/revoke", {"token": refresh_token or access_token})
        found = json_object(response)
        refused = response.status == 403 and found.get("code") == NOT_PERMITTED_CODE
        taken = response.ok and (not response.body.strip() or found)
        if not (taken or refused):
            raise TABLE.classify(response)

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or scopes.issuperset(limits.SCOPES_TO_PUBLISH)

    def _wanted_scopes(self) -> Mapping[str, str]:
        secret = [scope for scope in limits.SCOPES_FOR_SECRET if scope in self._section.scopes]
        return {
            **NEEDED,
            **{scope: f"{scope} was not granted: secret boards cannot be used without it." for scope in secret},
        }

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:  # noqa: ARG002
        # Apps from before 25 September 2025 get a refresh token that can be renewed only when they ask for it.
        return {"continuous_refresh": "true"}

    def _request_tokens(self, http: Http, fields: Mapping[str, str]) -> Tokens:
        response = self._post(http, "/oauth/token", fields)
        if not response.ok:
            try:
                raise TABLE.classify(response)
            except AuthExpired as error:
                about: dict[str, Any] = {"code": error.code, "request_id": error.request_id}
                raise Rejected(REFUSED[fields["grant_type"]], status=response.status, reauth=True, **about) from None
        tokens = read_tokens(json_object(response), "refresh_token_expires_in")
        if tokens is None:
            raise NoAnswer(f"Pinterest's token answer could not be read (HTTP {response.status}).")
        return tokens

    def _post(self, http: Http, path: str, form: Mapping[str, str]) -> HttpResponse:
        """The parameters go into the body: in the query they are ignored."""
        credentials = (self._section.client_id, self._section.client_secret.get_secret_value())
        return http.call("POST", f"{self._section.api_url}{path}", auth=credentials, form=form)

    def how_to_use_secret_boards(self, granted: frozenset[str]) -> str | None:
        """Return what the owner does so that a connection with these scopes can use secret boards; None when it can."""
        lacking = [scope for scope in limits.SCOPES_FOR_SECRET if scope not in granted]
        if not lacking:
            return None
        lacks = "This connection lacks" if granted else "Its connection needs"
        asked = set(lacking) <= set(self._section.scopes)
        add = "" if asked else "Add them to scopes of [providers.pinterest], then connect"
        return f"{lacks} {', '.join(lacking)} for secret boards. {add or 'Connect'} the account again."
