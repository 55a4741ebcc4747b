"""Pinterest's side of tokens: who an account is, fresh tokens, giving them back.

Errors are told apart by status and code together. A 401 has two meanings that must not be mixed: code 3 is about the
app, which no new consent can help, and every other is about the token.
"""

from urllib.parse import quote, urlencode

from socialpub.core.settings.sections import PinterestSection
from socialpub.providers import responses
from socialpub.providers.errors import AuthExpired, NoAnswer, Rejected
from socialpub.providers.http import Http
from socialpub.providers.oauth import Identity, Tokens
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.errors import failure
from socialpub.providers.responses import HttpResponse

NOT_PERMITTED_CODE = 29


class PinterestOAuth:
    refresh_early_seconds = 3 * 86400
    """Of 30 days: the refresh token lives 60, so that even a quiet account is renewed in time."""

    idle_refresh_seconds = 27 * 86400
    """Of the refresh token's 60 days, and before the access token's 30 are over."""

    revokes_every_grant = False

    def __init__(self, section: PinterestSection) -> None:
        self._section = section

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        return authorize_url(self._section, redirect_uri=redirect_uri, state=state, verifier=verifier)

    def exchange(self, http: Http, code: str, redirect_uri: str, verifier: str) -> Tokens:
        return exchange(http, self._section, code=code, redirect_uri=redirect_uri, verifier=verifier)

    def identify(self, http: Http, access_token: str, scopes: frozenset[str]) -> Identity:  # noqa: ARG002
        """Who this token belongs to."""
        answer = http.call("GET", f"{self._section.api_url}/user_account", token=access_token)
        found = responses.json_object(answer)
        if not 200 <= answer.status < 300:
            raise failure(answer, endpoint="user_account")
        username = responses.text_at(found, "username")
        account_id = responses.text_at(found, "id") or username
        if account_id is None:
            raise NoAnswer("Pinterest's answer does not say whose account this is.")
        account_type = responses.text_at(found, "account_type")
        return Identity(
            account_id=account_id,
            username=username,
            name=responses.text_at(found, "business_name") or username,
            picture_url=responses.text_at(found, "profile_image"),
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
        answer = _post(http, self._section, "/oauth/token/revoke", {"token": refresh_token or access_token})
        refused = answer.status == 403 and responses.json_object(answer).get("code") == NOT_PERMITTED_CODE
        if not (200 <= answer.status < 300 or refused):
            raise failure(answer, endpoint="oauth/token/revoke")

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        if not scopes:
            return []
        lacking = [scope for scope in limits.SCOPES_TO_PUBLISH if scope not in scopes]
        return [f"{scope} was not granted: pins cannot be created without it." for scope in lacking]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or scopes.issuperset(limits.SCOPES_TO_PUBLISH)


def authorize_url(section: PinterestSection, *, redirect_uri: str, state: str, verifier: str | None = None) -> str:  # noqa: ARG001
    """The consent page for one connection. `redirect_uri` must be registered with the app letter by letter.

    Pinterest describes no PKCE, so nothing is made of `verifier`.
    """
    query = {
        "client_id": section.client_id,
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": ",".join(limits.SCOPES),
        "state": state,
    }
    return f"{section.authorize_url}?{urlencode(query, quote_via=quote, safe=':,')}"


def exchange(
    http: Http,
    section: PinterestSection,
    *,
    code: str,
    redirect_uri: str,
    verifier: str | None = None,  # noqa: ARG001
) -> Tokens:
    """Trade the code of a consent for tokens, once and at once. `redirect_uri` is the very one of the consent.

    Raises `Rejected` with `reauth` when the owner must begin again (or the app's secret is wrong: Pinterest does not
    tell the two apart), without it when the request itself is refused.
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
    return _ask_for_tokens(http, section, fields, message)


def _ask_for_tokens(http: Http, section: PinterestSection, fields: dict[str, str], otherwise: str) -> Tokens:
    """At the token endpoint a 401 with code 2 speaks of what was given (or of the app's secret): `otherwise`."""
    answer = _post(http, section, "/oauth/token", fields)
    if not 200 <= answer.status < 300:
        error = failure(answer, endpoint="oauth/token")
        if isinstance(error, AuthExpired):
            raise Rejected(
                otherwise, status=answer.status, reauth=True, code=error.code, request_id=error.request_id
            ) from None
        raise error
    found = responses.json_object(answer)
    access_token = responses.text_at(found, "access_token")
    if access_token is None:
        raise NoAnswer(f"Pinterest's token answer could not be read (HTTP {answer.status}).")
    scope = responses.text_at(found, "scope")
    return Tokens(
        access_token=access_token,
        refresh_token=responses.text_at(found, "refresh_token"),
        expires_in_seconds=responses.positive_int_at(found, "expires_in"),
        refresh_expires_in_seconds=responses.positive_int_at(found, "refresh_token_expires_in"),
        # Spaces in answers, commas in samples.
        scopes=frozenset(scope.replace(",", " ").split()) if scope else None,
    )


def _post(http: Http, section: PinterestSection, path: str, form: dict[str, str]) -> HttpResponse:
    """The parameters go into the body: in the query they are ignored."""
    credentials = (section.client_id, section.client_secret.get_secret_value())
    return http.call("POST", f"{section.api_url}{path}", auth=credentials, form=form)
