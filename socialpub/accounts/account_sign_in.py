"""Connecting an account of a network without a consent page: signing in with the values of the network's fields.

A secret value is used for one call. It is neither stored nor logged. Nothing is saved before the network has identified
the account.
"""

import shlex
from collections.abc import Mapping

from socialpub.accounts import connect, grants, profiles, remedies, tokens
from socialpub.accounts.grants import Credentials
from socialpub.accounts.profiles import Connected
from socialpub.accounts.remedies import Surface
from socialpub.core import logging
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.auth import Identity, OtherServer, SignIn, SignInRefused
from socialpub.providers.base import Provider
from socialpub.providers.responses import ProviderError
from socialpub.runtime import Runtime

MAX_VALUE_LENGTH = 500
"""The maximum length of a value. A longer text is a pasted file."""

log = logging.get_logger(__name__)


class WrongValue(OperatorError):
    """The value of one field must be corrected. `field` is the name of the field."""

    def __init__(self, field: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.field = field


class UnconfirmedServer(OperatorError):
    """The owner must confirm the server of the account first. `server` is its name."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message, f"If this is the right server, add --server {shlex.quote(server)}.")
        self.server = server


def check(rt: Runtime, provider: Provider, profile_id: str | None, surface: Surface) -> ProfileRow | None:
    """Return the profile to connect again. Raises NotFound, and OperatorError if no value can connect the account."""
    if (obstacle := connect.find_missing_app(rt, provider.name)) is not None:
        raise obstacle
    return None if profile_id is None else connect.load_to_reconnect(rt.db, provider, profile_id, surface)


def sign_in(
    rt: Runtime,
    provider_name: str,
    values: Mapping[str, str],
    name: str | None = None,
    profile_id: str | None = None,
    surface: Surface = Surface.SHELL,
    server: str | None = None,
) -> Connected:
    """Connect the account to which these values of the network's fields sign in. No secret value is stored.

    With `profile_id`, only the account of that profile is accepted. `server`: as in `SignIn.sign_in`. Asks the network,
    so do not call on the event loop. Raises as `begin` does, OperatorError (`WrongValue` for a field,
    `UnconfirmedServer`), and Unavailable when the disk could not store the tokens. Then nothing is saved.
    """
    provider = rt.providers[provider_name]
    check(rt, provider, profile_id, surface)
    if name is not None:
        name = profiles.check_name(name)
    try:
        with tokens.reserve_disk(rt):
            identity, credentials = _ask_sign_in(rt, provider, values, surface, server)
        try:
            connected = rt.write(_save_sign_in, provider, identity, credentials, name, profile_id, surface)
        except OperatorError:
            connect.take_back(rt, provider, identity, credentials)
            raise
    except OperatorError as error:
        log.info("an account could not be connected", provider=provider_name, why=error.message)
        raise
    log.info("an account was connected", provider=provider_name, profile=connected.profile_id)
    return connected


def _ask_sign_in(
    rt: Runtime, provider: Provider, entered: Mapping[str, str], surface: Surface, server: str | None
) -> tuple[Identity, Credentials]:
    """Sign in, and return the account and its tokens. Raises OperatorError."""
    auth = provider.auth
    assert isinstance(auth, SignIn), f"{provider.label} has no fields"
    values = {field.name: entered.get(field.name, "").strip() for field in auth.fields}
    redaction.add_secrets(*(values[field.name] for field in auth.fields if field.secret))
    for field in auth.fields:
        if not values[field.name]:
            raise WrongValue(field.name, f"{field.label} is empty.", field.hint or None)
        if len(values[field.name]) > MAX_VALUE_LENGTH:
            raise WrongValue(
                field.name, f"{field.label} has more than {MAX_VALUE_LENGTH} characters.", field.hint or None
            )
    asked_at = rt.now()
    try:
        identity, answer = auth.sign_in(rt.http_for(provider.name), values, server)
    except SignInRefused as refused:
        raise WrongValue(refused.field, refused.message, refused.remedy or None) from refused
    except OtherServer as other:
        raise UnconfirmedServer(other.server, other.message) from other
    except ProviderError as error:
        message = f"{provider.label} did not sign in the account: {error.message}"
        raise OperatorError(message, remedies.after_failure(provider, error, surface)) from error
    credentials = grants.from_answer(answer, asked_at)
    connect.check_grant(provider, credentials, surface)
    return redaction.mask_value(identity), credentials


def _save_sign_in(
    rt: Runtime,
    tx: Database,
    provider: Provider,
    identity: Identity,
    credentials: Credentials,
    name: str | None,
    profile_id: str | None,
    surface: Surface,
) -> Connected:
    if profile_id is not None:
        connect.must_be_account(tx, provider, profile_id, identity, surface)
    connected = profiles.save(rt, tx, provider, identity, credentials, name)
    action = AuditAction.PROFILE_RECONNECTED if connected.revived else AuditAction.PROFILE_CONNECTED
    connect.record(tx, action, provider, connected)
    return connected
