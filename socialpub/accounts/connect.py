"""Connecting an account: through the network's own consent page, or with tokens from elsewhere.

Nothing is saved before the network has identified the account of the tokens. The end of an attempt is stored
(`consents.py`), because the owner waits for it in another process. Other networks have fields (`account_sign_in.py`).
"""

import contextlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from socialpub.accounts import consents, grants, profiles, remedies, tokens
from socialpub.accounts.grants import Credentials
from socialpub.accounts.profiles import Connected
from socialpub.accounts.remedies import Surface
from socialpub.core import actor, logging
from socialpub.core.clock import new_id, stamp
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.core.secrets import redaction
from socialpub.core.settings.networks import NetworkSection
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import ConsentRow, ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import access_rows, audit_log, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.providers.auth import Account, Identity, SignIn
from socialpub.providers.base import Provider
from socialpub.providers.oauth import OAuth
from socialpub.providers.responses import AuthExpired, ProviderError, shortened
from socialpub.runtime import Runtime

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")

log = logging.get_logger(__name__)


class UnknownState(OperatorError):
    """The response does not belong to a known attempt."""


@dataclass(frozen=True, slots=True)
class StartedConnection:
    id: str
    url: str = field(repr=False)
    """The network's consent page. The URL contains the secret state."""
    redirect_uri: str
    """The address that must be registered with the app, character by character."""
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StartedFrom:
    """The entry point at which the owner started to connect."""

    surface: Surface
    profile_id: str | None
    """The created profile, or the profile to connect again."""


# --- beginning -------------------------------------------------------------------------------------------------------


def begin(
    rt: Runtime,
    provider_name: str,
    name: str | None = None,
    profile_id: str | None = None,
    surface: Surface = Surface.SHELL,
) -> StartedConnection:
    """Start to connect an account. With `profile_id`, only the account of that profile is accepted.

    Do not call on the event loop. Raises OperatorError when the app's credentials are missing or the profile cannot be
    connected again, NotFound when there is no such profile, InvalidRequest at `name`.
    """
    provider = rt.providers[provider_name]
    if (obstacle := find_missing_app(rt, provider_name)) is not None:
        raise obstacle
    if name is not None:
        name = profiles.check_name(name)
    if profile_id is not None:
        load_to_reconnect(rt.db, provider, profile_id, surface)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    redirect_uri = rt.settings.redirect_url(provider_name)
    consent_id, expires_at = new_id(rt.now()), rt.now() + consents.LIFETIME
    rt.write(
        consents.insert,
        consent_id,
        state,
        verifier,
        door=surface,
        expires_at=stamp(expires_at),
        provider=provider_name,
        redirect_uri=redirect_uri,
        name=name,
        expected_profile_id=profile_id,
    )
    url = _consent(provider).authorize_url(redirect_uri, state, verifier)
    return StartedConnection(consent_id, url, redirect_uri, expires_at)


def _consent(provider: Provider) -> OAuth:
    assert isinstance(provider.auth, OAuth), f"{provider.label} has no consent page"
    return provider.auth


def find_missing_app(rt: Runtime, provider_name: str) -> OperatorError | None:
    """Return the error if the section of this network is not complete."""
    section: NetworkSection = getattr(rt.settings.providers, provider_name)
    provider, missing = rt.providers[provider_name], section.missing_keys()
    if section.is_set_up:
        return None
    if not missing:
        return OperatorError(f"{provider.label} is not enabled.", f"Set enabled = true in [providers.{provider_name}].")
    keys = " and ".join(missing)
    rule = consents.check_redirect_address(rt.settings, provider)
    app = f"a {rule.app_kind} app" if rule and rule.app_kind else "an app"
    address = f", set its redirect address to {rt.settings.redirect_url(provider_name)}"
    wrong = f" {rule.sentence} {rule.change}" if rule and rule.change else ""
    return OperatorError(
        f"The app credentials for {provider.label} are missing: {keys} in [providers.{provider_name}] "
        f"{'is' if len(missing) == 1 else 'are'} empty.",
        f"Register {app} with {provider.label}{'' if wrong else address} and copy its credentials into the "
        f"configuration.{wrong}",
    )


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


# --- the browser comes back ------------------------------------------------------------------------------------------


def find_origin(rt: Runtime, provider_name: str, query: Mapping[str, str]) -> StartedFrom | None:
    """Return the entry point at which the attempt of this response started. None: the attempt is unknown."""
    row = consents.find_by_state(rt.db, provider_name, query.get("state", ""))
    return None if row is None else StartedFrom(Surface(row.door), row.profile_id or row.expected_profile_id)


def finish(rt: Runtime, provider_name: str, query: Mapping[str, str], consent_id: str | None = None) -> Connected:
    """Create a profile from the decoded query of the network's answer.

    With `consent_id`, only that attempt is finished. Asks the network, so do not call on the event loop. Raises
    OperatorError (`UnknownState` for an unknown attempt), and Unavailable when the disk could not store the tokens.
    Then nothing is saved.
    """
    provider = rt.providers[provider_name]
    awaited = rt.db.get(ConsentRow, consent_id) if consent_id else None
    row = _find(rt.db, provider, query, Surface(awaited.door) if awaited else Surface.SHELL)
    if consent_id not in (None, row.id):
        raise OperatorError(
            "This address belongs to another attempt to connect.", "Paste the address at which this attempt ended."
        )
    rt.write(consents.spend, row.id)
    surface = Surface(row.door)
    try:
        code = _code(provider, query, surface)
        with tokens.reserve_disk(rt):
            identity, credentials = _trade(rt, provider, code, row)
        try:
            finished = rt.write(_connect, provider, row.id, identity, credentials)
        except OperatorError:
            take_back(rt, provider, identity, credentials)
            raise
    except OperatorError as error:
        rt.db.write(access_rows.fail_consent, row.id, error.message, error.hint)
        log.warning("an account could not be connected", provider=provider_name, why=error.message)
        raise
    except SocialpubError as error:
        with contextlib.suppress(SocialpubError):
            rt.db.write(access_rows.fail_consent, row.id, error.detail, remedies.begin_again(provider.name, surface))
        raise
    log.info("an account was connected", provider=provider_name, profile=finished.profile_id)
    return finished


def _find(db: Database, provider: Provider, query: Mapping[str, str], surface: Surface) -> ConsentRow:
    """Return the attempt of this state. `surface`: where the owner reads the error."""
    state, again = query.get("state", ""), remedies.begin_again(provider.name, surface)
    row = consents.find_by_state(db, provider.name, state)
    if row is not None:
        return row
    if not state:
        # Any site can make such a link, so our page repeats only an error code.
        error = query.get("error", "")
        said = f" It returned: {error}." if _ERROR_CODE.fullmatch(error) else ""
        raise UnknownState(f"{provider.label} did not return the state of an attempt to connect.{said}", again)
    raise UnknownState("This attempt to connect is unknown or has expired.", again)


def _code(provider: Provider, query: Mapping[str, str], surface: Surface) -> str:
    """Return the authorization code. Raises OperatorError with the network's error."""
    error = query.get("error")
    if error == "access_denied":
        raise OperatorError(
            f"You did not give consent at {provider.label}, so no account was connected.",
            remedies.begin_again(provider.name, surface),
        )
    if error:
        words = shortened(query.get("error_description"))
        said = f"{shortened(error)}: {words}" if words else shortened(error)
        raise OperatorError(
            f"{provider.label} refused to connect the account. It returned: {said}",
            f"Check [providers.{provider.name}] and the app's page at {provider.label}. "
            f"{remedies.begin_again(provider.name, surface)}",
        )
    code = query.get("code")
    if not code:
        raise OperatorError(
            f"{provider.label} returned no authorization code. The account is not connected.",
            remedies.begin_again(provider.name, surface),
        )
    return code


def _trade(rt: Runtime, provider: Provider, code: str, row: ConsentRow) -> tuple[Identity, Credentials]:
    """Exchange the code for tokens, and return their account. Raises OperatorError."""
    asked_at, surface = rt.now(), Surface(row.door)
    try:
        verifier = rt.secrets.open(row.verifier, "consent", row.id, "verifier")
        tokens = _consent(provider).exchange(rt.http_for(provider.name), code, row.redirect_uri, verifier)
    except ProviderError as error:
        raise OperatorError(
            f"{provider.label} returned no tokens after your consent: {error.message}",
            remedies.after_failure(provider, error, surface),
        ) from error
    credentials = grants.from_answer(tokens, asked_at)
    check_grant(provider, credentials, surface)
    return identify(rt, provider, credentials, surface)


def _connect(
    rt: Runtime, tx: Database, provider: Provider, consent_id: str, identity: Identity, credentials: Credentials
) -> Connected:
    """Store the profile and the end of the attempt."""
    row = tx.get(ConsentRow, consent_id)
    assert row is not None
    surface = Surface(row.door)
    if row.finished_at is not None:  # the owner no longer waits for it
        raise OperatorError("This attempt was canceled.", remedies.begin_again(row.provider, surface))
    if row.expected_profile_id is not None:
        must_be_account(tx, provider, row.expected_profile_id, identity, surface)
    connected = profiles.save(rt, tx, provider, identity, credentials, row.name)
    tx.update(
        ConsentRow,
        consent_id,
        finished_at=tx.stamp,
        profile_id=connected.profile_id,
        revived=int(connected.revived),
        missing=json.dumps(connected.missing, ensure_ascii=False),
    )
    action = AuditAction.PROFILE_RECONNECTED if connected.revived else AuditAction.PROFILE_CONNECTED
    # The browser that returns from the network does not identify the actor.
    by = actor.DASHBOARD if surface is Surface.DASHBOARD else actor.COMMAND
    record(tx, action, provider, connected, by=by)
    return connected


def must_be_account(tx: Database, provider: Provider, profile_id: str, identity: Identity, surface: Surface) -> None:
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


def record(tx: Database, action: AuditAction, provider: Provider, connected: Connected, by: str | None = None) -> None:
    name = profiles.get(tx, connected.profile_id).name
    audit_log.record(tx, action, connected.profile_id, name, by=by, provider=provider.name)


def take_back(rt: Runtime, provider: Provider, identity: Identity, credentials: Credentials) -> None:
    """Revoke tokens that are not stored.

    A connected account keeps its tokens: some networks revoke the whole grant with one token. A paused installation
    does not revoke tokens, because the original installation may use the grant.
    """
    if profile_rows.connected(rt.db, provider.name, identity.account_id) or appliance_state.paused_at(rt.db):
        return
    try:
        account = _account(credentials, identity)
        http = rt.http_for(provider.name)
        provider.auth.revoke(http, account, credentials.access_token, credentials.refresh_token)
    except ProviderError as error:
        log.info("unused tokens could not be revoked and stay valid", provider=provider.name, why=error.message)


# --- tokens from elsewhere -------------------------------------------------------------------------------------------


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
    with tokens.reserve_disk(rt):  # an access token that has ended is renewed here
        identity, credentials = identify(rt, provider, credentials)
    return rt.write(_import, provider, identity, credentials, name)


def _import(
    rt: Runtime, tx: Database, provider: Provider, identity: Identity, credentials: Credentials, name: str | None
) -> Connected:
    connected = profiles.save(rt, tx, provider, identity, credentials, name)
    record(tx, AuditAction.PROFILE_IMPORTED, provider, connected)
    return connected


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
    """Return the account of these tokens. Renew an expired access token first.

    Asks the network, so do not call on the event loop. Raises OperatorError.
    """
    renewed = False
    redaction.add_secrets(credentials.access_token, credentials.refresh_token)
    try:
        ended = credentials.expires_at is not None and credentials.expires_at <= rt.now()
        if ended and credentials.refresh_token:
            credentials, renewed = _renew(rt, provider, credentials), True
        try:
            return _ask_identity(rt, provider, credentials), credentials
        except AuthExpired:
            if renewed or not credentials.refresh_token:
                raise
            credentials, renewed = _renew(rt, provider, credentials), True
            return _ask_identity(rt, provider, credentials), credentials
    except ProviderError as error:
        hint = remedies.after_failure(provider, error, surface)
        if renewed:
            hint += " This attempt used up the refresh token. Import a newer refresh token."
        raise OperatorError(f"The account of these tokens could not be determined: {error.message}", hint) from error


def _ask_identity(rt: Runtime, provider: Provider, credentials: Credentials) -> Identity:
    http = rt.http_for(provider.name)
    return redaction.mask_value(provider.auth.identify(http, _account(credentials), credentials.access_token))


def _account(credentials: Credentials, identity: Identity | None = None) -> Account:
    """Return the account of tokens that no profile has. Without an identity, only the scopes are known."""
    scopes = credentials.scopes or frozenset()
    if identity is None:
        return Account("", scopes=scopes)
    return Account(identity.account_id, identity.username, scopes, identity.facts)


def _renew(rt: Runtime, provider: Provider, credentials: Credentials) -> Credentials:
    if appliance_state.paused_at(rt.db):
        raise OperatorError(
            "The access token has expired, and no token is refreshed while publishing is paused.",
            f"Import a new access token, or end the pause first: {remedies.resume()}.",
        )
    assert credentials.refresh_token is not None
    asked_at = rt.now()
    answer = provider.auth.refresh(rt.http_for(provider.name), _account(credentials), credentials.refresh_token)
    return grants.from_answer(answer, asked_at, previous=credentials)
