"""Connecting an account: through the network's own consent page, or with tokens from elsewhere.

Nothing is saved before the network has said whose tokens these are. What becomes of an attempt through the consent page
is written down (`consents.py`), because whoever began it waits elsewhere.
"""

import contextlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from socialpub.accounts import consents, grants, hints, profiles, tokens
from socialpub.accounts.grants import Credentials
from socialpub.accounts.hints import Surface
from socialpub.accounts.profiles import Connected
from socialpub.core import actor, ids, logging
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.core.secrets import redaction
from socialpub.db import appliance_state
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import audit_log, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.errors import AuthExpired, ProviderError
from socialpub.providers.oauth import Identity
from socialpub.providers.provider import Provider
from socialpub.providers.responses import shortened
from socialpub.runtime import Runtime

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")

log = logging.get_logger("socialpub.consents")


class UnknownState(OperatorError):
    """What came back belongs to no attempt of ours."""


@dataclass(frozen=True, slots=True)
class StartedConnection:
    id: str
    url: str = field(repr=False)
    """The network's consent page. It holds the state: for the owner's eyes only."""
    redirect_uri: str
    """The address that has to be registered with the app, letter by letter."""
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StartedFrom:
    """Where somebody began to connect."""

    door: Surface
    profile_id: str | None
    """The profile that came of it, or was to be connected again."""


# --- beginning -------------------------------------------------------------------------------------------------------


def begin(
    rt: Runtime,
    provider_name: str,
    name: str | None = None,
    profile_id: str | None = None,
    door: Surface = Surface.SHELL,
) -> StartedConnection:
    """Open an attempt to connect an account, with `profile_id` only the very account of that profile. `door`: where
    its owner stands, who reads there what became of it.

    Not from the event loop. Raises OperatorError when the app's credentials are missing or the profile cannot be
    connected again, NotFound when there is no such profile, InvalidRequest at `name`.
    """
    provider = rt.providers[provider_name]
    obstacle = app_missing(rt, provider_name)
    if obstacle is not None:
        raise obstacle
    if name is not None:
        name = profiles.check_name(name)
    if profile_id is not None:
        _must_fit(rt.reader, provider, profile_id, door)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    redirect_uri = rt.settings.redirect_url(provider_name)
    begun = StartedConnection(
        ids.new(int(rt.now().timestamp() * 1000)),
        provider.oauth.authorize_url(redirect_uri, state, verifier),
        redirect_uri,
        rt.now() + consents.LIFETIME,
    )
    rt.write(
        consents.insert,
        begun.id,
        provider_name,
        state,
        verifier,
        begun.redirect_uri,
        begun.expires_at,
        name,
        profile_id,
        door,
    )
    return begun


def app_missing(rt: Runtime, provider_name: str) -> OperatorError | None:
    """What to do before any account of this network can be connected; None when there is nothing."""
    missing = getattr(rt.settings.providers, provider_name).missing_keys()
    if not missing:
        return None
    provider, keys = rt.providers[provider_name], " and ".join(missing)
    rule = consents.check_redirect_address(rt.settings, provider)
    app = f"a {rule.app_kind} app" if rule and rule.app_kind else "an app"
    address = f", give it the redirect address {rt.settings.redirect_url(provider_name)}"
    wrong = f" {rule.sentence} {rule.change}" if rule and rule.change else ""
    return OperatorError(
        f"{provider.label} does not know this appliance's app yet: {keys} in [providers.{provider_name}] "
        f"{'is' if len(missing) == 1 else 'are'} empty.",
        f"Register {app} with {provider.label}{'' if wrong else address} and write what it shows you into the "
        f"configuration.{wrong}",
    )


def _must_fit(reader: Reader, provider: Provider, profile_id: str, door: Surface) -> Profile:
    """The profile that is to be connected again. Raises NotFound and OperatorError."""
    profile = profiles.get(reader, profile_id)
    if profile.provider != provider.name:
        raise OperatorError(
            f"The profile “{profile.name}” is no account of {provider.label}.",
            hints.sentence(hints.connect(profile.provider, Surface.SHELL, "--profile", profile_id)),
        )
    if profile.status is ProfileStatus.DISCONNECTED:
        raise OperatorError(
            f"The profile “{profile.name}” was disconnected, which cannot be undone.",
            f"To connect the account as a new profile, {hints.connect(provider.name, door)}.",
        )
    return profile


# --- the browser comes back ------------------------------------------------------------------------------------------


def origin(rt: Runtime, provider_name: str, query: Mapping[str, str]) -> StartedFrom | None:
    """Where the attempt was begun that this answer belongs to; None when it is none of ours."""
    row = consents.find_by_state(rt.reader, provider_name, query.get("state", ""))
    return None if row is None else StartedFrom(consents.surface_of(row), row.profile_id or row.expected_profile_id)


def finish(rt: Runtime, provider_name: str, query: Mapping[str, str], consent_id: str | None = None) -> Connected:
    """Make a profile of what the network's page answered; `query` as the browser brought it, decoded.

    With `consent_id` only that attempt is finished. Asks the network, so not from the event loop. Raises OperatorError,
    which says what went wrong and what to do (`UnknownState` when nothing of ours was meant), and Unavailable when the
    disk could not store the tokens; then nothing is saved.
    """
    provider = rt.providers[provider_name]
    awaited = consents.find(rt.reader, consent_id) if consent_id else None
    row = _find(rt.reader, provider, query, consents.surface_of(awaited) if awaited else Surface.SHELL)
    if consent_id not in (None, row.id):
        raise OperatorError(
            "This address belongs to another attempt to connect.", "Use the address that this attempt ended at."
        )
    rt.write(consents.spend, row.id)
    door = consents.surface_of(row)
    try:
        code = _code(provider, query, door)
        with tokens.reserve_disk(rt):
            credentials, identity = _trade(rt, provider, code, row)
        try:
            finished = rt.write(_connect, provider, row.id, identity, credentials)
        except OperatorError:
            _take_back(rt, provider, identity, credentials)
            raise
    except OperatorError as error:
        rt.write(consents.fail, row.id, error.message, error.hint)
        log.warning("an account could not be connected", provider=provider_name, why=error.message)
        raise
    except SocialpubError as error:
        with contextlib.suppress(SocialpubError):
            rt.write(consents.fail, row.id, error.detail, hints.begin_again(provider.name, door))
        raise
    log.info("an account was connected", provider=provider_name, profile=finished.profile_id)
    return finished


def _find(reader: Reader, provider: Provider, query: Mapping[str, str], door: Surface) -> Row:
    """Return the attempt that this state belongs to. `door`: where a person reads that there is none."""
    state, again = query.get("state", ""), hints.begin_again(provider.name, door)
    row = consents.find_by_state(reader, provider.name, state)
    if row is not None:
        return row
    if not state:
        # Anybody can make such a link: only what has the form of a code is repeated on a page of ours.
        error = query.get("error", "")
        said = f" It says: {error}." if _ERROR_CODE.fullmatch(error) else ""
        raise UnknownState(f"{provider.label} did not say which attempt this belongs to.{said}", again)
    raise UnknownState("This attempt to connect is not known here, or it was long ago.", again)


def _code(provider: Provider, query: Mapping[str, str], door: Surface) -> str:
    """What can be traded for tokens. Raises OperatorError with what came instead."""
    error = query.get("error")
    if error == "access_denied":
        raise OperatorError(
            f"You did not give {provider.label}'s consent, so nothing was connected.",
            hints.begin_again(provider.name, door),
        )
    if error:
        words = shortened(query.get("error_description"))
        said = f"{shortened(error)}: {words}" if words else shortened(error)
        raise OperatorError(
            f"{provider.label} gave no consent. It says: {said}",
            f"Check [providers.{provider.name}] and the app's page at {provider.label}. "
            f"{hints.begin_again(provider.name, door)}",
        )
    code = query.get("code")
    if not code:
        raise OperatorError(
            f"{provider.label} sent the browser back without a code.", hints.begin_again(provider.name, door)
        )
    return code


def _trade(rt: Runtime, provider: Provider, code: str, row: Row) -> tuple[Credentials, Identity]:
    """The tokens, tried: the network has said whose they are. Raises OperatorError."""
    asked_at, door = rt.now(), consents.surface_of(row)
    try:
        verifier = rt.secrets.open(row.verifier, "consent", row.id, "verifier")
        tokens = provider.oauth.exchange(rt.http_of(provider.name), code, row.redirect_uri, verifier)
    except ProviderError as error:
        raise OperatorError(
            f"{provider.label} returned no tokens after your consent: {error.message}",
            hints.after_failure(provider, error, door),
        ) from error
    credentials = grants.from_answer(tokens, asked_at)
    check_grant(provider, credentials, door)
    identity, credentials = identify(rt, provider, credentials, door)
    return credentials, identity


def _connect(
    rt: Runtime, tx: Tx, provider: Provider, consent_id: str, identity: Identity, credentials: Credentials
) -> Connected:
    """The profile and the end of the attempt in one transaction."""
    row = consents.check_open(tx, consent_id)
    if row.expected_profile_id is not None:
        door = consents.surface_of(row)
        expected = _must_fit(tx, provider, row.expected_profile_id, door)
        if expected.account_id != identity.account_id:
            came = _handle(identity.username, identity.name or identity.account_id)
            wanted = _handle(expected.username, expected.name)
            raise OperatorError(
                f"This was to connect {wanted} again, but {provider.label} answered for {came}.",
                f"Log in to {provider.label} as {wanted} (a private window helps), then begin again. "
                f"To connect {came} as well, {hints.connect(provider.name, door)}.",
            )
    connected = profiles.save(rt, tx, provider, identity, credentials, row.name)
    consents.succeed(tx, consent_id, connected)
    action = AuditAction.PROFILE_RECONNECTED if connected.revived else AuditAction.PROFILE_CONNECTED
    # The browser that comes back from the network says nothing of who sent it there.
    by = actor.DASHBOARD if consents.surface_of(row) is Surface.DASHBOARD else actor.COMMAND
    _record(tx, action, provider, connected, by=by)
    return connected


def _record(tx: Tx, action: AuditAction, provider: Provider, connected: Connected, by: str | None = None) -> None:
    name = profiles.get(tx, connected.profile_id).name
    audit_log.record(tx, action, connected.profile_id, name, by=by, provider=provider.name)


def _take_back(rt: Runtime, provider: Provider, identity: Identity, credentials: Credentials) -> None:
    """Give back tokens that are not kept, as far as the network allows it.

    Not when their account is connected here: some networks end the whole grant with one of its tokens. And not by a
    paused copy, which must not end what the original uses.
    """
    if profile_rows.connected(rt.reader, provider.name, identity.account_id) or appliance_state.paused_at(rt.reader):
        return
    try:
        provider.oauth.revoke(rt.http_of(provider.name), credentials.access_token, credentials.refresh_token)
    except ProviderError as error:
        log.info("unused tokens could not be revoked and stay valid", provider=provider.name, why=error.message)


def _handle(username: str | None, otherwise: str) -> str:
    return f"@{username}" if username else f"“{otherwise}”"


# --- tokens from elsewhere -------------------------------------------------------------------------------------------


def import_account(rt: Runtime, provider_name: str, credentials: Credentials, name: str | None = None) -> Connected:
    """Connect the account that these tokens belong to, or give new ones to the profile that it already is.

    Asks the network, so not from the event loop. Raises OperatorError when the tokens are refused, when nothing could
    be published with them, or when the network cannot be asked; then nothing is saved.
    """
    provider = rt.providers[provider_name]
    if name is not None:
        name = profiles.check_name(name)
    check_grant(provider, credentials)
    with tokens.reserve_disk(rt):  # an access token that has ended is renewed here
        identity, credentials = identify(rt, provider, credentials)
    return rt.write(_import, provider, identity, credentials, name)


def _import(
    rt: Runtime, tx: Tx, provider: Provider, identity: Identity, credentials: Credentials, name: str | None
) -> Connected:
    connected = profiles.save(rt, tx, provider, identity, credentials, name)
    _record(tx, AuditAction.PROFILE_IMPORTED, provider, connected)
    return connected


# MERGED from accounts/identify.py: Tokens that are new here, tried at the network before anything is saved: whose


def check_grant(provider: Provider, credentials: Credentials, door: Surface = Surface.SHELL) -> None:
    """Raises OperatorError when no way of publishing is left in these scopes."""
    scopes = credentials.scopes or frozenset()
    if not provider.oauth.can_publish(scopes):
        raise OperatorError(
            f"With this grant nothing could be published to {provider.label}: "
            + " ".join(provider.oauth.missing_scopes(scopes)),
            f"Consent again to everything that the app asks for. To begin, {hints.connect(provider.name, door)}.",
        )


def identify(
    rt: Runtime, provider: Provider, credentials: Credentials, door: Surface = Surface.SHELL
) -> tuple[Identity, Credentials]:
    """Whose tokens these are. An access token that has run out is renewed first, when there is a refresh token.

    Asks the network, so not from the event loop. Raises OperatorError.
    """
    renewed = False
    redaction.add_secrets(credentials.access_token, credentials.refresh_token)
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
        hint = hints.after_failure(provider, error, door)
        if renewed:
            hint += " The refresh token has been used in this attempt: import a newer one."
        raise OperatorError(f"It is not known whose tokens these are: {error.message}", hint) from error


def _whose(rt: Runtime, provider: Provider, credentials: Credentials) -> Identity:
    scopes = credentials.scopes or frozenset()
    http = rt.http_of(provider.name)
    return redaction.mask_value(provider.oauth.identify(http, credentials.access_token, scopes))


def _renew(rt: Runtime, provider: Provider, credentials: Credentials) -> Credentials:
    if appliance_state.paused_at(rt.reader):
        raise OperatorError(
            "The access token has run out, and while publishing is paused no token is refreshed.",
            f"Import a fresh access token. Or end the pause first: {hints.resume()}.",
        )
    assert credentials.refresh_token is not None
    asked_at = rt.now()
    answer = provider.oauth.refresh(rt.http_of(provider.name), credentials.refresh_token)
    return grants.from_answer(answer, asked_at, previous=credentials)
