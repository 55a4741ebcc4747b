"""Pinterest's side of tokens: who an account is, fresh tokens, giving them back.

Errors are told apart by status and code together. A 401 has two meanings that must not be mixed: code 3 is about the
app, which no new consent can help, and every other is about the token.
"""

from typing import TYPE_CHECKING, Any

from socialpub.providers import answers
from socialpub.providers.base import Identity, Tokens
from socialpub.providers.errors import AppRefused, AuthExpired, ProviderError, RateLimited, Rejected, Unavailable
from socialpub.providers.pinterest import limits

if TYPE_CHECKING:
    from socialpub.providers.http import Answer, Http
    from socialpub.sections import Pinterest as Section

TOKEN_CODE = 2
SCOPE_OR_APP_CODE = 3
NOT_PERMITTED_CODE = 29


class PinterestOAuth:
    refresh_early_seconds = 3 * 86400
    """Of 30 days: the refresh token lives 60, so that even a quiet account is renewed in time."""

    def __init__(self, section: "Section") -> None:
        self._section = section

    def identify(self, http: "Http", access_token: str, scopes: frozenset[str]) -> Identity:  # noqa: ARG002
        """Who this token belongs to."""
        answer = http.call("GET", f"{self._section.api_url}/user_account", token=access_token)
        found = answers.members(answer)
        if not 200 <= answer.status < 300:
            raise _error(answer, "user_account")
        username = answers.text(found, "username")
        account_id = answers.text(found, "id") or username
        if account_id is None:
            raise Unavailable("Pinterest's answer does not say whose account this is.")
        account_type = answers.text(found, "account_type")
        return Identity(
            account_id=account_id,
            username=username,
            name=answers.text(found, "business_name") or username,
            picture_url=answers.text(found, "profile_image"),
            facts={"account_type": account_type} if account_type else {},
        )

    def refresh(self, http: "Http", refresh_token: str) -> Tokens:
        """A new pair; both are stored before either is used."""
        answer = self._post(http, "/oauth/token", {"grant_type": "refresh_token", "refresh_token": refresh_token})
        if not 200 <= answer.status < 300:
            raise _refresh_error(answer)
        found = answers.members(answer)
        access_token = answers.text(found, "access_token")
        if access_token is None:
            raise Unavailable(f"Pinterest's token answer could not be read (HTTP {answer.status}).")
        scope = answers.text(found, "scope")
        return Tokens(
            access_token=access_token,
            refresh_token=answers.text(found, "refresh_token"),
            expires_in_seconds=answers.whole(found, "expires_in"),
            refresh_expires_in_seconds=answers.whole(found, "refresh_token_expires_in"),
            scopes=frozenset(scope.replace(",", " ").split()) if scope else None,
        )

    def revoke(self, http: "Http", access_token: str, refresh_token: str | None) -> None:
        """Ask for it to be taken back. Pinterest does so for system users only and refuses all others, which is no
        failure: their tokens end by being erased here, and in Pinterest's own settings."""
        answer = self._post(http, "/oauth/token/revoke", {"token": refresh_token or access_token})
        refused = answer.status == 403 and answers.members(answer).get("code") == NOT_PERMITTED_CODE
        if not (200 <= answer.status < 300 or refused):
            raise _error(answer, "oauth/token/revoke")

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        if not scopes:
            return []
        lacking = [scope for scope in limits.SCOPES_TO_PUBLISH if scope not in scopes]
        return [f"{scope} was not granted: pins cannot be created without it." for scope in lacking]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or scopes.issuperset(limits.SCOPES_TO_PUBLISH)

    def _post(self, http: "Http", path: str, form: dict[str, str]) -> "Answer":
        credentials = (self._section.client_id, self._section.client_secret.get_secret_value())
        return http.call("POST", f"{self._section.api_url}{path}", auth=credentials, form=form)


def _refresh_error(answer: "Answer") -> ProviderError:
    """At the token endpoint a 401 with code 2 is the refresh token's end (or a wrong app secret, which Pinterest does
    not tell apart)."""
    error = _error(answer, "oauth/token")
    if not isinstance(error, AuthExpired):
        return error
    message = (
        "Pinterest does not accept the refresh token: connect the account again. When this happens to every account "
        "at once, check client_id and client_secret in [providers.pinterest]."
    )
    return Rejected(message, status=answer.status, reauth=True, code=error.code, request_id=error.request_id)


def _error(answer: "Answer", endpoint: str) -> ProviderError:
    """What an answer that is no success means."""
    found = answers.members(answer)
    number = found.get("code")
    message = answers.text(found, "message") or ""
    said = answers.shown(message) or f"HTTP {answer.status}"
    about: dict[str, Any] = {
        "code": str(number) if isinstance(number, int | str) else None,
        "request_id": answer.headers.get("x-pinterest-rid"),
    }
    if answer.status == 429:
        wait = answers.seconds(answer, "retry-after", "x-ratelimit-reset")
        return RateLimited("Pinterest's rate limit is reached.", retry_after_seconds=wait, endpoint=endpoint, **about)
    if number == SCOPE_OR_APP_CODE and answer.status in (401, 403):
        if answer.status == 401 and "scope" not in message.lower():
            return AppRefused(
                f"Pinterest has not approved the app for this yet: {said}. Look at it on developers.pinterest.com; "
                "connecting the account again does not help.",
                **about,
            )
        refusal = f"Pinterest wants a permission that was not granted: {said}. Connect the account again."
        return Rejected(refusal, status=answer.status, reauth=True, **about)
    if answer.status == 401:
        return AuthExpired("Pinterest does not accept the access token.", **about)
    if answer.status >= 500 or answer.status < 400:
        return Unavailable(f"Pinterest gave no usable answer (HTTP {answer.status}).", **about)
    return Rejected(f"Pinterest refused: {said}.", status=answer.status, **about)
