"""Connecting an account: what every way shares, the sign-in with a network's fields, and tokens from elsewhere.

Nothing is saved before the network has identified the account of the tokens. A secret value is used for one call. It is
neither stored nor logged. Most networks have a consent page instead of fields (`consents.py`).
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo
from pydantic.alias_generators import to_camel

from socialpub.accounts import profiles, redirects, remedies, tokens
from socialpub.accounts.remedies import Surface
from socialpub.accounts.tokens import Credentials
from socialpub.core import logging, validation
from socialpub.core.clock import new_id
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import redaction
from socialpub.core.validation import format_mistakes, must_be
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import audit_log, delivery_rows, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.auth import MAX_TOKEN_LENGTH, TOKEN, Account, Identity, OtherServer, SignIn, SignInRefused
from socialpub.providers.base import Provider
from socialpub.providers.responses import AuthExpired, ProviderError
from socialpub.runtime import CausedTask, Runtime

log = logging.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """The result of connecting an account."""

    profile_id: str
    missing: tuple[str, ...]
    """The limits of this grant, as sentences."""
    revived: bool
    """Whether an existing profile has new tokens."""

    def sentence(self, profile: ProfileRow, label: str) -> str:
        """Return the message after the account is connected. `label` is the network's."""
        done = "has new tokens, and its waiting posts continue" if self.revived else "is connected"
        return " ".join([f"{profiles.handle(profile)} on {label} {done}.", *self.missing])


def load_to_reconnect(db: Database, provider: Provider, profile_id: str, surface: Surface) -> ProfileRow:
    """Return the profile to connect again. Raises NotFound and OperatorError."""
    profile = profiles.get(db, profile_id)
    if profile.provider != provider.name:
        raise OperatorError(
            f"The profile “{profile.name}” is not an account of {provider.label}.",
            remedies.sentence(remedies.connect(profile.provider, Surface.SHELL, "--profile", profile_id)),
        )
    if profile.status == ProfileStatus.DISCONNECTED:
        raise OperatorError(
            f"The profile “{profile.name}” was disconnected. Its connection cannot be restored.",
            f"To connect the account as a new profile, {remedies.connect(provider.name, surface)}.",
        )
    return profile


# --- whose tokens these are, and what they allow ----------------------------------------------------------------------


def check_grant(provider: Provider, credentials: Credentials, surface: Surface = Surface.SHELL) -> None:
    """Raise OperatorError if these scopes do not allow publishing."""
    scopes = credentials.scopes or frozenset()
    if not provider.auth.can_publish(scopes):
        raise OperatorError(
            f"These tokens do not allow publishing to {provider.label}: "
            + " ".join(provider.auth.missing_scopes(scopes)),
            f"Give consent to every permission that the app requests: {remedies.connect(provider.name, surface)}.",
        )


def identify(
    rt: Runtime, provider: Provider, credentials: Credentials, surface: Surface = Surface.SHELL
) -> tuple[Identity, Credentials]:
    """Return the account of these tokens. Renew an expired access token.

    Asks the network, so do not call on the event loop. Raises OperatorError, and Unavailable if the disk is full.
    """
    redaction.add_secrets(credentials.access_token, credentials.refresh_token)
    http, renewed = rt.http_for(provider.name), False
    account = Account("", scopes=credentials.scopes or frozenset())
    try:
        try:
            identity = provider.auth.identify(http, account, credentials.access_token)
        except AuthExpired:
            if credentials.refresh_token is None:
                raise
            if appliance_state.paused_at(rt.db):
                raise OperatorError(
                    "The access token has expired, and no token is refreshed while publishing is paused.",
                    f"Import a new access token, or end the pause first: {remedies.resume()}.",
                ) from None
            tokens.require_disk_space(rt)
            asked_at = rt.now()
            response = provider.auth.refresh(http, account, credentials.refresh_token)
            credentials, renewed = tokens.from_response(response, asked_at, previous=credentials), True
            identity = provider.auth.identify(http, account, credentials.access_token)
    except ProviderError as error:
        hint = remedies.after_failure(provider, error, surface)
        if renewed:
            hint += " This attempt used up the refresh token. Import a newer refresh token."
        raise OperatorError(f"The account of these tokens could not be determined: {error.message}", hint) from error
    return redaction.mask_value(identity), credentials


def save(
    rt: Runtime,
    tx: Database,
    provider: Provider,
    identity: Identity,
    credentials: Credentials,
    name: str | None,
    *,
    expected_id: str | None = None,
    surface: Surface = Surface.SHELL,
    by: str | None = None,
) -> Connected:
    """Store the tokens, and record that in the audit log.

    With `expected_id`, raises OperatorError if that profile has another account.
    """
    if expected_id is not None:
        _require_account(tx, provider, expected_id, identity, surface)
    connected = store(rt, tx, provider, identity, credentials, name)
    action = AuditAction.PROFILE_RECONNECTED if connected.revived else AuditAction.PROFILE_CONNECTED
    _record(tx, action, provider, connected, by)
    return connected


def store(
    rt: Runtime, tx: Database, provider: Provider, identity: Identity, credentials: Credentials, name: str | None
) -> Connected:
    """Store the tokens in the account's profile, or in a new profile."""
    for task in (CausedTask.ACCOUNT_DATA, CausedTask.AVATARS):
        tx.call_after_commit(rt.wakeup.run_soon, task)
    missing = tuple(provider.auth.missing_scopes(credentials.scopes or frozenset()))
    connected_id = profile_rows.connected(tx, provider.name, identity.account_id)
    profile_id = connected_id or new_id(tx.now)
    columns = {
        **tokens.token_columns(rt.secrets, profile_id, credentials, tx.stamp),
        **profiles.account_columns(identity, profile_rows.find(tx, profile_id), tx.stamp),
        "status": ProfileStatus.ACTIVE,
        "reason": None,
    }
    if name is not None:
        columns["name"] = name
    if connected_id is not None:
        profile_rows.update(tx, connected_id, **columns)
        delivery_rows.wake_reconnected(tx, connected_id)
        return Connected(connected_id, missing, revived=True)
    columns = {"name": columns["account_name"], **columns}
    of_account = {"id": profile_id, "provider": provider.name, "account_id": identity.account_id}
    tx.insert(ProfileRow, {**of_account, "created_at": tx.stamp, **columns})
    return Connected(profile_id, missing, revived=False)


def _record(tx: Database, action: AuditAction, provider: Provider, connected: Connected, by: str | None = None) -> None:
    name = profiles.get(tx, connected.profile_id).name
    audit_log.record(tx, action, connected.profile_id, name, by=by, provider=provider.name)


def _require_account(tx: Database, provider: Provider, profile_id: str, identity: Identity, surface: Surface) -> None:
    """Raise OperatorError if the profile to connect again has another account."""
    expected = load_to_reconnect(tx, provider, profile_id, surface)
    if expected.account_id == identity.account_id:
        return
    came = f"@{identity.username}" if identity.username else f"“{identity.name or identity.account_id}”"
    wanted = profiles.handle(expected)
    if isinstance(provider.auth, SignIn):
        how = f"Sign in as {wanted}."
    else:
        how = f"Log in to {provider.label} as {wanted} (use a private window), then start again."
    raise OperatorError(
        f"{wanted} was to be connected again, but {provider.label} returned {came}.",
        f"{how} To connect {came} as well, {remedies.connect(provider.name, surface)}.",
    )


def revoke_unused(rt: Runtime, provider: Provider, identity: Identity, credentials: Credentials) -> None:
    """Revoke tokens that are not stored.

    A connected account keeps its tokens: some networks revoke the whole grant with one token. A paused installation
    does not revoke tokens, because the original installation may use the grant.
    """
    if profile_rows.connected(rt.db, provider.name, identity.account_id) or appliance_state.paused_at(rt.db):
        return
    scopes = credentials.scopes or frozenset()
    account = Account(identity.account_id, identity.username, scopes, identity.facts)
    try:
        http = rt.http_for(provider.name)
        provider.auth.revoke(http, account, credentials.access_token, credentials.refresh_token)
    except ProviderError as error:
        log.info("unused tokens could not be revoked and stay valid", provider=provider.name, why=error.message)


# --- signing in with the values of the network's fields ---------------------------------------------------------------

MAX_VALUE_LENGTH = 500
"""The maximum length of a value. A longer text is a pasted file."""


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


def check_sign_in(rt: Runtime, provider: Provider, profile_id: str | None, surface: Surface) -> ProfileRow | None:
    """Return the profile to connect again. Raises NotFound, and OperatorError if no value can connect the account."""
    if (missing := redirects.find_missing_app(rt, provider.name)) is not None:
        raise missing
    return None if profile_id is None else load_to_reconnect(rt.db, provider, profile_id, surface)


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
    so do not call on the event loop. Raises NotFound, InvalidRequest at `name`, and OperatorError (`WrongValue` for a
    field, `UnconfirmedServer`), and Unavailable if the disk is full. Then nothing is saved.
    """
    provider = rt.providers[provider_name]
    check_sign_in(rt, provider, profile_id, surface)
    if name is not None:
        name = profiles.check_name(name)
    tokens.require_disk_space(rt)
    try:
        identity, credentials = _ask_sign_in(rt, provider, values, surface, server)
        try:
            connected = rt.write(save, provider, identity, credentials, name, expected_id=profile_id, surface=surface)
        except OperatorError:
            revoke_unused(rt, provider, identity, credentials)
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
        length = len(values[field.name])
        if length == 0:
            raise WrongValue(field.name, f"{field.label} is empty.", field.hint or None)
        if length > MAX_VALUE_LENGTH:
            message = f"{field.label} has more than {MAX_VALUE_LENGTH} characters."
            raise WrongValue(field.name, message, field.hint or None)
    asked_at = rt.now()
    try:
        identity, response = auth.sign_in(rt.http_for(provider.name), values, server)
    except SignInRefused as refused:
        raise WrongValue(refused.field, refused.message, refused.remedy or None) from refused
    except OtherServer as other:
        raise UnconfirmedServer(other.server, other.message) from other
    except ProviderError as error:
        message = f"{provider.label} did not sign in the account: {error.message}"
        raise OperatorError(message, remedies.after_failure(provider, error, surface)) from error
    credentials = tokens.from_response(response, asked_at)
    check_grant(provider, credentials, surface)
    return redaction.mask_value(identity), credentials


# --- tokens from elsewhere, as one JSON object (contract section 7) ---------------------------------------------------
#
# Every mistake is reported at once, a misspelled key with the nearest known name. Messages never contain a token.


def import_account(rt: Runtime, provider_name: str, credentials: Credentials, name: str | None = None) -> Connected:
    """Connect the account of these tokens, or store them in its existing profile.

    Asks the network, so do not call on the event loop. Raises OperatorError when the tokens are refused or do not allow
    publishing, or when the network does not answer. Then nothing is saved.
    """
    provider = rt.providers[provider_name]
    if isinstance(provider.auth, SignIn):
        labels = " and ".join(f"“{field.label}”" for field in provider.auth.fields)
        raise OperatorError(
            f"{provider.label} accounts cannot be imported with existing tokens. They sign in with {labels}.",
            remedies.sentence(remedies.connect(provider_name)),
        )
    if name is not None:
        name = profiles.check_name(name)
    check_grant(provider, credentials)
    identity, credentials = identify(rt, provider, credentials)
    return rt.write(_save_import, provider, identity, credentials, name)


def _save_import(
    rt: Runtime, tx: Database, provider: Provider, identity: Identity, credentials: Credentials, name: str | None
) -> Connected:
    connected = store(rt, tx, provider, identity, credentials, name)
    _record(tx, AuditAction.PROFILE_IMPORTED, provider, connected)
    return connected


FORM = (
    '{"accessToken": "…", "refreshToken": "…", "expiresAt": "2026-11-21T12:00:00Z", "refreshExpiresAt": "…", '
    '"scope": "…"}; all but accessToken may be left out.'
)

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LEFT_OUT: Any = None


def read_credentials(text: str) -> Credentials:
    """Read the credentials in `text`. Raises OperatorError, which lists every mistake and the expected form."""
    try:
        document = json.loads(text)
    except ValueError as error:
        # The message of `json` contains the line and the column, and does not quote the text.
        raise OperatorError(f"The credentials are not JSON: {error}.", f"Use this form: {FORM}") from None
    if not isinstance(document, dict):
        raise OperatorError("The credentials are not a JSON object.", f"Use this form: {FORM}")
    credentials, mistakes = validation.parse(_CredentialsFile, document)
    if mistakes or credentials is None:
        sentences = [error_of_field.sentence for error_of_field in mistakes.errors]
        raise OperatorError(format_mistakes("The credentials have", sentences), f"Use this form: {FORM}")
    scopes = frozenset((credentials.scope or "").replace(",", " ").split())
    return Credentials(
        credentials.access_token,
        credentials.refresh_token,
        credentials.expires_at,
        credentials.refresh_expires_at,
        scopes or None,
    )


def _check_token(value: str, info: ValidationInfo) -> str:
    value = value.strip()
    if not value:
        may_be_left_out = info.field_name != "access_token"
        raise ValueError("must not be empty" + ("; leave it out when there is none" if may_be_left_out else ""))
    if len(value) > MAX_TOKEN_LENGTH:
        raise ValueError(f"has {len(value)} characters, which is too long for a token (at most {MAX_TOKEN_LENGTH})")
    if not TOKEN.fullmatch(value):
        raise ValueError(
            "contains spaces, line breaks or characters that a token cannot contain; paste the token again"
        )
    return value


def _read_date_time(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError(must_be("a string such as 2026-11-21T12:00:00Z", value))
    try:
        if not _DATE_TIME.fullmatch(value):
            raise ValueError
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date-time with an offset, such as 2026-11-21T12:00:00Z") from None


def _check_refresh_token_is_given(value: datetime, info: ValidationInfo) -> datetime:
    # A wrong refresh token is not among the data and has its own message.
    if info.data.get("refresh_token", "") is None:
        raise ValueError("is given without a refreshToken")
    return value


_Token = Annotated[str, AfterValidator(_check_token)]
_DateTime = Annotated[datetime, BeforeValidator(_read_date_time)]


class _CredentialsFile(BaseModel):
    """The JSON object. Keys may be left out, but none may be null."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    access_token: _Token
    refresh_token: _Token = _LEFT_OUT
    expires_at: _DateTime = _LEFT_OUT
    refresh_expires_at: Annotated[_DateTime, AfterValidator(_check_refresh_token_is_given)] = _LEFT_OUT
    scope: str = _LEFT_OUT
