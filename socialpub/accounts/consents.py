"""Consents: attempts to connect an account through the network's own page, each a row of the table `consent`.

A state belongs to one attempt and works once, for ten minutes. The end of every attempt is stored, because the owner
waits for it in another process.
"""

import contextlib
import json
import re
import secrets
from collections.abc import Mapping
from datetime import timedelta

from socialpub.accounts import connect, profiles, redirects, remedies, tokens
from socialpub.accounts.connect import Connected
from socialpub.accounts.remedies import Surface
from socialpub.accounts.tokens import Credentials
from socialpub.core import actor, clock, logging
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.core.secrets import crypto
from socialpub.db.connection import Database
from socialpub.db.models import ConsentRow
from socialpub.db.tables import access_rows
from socialpub.providers.auth import Identity
from socialpub.providers.base import Provider
from socialpub.providers.oauth import OAuth
from socialpub.providers.responses import ProviderError, shortened
from socialpub.runtime import Runtime

LIFETIME = timedelta(minutes=10)
MAX_EXCHANGE_SECONDS = 300.0
"""The time after which an attempt whose browser returned is interrupted. Two calls with deadlines take less time."""
KEPT = timedelta(days=1)

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")

log = logging.get_logger(__name__)


class UnknownState(OperatorError):
    """The response does not belong to a known attempt."""


# --- beginning -------------------------------------------------------------------------------------------------------


def begin(
    rt: Runtime,
    provider_name: str,
    name: str | None = None,
    profile_id: str | None = None,
    surface: Surface = Surface.SHELL,
) -> tuple[ConsentRow, str]:
    """Start to connect an account. Return the attempt and the URL of the consent page, which contains the secret state.

    With `profile_id`, only the account of that profile is accepted. Do not call on the event loop. Raises OperatorError
    when the app's credentials are missing or the profile cannot be connected again, NotFound when there is no such
    profile, InvalidRequest at `name`.
    """
    provider = rt.providers[provider_name]
    if (missing := redirects.find_missing_app(rt, provider_name)) is not None:
        raise missing
    if name is not None:
        name = profiles.check_name(name)
    if profile_id is not None:
        connect.load_to_reconnect(rt.db, provider, profile_id, surface)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    row = rt.write(_insert, provider_name, state, verifier, name, profile_id, surface)
    return row, _auth_of(provider).authorize_url(row.redirect_uri, state, verifier)


def _insert(
    rt: Runtime,
    tx: Database,
    provider_name: str,
    state: str,
    verifier: str,
    name: str | None,
    profile_id: str | None,
    surface: Surface,
) -> ConsentRow:
    """Store a new attempt with a digest of its state, so a reader of the database cannot finish it."""
    consent_id = clock.new_id(tx.now)
    attempt = {
        "id": consent_id,
        "state_hash": crypto.hash_api_secret(state),
        "verifier": rt.secrets.seal(verifier, "consent", consent_id, "verifier"),
        "door": surface,
        "created_at": tx.stamp,
        "expires_at": clock.stamp(tx.now + LIFETIME),
        "provider": provider_name,
        "redirect_uri": rt.settings.redirect_url(provider_name),
        "name": name,
        "expected_profile_id": profile_id,
    }
    tx.insert(ConsentRow, attempt)
    return ConsentRow(**attempt)


def _auth_of(provider: Provider) -> OAuth:
    assert isinstance(provider.auth, OAuth), f"{provider.label} has no consent page"
    return provider.auth


# --- the browser comes back ------------------------------------------------------------------------------------------


def find_by_state(db: Database, provider_name: str, query: Mapping[str, str]) -> ConsentRow | None:
    """Return the attempt of this response. None: the attempt is unknown."""
    return access_rows.find_consent(db, provider_name, crypto.hash_api_secret(query.get("state", "")))


def finish(rt: Runtime, provider_name: str, query: Mapping[str, str], consent_id: str | None = None) -> Connected:
    """Create a profile from the decoded query of the network's response.

    With `consent_id`, only that attempt is finished. Asks the network, so do not call on the event loop. Raises
    OperatorError (`UnknownState` for an unknown attempt), and Unavailable. Then nothing is saved.
    """
    provider = rt.providers[provider_name]
    row = find_by_state(rt.db, provider_name, query)
    if row is None:
        awaited = rt.db.get(ConsentRow, consent_id) if consent_id else None
        raise _unknown_state(provider, query, Surface(awaited.door) if awaited else Surface.SHELL)
    if consent_id not in (None, row.id):
        raise OperatorError(
            "This address belongs to another attempt to connect.", "Paste the address at which this attempt ended."
        )
    tokens.require_disk_space(rt)
    rt.write(spend, row.id)
    surface = Surface(row.door)
    try:
        identity, credentials = _trade(rt, provider, _read_code(provider, query, surface), row)
        try:
            connected = rt.write(_connect, provider, row.id, identity, credentials)
        except OperatorError:
            connect.revoke_unused(rt, provider, identity, credentials)
            raise
    except OperatorError as error:
        rt.db.write(access_rows.fail_consent, row.id, error.message, error.hint)
        log.warning("an account could not be connected", provider=provider_name, why=error.message)
        raise
    except SocialpubError as error:
        with contextlib.suppress(SocialpubError):
            rt.db.write(access_rows.fail_consent, row.id, error.detail, remedies.begin_again(provider_name, surface))
        raise
    log.info("an account was connected", provider=provider_name, profile=connected.profile_id)
    return connected


def _unknown_state(provider: Provider, query: Mapping[str, str], surface: Surface) -> UnknownState:
    again = remedies.begin_again(provider.name, surface)
    if query.get("state"):
        return UnknownState("This attempt to connect is unknown or has expired.", again)
    # Any site can make such a link, so our page repeats only an error code.
    error = query.get("error", "")
    returned = f" It returned: {error}." if _ERROR_CODE.fullmatch(error) else ""
    return UnknownState(f"{provider.label} did not return the state of an attempt to connect.{returned}", again)


def spend(rt: Runtime, tx: Database, consent_id: str) -> None:
    """Spend the state, which works once. Raises OperatorError."""
    row = tx.get(ConsentRow, consent_id)
    assert row is not None
    again = remedies.begin_again(row.provider, Surface(row.door))
    if row.taken_at is not None:
        if row.profile_id is not None:
            message = "This link was already used: the account is connected."
            raise OperatorError(message, "No action is needed.")
        raise OperatorError("This link was already used.", again)
    if row.finished_at is not None:
        raise OperatorError("This attempt was canceled.", again)
    if row.expires_at <= tx.stamp:
        raise OperatorError("This attempt started more than ten minutes ago and has expired.", again)
    # The code challenge is answered in this call, so the verifier is not needed again.
    tx.update(ConsentRow, consent_id, taken_at=tx.stamp, verifier=b"")


def _read_code(provider: Provider, query: Mapping[str, str], surface: Surface) -> str:
    """Return the authorization code. Raises OperatorError with the network's error."""
    error = query.get("error")
    if error == "access_denied":
        raise OperatorError(
            f"You did not give consent at {provider.label}, so no account was connected.",
            remedies.begin_again(provider.name, surface),
        )
    if error:
        words = shortened(query.get("error_description"))
        returned = f"{shortened(error)}: {words}" if words else shortened(error)
        raise OperatorError(
            f"{provider.label} refused to connect the account. It returned: {returned}",
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
        response = _auth_of(provider).exchange(rt.http_for(provider.name), code, row.redirect_uri, verifier)
    except ProviderError as error:
        raise OperatorError(
            f"{provider.label} returned no tokens after your consent: {error.message}",
            remedies.after_failure(provider, error, surface),
        ) from error
    credentials = tokens.from_response(response, asked_at)
    connect.check_grant(provider, credentials, surface)
    return connect.identify(rt, provider, credentials, surface)


def _connect(
    rt: Runtime, tx: Database, provider: Provider, consent_id: str, identity: Identity, credentials: Credentials
) -> Connected:
    """Store the profile and the end of the attempt."""
    row = tx.get(ConsentRow, consent_id)
    assert row is not None
    surface = Surface(row.door)
    if row.finished_at is not None:  # the owner no longer waits for it
        raise OperatorError("This attempt was canceled.", remedies.begin_again(row.provider, surface))
    # The browser that returns from the network does not identify the actor.
    by = actor.DASHBOARD if surface is Surface.DASHBOARD else actor.COMMAND
    connected = connect.save(
        rt,
        tx,
        provider,
        identity,
        credentials,
        row.name,
        expected_id=row.expected_profile_id,
        surface=surface,
        by=by,
    )
    tx.update(
        ConsentRow,
        consent_id,
        finished_at=tx.stamp,
        profile_id=connected.profile_id,
        revived=int(connected.revived),
        missing=json.dumps(connected.missing, ensure_ascii=False),
    )
    return connected


# --- the end of an attempt -------------------------------------------------------------------------------------------


def load_outcome(rt: Runtime, consent_id: str) -> Connected | OperatorError | None:
    """Return the end of the attempt: the connection, or why nothing was saved. None: the browser may still return."""
    row = rt.db.get(ConsentRow, consent_id)
    if row is None:
        return OperatorError("This attempt no longer exists.")
    again = remedies.begin_again(row.provider, Surface(row.door))
    if row.profile_id is not None:
        return Connected(row.profile_id, tuple(json.loads(row.missing or "[]")), bool(row.revived))
    if row.finished_at is not None:
        return OperatorError(row.error or "", row.hint)
    if row.taken_at is not None:
        if clock.after(row.taken_at, MAX_EXCHANGE_SECONDS) < rt.stamp():
            return OperatorError("The appliance was interrupted while it connected the account.", again)
        return None
    if row.expires_at <= rt.stamp():
        return OperatorError("The browser did not return within ten minutes.", again)
    return None


def cancel(rt: Runtime, tx: Database, consent_id: str) -> None:
    """Cancel the attempt, unless it has ended."""
    access_rows.fail_consent(tx, consent_id, "The attempt was canceled.", None)


def clean(rt: Runtime, tx: Database) -> int:
    """Delete a batch of attempts older than a day. Return the number of deleted attempts."""
    return tx.delete_batch(ConsentRow, ConsentRow.created_at < clock.stamp(tx.now - KEPT))
