"""OAuth at Pinterest: consent, tokens, revocation and the account's identity.

Status and code decide together. A 401 with code 3 concerns the app, and a new consent does not help. A 401 with any
other code concerns the token.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.auth import Account, Identity, Tokens
from socialpub.providers.http import Http
from socialpub.providers.oauth import OAuth, read_tokens
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.client import TABLE
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, Rejected, json_object, text_at

NOT_PERMITTED_CODE = 29
REFUSED = {
    "authorization_code": "Pinterest does not accept the consent. Connect the account again. If this happens every "
    "time, check client_id and client_secret in [providers.pinterest].",
    "refresh_token": "Pinterest does not accept the refresh token. Connect the account again. If this happens to all "
    "accounts at once, check client_id and client_secret in [providers.pinterest].",
}
"""By grant type. A 401 with code 2 means a wrong code or token, or a wrong secret of the app."""
NEEDED = {
    scope: f"{scope} was not granted, so pins cannot be created. Connect the account again."
    for scope in limits.SCOPES_TO_PUBLISH
}


class PinterestOAuth(OAuth):
    refresh_early_seconds = 3 * 86400
    """Of the access token's 30 days."""

    idle_refresh_seconds = 27 * 86400
    """Of the refresh token's 60 days, and before the access token's 30 days end."""

    redirect_rules = limits.REDIRECT_ADDRESSES

    def __init__(self, section: PinterestSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:  # noqa: ARG002
        """Return the consent page for one connection. Pinterest does not document PKCE, so `verifier` is unused."""
        query = {
            "client_id": self._section.client_id,
            "redirect_uri": redirect_uri,
            "response_type": "code",
            "scope": ",".join(self._section.scopes),
            "state": state,
        }
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote, safe=':,')}"

    def identify(self, http: Http, account: Account, access_token: str) -> Identity:  # noqa: ARG002
        response = http.call("GET", f"{self._section.api_url}/user_account", token=access_token)
        body = json_object(response)
        if not response.ok:
            raise TABLE.classify(response)
        username = text_at(body, "username")
        account_id = text_at(body, "id") or username
        if account_id is None:
            raise NoAnswer("Pinterest's response does not identify the account.")
        account_type = text_at(body, "account_type")
        return Identity(
            account_id=account_id,
            username=username,
            name=text_at(body, "business_name") or username,
            picture_url=text_at(body, "profile_image"),
            facts={"account_type": account_type} if account_type else {},
        )

    def revoke(self, http: Http, account: Account, access_token: str, refresh_token: str | None) -> None:  # noqa: ARG002
        """Revoke the tokens. Pinterest does so only for system users, so a refusal is not a failure.

        Erasing the tokens here and the account's settings on Pinterest end all others.
        """
        response = self._post(http, "/oauth/token/revoke", {"token": refresh_token or access_token})
        body = json_object(response)
        refused = response.status == 403 and body.get("code") == NOT_PERMITTED_CODE
        taken = response.ok and (not response.body.strip() or body)
        if not (taken or refused):
            raise TABLE.classify(response)

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or scopes.issuperset(limits.SCOPES_TO_PUBLISH)

    def _wanted_scopes(self) -> Mapping[str, str]:
        secret = [scope for scope in limits.SCOPES_FOR_SECRET if scope in self._section.scopes]
        return {
            **NEEDED,
            **{scope: f"{scope} was not granted, so secret boards cannot be used." for scope in secret},
        }

    def _exchange_fields(self, verifier: str) -> Mapping[str, str]:  # noqa: ARG002
        # Apps from before 25 September 2025 must request a refresh token that can be renewed.
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
            raise NoAnswer(f"Pinterest's token response could not be read (HTTP {response.status}).")
        return tokens

    def _post(self, http: Http, path: str, form: Mapping[str, str]) -> HttpResponse:
        # Pinterest ignores parameters in the query.
        credentials = (self._section.client_id, self._section.client_secret.get_secret_value())
        return http.call("POST", f"{self._section.api_url}{path}", auth=credentials, form=form)

    def how_to_use_secret_boards(self, granted: frozenset[str]) -> str | None:
        """Return how the owner enables secret boards for a connection with these scopes, or None if enabled."""
        lacking = [scope for scope in limits.SCOPES_FOR_SECRET if scope not in granted]
        if not lacking:
            return None
        lacks = "This connection lacks" if granted else "Its connection needs"
        asked = set(lacking) <= set(self._section.scopes)
        add = "" if asked else "Add these permissions to scopes in [providers.pinterest], then connect"
        return f"{lacks} {', '.join(lacking)} for secret boards. {add or 'Connect'} the account again."
