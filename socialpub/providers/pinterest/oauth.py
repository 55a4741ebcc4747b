"""Pinterest's side of tokens: who an account is, fresh tokens, giving them back.

Errors are told apart by status and code together. A 401 has two meanings that must not be mixed: code 3 is about the
app, which no new consent can help, and every other is about the token.
"""

from urllib.parse import quote, urlencode

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.errors import AuthExpired, NoAnswer, Rejected
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, Tokens
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.client import TABLE
from socialpub.providers.responses import HttpResponse, json_object, positive_int_at, text_at

NOT_PERMITTED_CODE = 29


class PinterestOAuth:
    refresh_early_seconds = 3 * 86400
    """Of 30 days: the refresh token lives 60, so that even a quiet account is renewed in time."""

    idle_refresh_seconds = 27 * 86400
    """Of the refresh token's 60 days, and before the access token's 30 are over."""

    revokes_every_grant = False

    redirect_rules = limits.REDIRECT_ADDRESSES

    def __init__(self, section: PinterestSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:  # noqa: ARG002
        """The consent page for one connection. `redirect_uri` must be registered with the app letter by letter.

        Pinterest describes no PKCE, so nothing is made of `verifier`.
        """
        query = {
            "client_id": self._section.client_id,
            "redirect_uri": redirect_uri,
            "response_type": "code",
            "scope": ",".join(self._section.scopes),
            "state": state,
        }
        return f"{self._section.authorize_url}?{urlencode(query, quote_via=quote, safe=':,')}"

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:  # noqa: ARG002
        """Trade the code of a consent for tokens, once and at once. `redirect_uri` is the very one of the consent.

        Raises `Rejected` with `reauth` when the owner must begin again (or the app's secret is wrong: Pinterest does
        not tell the two apart), without it when the request itself is refused.
        """
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            # Apps from before 25 September 2025 get a refresh token that can be renewed only when they ask for it.
            "continuous_refresh": "true",
        }
        message = (
            "Pinterest does not accept the consent: begin again. When that happens every time, check client_id and "
            "client_secret in [providers.pinterest]."
        )
        return _ask_for_tokens(http, self._section, fields, message)

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:  # noqa: ARG002
        """Who this token belongs to."""
        response = http.call("GET", f"{self._section.api_url}/user_account", token=access_token)
        found = json_object(response)
        if not response.ok:
            raise TABLE.error(response)
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

    def refresh(self, http: Http, refresh_token: str) -> Tokens:
        """A new pair; both are stored before either is used."""
        fields = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        message = (
            "Pinterest does not accept the refresh token: connect the account again. When this happens to every "
            "account at once, check client_id and client_secret in [providers.pinterest]."
        )
        return _ask_for_tokens(http, self._section, fields, message)

    def revoke(self, http: Http, access_token: str, refresh_token: str | None) -> None:
        """Ask for it to be taken back. Pinterest does so for system users only and refuses all others, which is no
        failure: their tokens end by being erased here, and in Pinterest's own settings."""
        response = _post(http, self._section, "/oauth/token/revoke", {"token": refresh_token or access_token})
        found = json_object(response)
        refused = response.status == 403 and found.get("code") == NOT_PERMITTED_CODE
        taken = response.ok and (not response.body.strip() or found)
        if not (taken or refused):
            raise TABLE.error(response)

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        secret = [scope for scope in limits.SCOPES_FOR_SECRET if scope in self._section.scopes]
        lacking = [scope for scope in secret if scopes and scope not in scopes]
        return [
            *missing_scopes(scopes),
            *(f"{scope} was not granted: secret boards cannot be used without it." for scope in lacking),
        ]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or scopes.issuperset(limits.SCOPES_TO_PUBLISH)


def missing_scopes(scopes: frozenset[str]) -> list[str]:
    if not scopes:
        return []
    lacking = [scope for scope in limits.SCOPES_TO_PUBLISH if scope not in scopes]
    return [f"{scope} was not granted: pins cannot be created without it." for scope in lacking]


def how_to_use_secret_boards(granted: frozenset[str], section: PinterestSection) -> str | None:
    """Return what the owner does so that a connection with these scopes can use secret boards; None when it has all
    that they need. Without scopes nothing is known of them."""
    lacking = [scope for scope in limits.SCOPES_FOR_SECRET if scope not in granted]
    if not lacking:
        return None
    lacks = "This connection lacks" if granted else "Its connection needs"
    add = "" if set(lacking) <= set(section.scopes) else "Add them to scopes of [providers.pinterest], then connect"
    return f"{lacks} {', '.join(lacking)} for secret boards. {add or 'Connect'} the account again."


def _ask_for_tokens(http: Http, section: PinterestSection, fields: dict[str, str], otherwise: str) -> Tokens:
    """At the token endpoint a 401 with code 2 speaks of what was given (or of the app's secret): `otherwise`."""
    response = _post(http, section, "/oauth/token", fields)
    if not response.ok:
        error = TABLE.error(response)
        if isinstance(error, AuthExpired):
            raise Rejected(
                otherwise, status=response.status, reauth=True, code=error.code, request_id=error.request_id
            ) from None
        raise error
    found = json_object(response)
    access_token = text_at(found, "access_token")
    if access_token is None:
        raise NoAnswer(f"Pinterest's token answer could not be read (HTTP {response.status}).")
    scope = text_at(found, "scope")
    return Tokens(
        access_token=access_token,
        refresh_token=text_at(found, "refresh_token"),
        expires_in_seconds=positive_int_at(found, "expires_in"),
        refresh_expires_in_seconds=positive_int_at(found, "refresh_token_expires_in"),
        # Spaces in answers, commas in samples.
        scopes=frozenset(scope.replace(",", " ").split()) if scope else None,
    )


def _post(http: Http, section: PinterestSection, path: str, form: dict[str, str]) -> HttpResponse:
    """The parameters go into the body: in the query they are ignored."""
    credentials = (section.client_id, section.client_secret.get_secret_value())
    return http.call("POST", f"{section.api_url}{path}", auth=credentials, form=form)
