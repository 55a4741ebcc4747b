"""Sessions at Bluesky: sign-in with an app password, refresh, sign-out and the account's identity."""

from collections.abc import Mapping

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.auth import Account, Identity, SignIn, SignInField, Tokens
from socialpub.providers.http import Http

APP_PASSWORDS = "In the Bluesky app, open Settings, Privacy and security, App passwords."

HANDLE, PASSWORD = "handle", "password"


class BlueskySignIn(SignIn):
    refresh_early_seconds = 600
    """An access token lives for two hours."""

    idle_refresh_seconds = 30 * 86400
    """A refresh token lives for 90 days."""

    fields = (
        SignInField(HANDLE, "Handle", hint="The handle of the account, such as studio.bsky.social."),
        SignInField(PASSWORD, "App password", secret=True, hint=f"Not the account's main password. {APP_PASSWORDS}"),
    )

    def __init__(self, section: BlueskySection) -> None:
        self._section = section

    def sign_in(self, http: Http, values: Mapping[str, str]) -> tuple[Identity, Tokens]:
        raise NotImplementedError

    def refresh(self, http: Http, account: Account, refresh_token: str) -> Tokens:
        raise NotImplementedError

    def identify(self, http: Http, account: Account, access_token: str) -> Identity:
        raise NotImplementedError

    def revoke(self, http: Http, account: Account, access_token: str, refresh_token: str | None) -> None:
        raise NotImplementedError

    def can_publish(self, scopes: frozenset[str]) -> bool:  # noqa: ARG002
        return True  # an app password has no narrower permissions

    def _wanted_scopes(self) -> Mapping[str, str]:
        return {}
