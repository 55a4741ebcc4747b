"""Tokens that are new here, tried at the network before anything is saved: whose they are, and what they allow."""

from socialpub.accounts import remedies, token_answer
from socialpub.accounts.credentials import Credentials
from socialpub.accounts.remedies import Door
from socialpub.core import held_secrets
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.oauth import Identity
from socialpub.providers.protocol import Provider
from socialpub.runtime import Runtime


def check_grant(provider: Provider, credentials: Credentials, door: Door = Door.SHELL) -> None:
    """Raises OperatorError when no way of publishing is left in these scopes."""
    scopes = credentials.scopes or frozenset()
    if not provider.oauth.can_publish(scopes):
        raise OperatorError(
            f"With this grant nothing could be published to {provider.label}: "
            + " ".join(provider.oauth.missing_scopes(scopes)),
            f"Consent again to everything that the app asks for. To begin, {remedies.connect(provider.name, door)}.",
        )


def identify(
    rt: Runtime, provider: Provider, credentials: Credentials, door: Door = Door.SHELL
) -> tuple[Identity, Credentials]:
    """Whose tokens these are. An access token that has run out is renewed first, when there is a refresh token.

    Asks the network, so not from the event loop. Raises OperatorError.
    """
    renewed = False
    held_secrets.hold(credentials.access_token, credentials.refresh_token)
    try:
        ended = credentials.expires_at is not None and credentials.expires_at <= rt.now()
        if ended and credentials.refresh_token:
            credentials, renewed = _renew(rt, provider, credentials), True
        try:
            return _whose(rt, provider, credentials), credentials
        except AuthExpired:
            if renewed or not credentials.refresh_token:
                raise
            credentials, renewed = _renew(rt, provider, credentials), True
            return _whose(rt, provider, credentials), credentials
    except ProviderError as error:
        hint = remedies.after_failure(provider, error, door)
        if renewed:
            hint += " The refresh token has been used in this attempt: import a newer one."
        raise OperatorError(f"It is not known whose tokens these are: {error.message}", hint) from error


def _whose(rt: Runtime, provider: Provider, credentials: Credentials) -> Identity:
    scopes = credentials.scopes or frozenset()
    http = rt.http_of(provider.name)
    return held_secrets.masked(provider.oauth.identify(http, credentials.access_token, scopes))


def _renew(rt: Runtime, provider: Provider, credentials: Credentials) -> Credentials:
    if appliance_state.paused_at(rt.reader):
        raise OperatorError(
            "The access token has run out, and while publishing is paused no token is refreshed.",
            f"Import a fresh access token. Or end the pause first: {remedies.resume()}.",
        )
    assert credentials.refresh_token is not None
    asked_at = rt.now()
    answer = provider.oauth.refresh(rt.http_of(provider.name), credentials.refresh_token)
    return token_answer.credentials(answer, asked_at, previous=credentials)
