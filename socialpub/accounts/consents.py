"""Consents: attempts to connect an account through the network's own page, each a row of the table `consent`.

A state belongs to one attempt and works once, for ten minutes. The outcome of every attempt is stored
for the command or page that started the attempt. The redirect address must be the same, character by character, in the
consent page's URL, in the token call and at the app's page.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

from socialpub.accounts import remedies
from socialpub.accounts.profiles import Connected
from socialpub.accounts.remedies import Surface
from socialpub.core import clock, commands
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.networks import LOOPBACK, AppSection
from socialpub.db.connection import Database
from socialpub.db.models import ConsentRow
from socialpub.db.tables import access_rows
from socialpub.providers.base import Provider
from socialpub.providers.oauth import OAuth
from socialpub.runtime import Runtime

LIFETIME = timedelta(minutes=10)
MAX_EXCHANGE_SECONDS = 300.0
"""The time after which an attempt whose browser returned is interrupted. Two calls with deadlines take less time."""
KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was saved."""

    message: str
    hint: str | None


def insert(rt: Runtime, tx: Database, /, consent_id: str, state: str, verifier: str, **columns: str | None) -> None:
    """Store a new attempt with a digest of its state, so a reader of the database cannot finish it."""
    sealed = rt.secrets.seal(verifier, "consent", consent_id, "verifier")
    attempt = {"id": consent_id, "state_hash": crypto.hash_api_secret(state), "verifier": sealed}
    tx.insert(ConsentRow, {**attempt, "created_at": tx.stamp, **columns})


def find_by_state(db: Database, provider: str, state: str) -> ConsentRow | None:
    return access_rows.find_consent(db, provider, crypto.hash_api_secret(state))


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


def load_outcome(rt: Runtime, consent_id: str) -> Connected | Failed | None:
    """Return the end of the attempt. None: the browser may still return."""
    row = rt.db.get(ConsentRow, consent_id)
    if row is None:
        return Failed("This attempt no longer exists.", None)
    again = remedies.begin_again(row.provider, Surface(row.door))
    if row.profile_id is not None:
        return Connected(row.profile_id, tuple(json.loads(row.missing or "[]")), bool(row.revived))
    if row.finished_at is not None:
        return Failed(row.error or "", row.hint)
    if row.taken_at is not None:
        if clock.after(row.taken_at, MAX_EXCHANGE_SECONDS) < rt.stamp():
            return Failed("The appliance was interrupted while it connected the account.", again)
        return None
    if row.expires_at <= rt.stamp():
        return Failed("The browser did not return within ten minutes.", again)
    return None


def cancel(rt: Runtime, tx: Database, consent_id: str) -> None:
    """Cancel the attempt."""
    access_rows.fail_consent(tx, consent_id, "The attempt was canceled.", None)


def clean(rt: Runtime, tx: Database) -> int:
    """Delete a batch of attempts older than a day. Return the number of deleted attempts."""
    return tx.delete_batch(ConsentRow, ConsentRow.created_at < clock.stamp(tx.now - KEPT))


# --- redirect addresses -----------------------------------------------------------------------------------------------

DEFAULT_PORTS = {"http": 80, "https": 443}
COPY_IT = "After you give consent, copy the whole address from the browser's address bar."


class WrongAddress(OperatorError):
    """The pasted text is not the address at which this attempt ended. The attempt continues."""


@dataclass(frozen=True, slots=True)
class RedirectFinding:
    """The result of checking a redirect address against the network's rule."""

    address: str
    app_kind: str
    """The kind of app to register, such as `desktop`. Empty: the network has one kind."""
    sentence: str
    change: str | None = None
    """The change to make in the configuration. None: the network accepts the address."""
    pasted: bool = False
    """Whether the owner must paste the address after the change."""

    @property
    def remedy(self) -> str | None:
        """Return the change and the next action."""
        if self.change is None:
            return None
        paste = " If the browser shows an error after your consent, paste the address from its address bar."
        return f"{self.change} {commands.restart()}.{paste if self.pasted else ''}"


def check_redirect_address(settings: Settings, provider: Provider) -> RedirectFinding | None:
    """Compare the redirect address with the network's rule. None: the network has no redirects, or
    a stand-in, such as the sandbox, has no rule."""
    name, label = provider.name, provider.label
    if not isinstance(provider.auth, OAuth):
        return None
    section: AppSection = getattr(settings.providers, name)
    if section.is_stand_in:
        return None
    rules = provider.auth.redirect_rules
    address = settings.redirect_url(name)
    row = rules.find(address)
    if row is not None:
        sentence = f"{label}: register the redirect address {address} with {_app(row.app)}."
        return RedirectFinding(address, row.app, sentence)
    better = settings.callback_url(name)
    change = f"Remove redirect_url from [providers.{name}]"
    if rules.find(better) is None:
        better = rules.local(settings.listen_ports[0], _path(name)) or better
        change = f'Set redirect_url = "{better}" in [providers.{name}]'
    fits = rules.find(better)
    kind = fits.app if fits else ""
    sentence = f"{label} does not accept the redirect address {address}. It accepts {rules.sentence}."
    change += f" and register {better} with {_app(kind)}."
    return RedirectFinding(address, kind, sentence, change, pasted=not _leads_here(settings, name, better))


def returns_here(settings: Settings, network: str) -> bool:
    """Return whether the configured redirect address leads the browser to this appliance."""
    return _leads_here(settings, network, settings.redirect_url(network))


def read_pasted_address(text: str, redirect_uri: str) -> Mapping[str, str]:
    """Return the query of a pasted address: the whole address, or only what follows the question mark.

    Raises WrongAddress for a URL with another host or path than `redirect_uri`, and for text that is not a URL.
    """
    text = text.strip().strip("\"'<>").partition("#")[0]
    try:
        place, query = _place(text) if "?" in text else (None, text)
        parameters = dict(parse_qsl(query, keep_blank_values=True))
    except ValueError:
        place, parameters = None, {}
    if "code" not in parameters and "error" not in parameters:
        raise WrongAddress(
            "This is not the address at which the browser ended. The address contains neither code= nor error=.",
            COPY_IT,
        )
    if place not in (None, _place(redirect_uri)[0]):
        raise WrongAddress(f"This is not the redirect address of this attempt, which is {redirect_uri}.", COPY_IT)
    return parameters


def _place(address: str) -> tuple[tuple[str, str] | None, str]:
    """Return the host and path of a URL, and the query of the URL.

    The scheme is ignored: browsers hide and change the scheme.
    """
    if address.startswith("?"):
        return None, address[1:]
    parts = urlsplit(address if "://" in address else f"http://{address}")
    port = "" if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return (f"{(parts.hostname or '').rstrip('.')}{port}", parts.path), parts.query


def _app(kind: str) -> str:
    return f"a {kind} app" if kind else "the app"


def _path(network: str) -> str:
    return f"/oauth/{network}/callback"


def _leads_here(settings: Settings, network: str, address: str) -> bool:
    """Return whether this is the callback's URL, or the same URL with another loopback name."""
    if address == settings.callback_url(network):
        return True
    base, parts = urlsplit(settings.base_url), urlsplit(address)
    is_local = base.hostname in LOOPBACK and parts.hostname in LOOPBACK
    return is_local and parts.scheme == "http" and parts.port in settings.listen_ports and parts.path == _path(network)
