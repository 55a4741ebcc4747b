"""The owner's sign-in to the dashboard: browser sessions, links that work once, and the password.

A session is a random token in a cookie, of which only a digest is stored. It is created at sign-in and never taken from
the browser, ends when unused for `dashboard.session_lifetime`, and survives a restart.
"""

import secrets
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from socialpub.core import actor
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import InvalidRequest, NotFound
from socialpub.core.secrets import crypto
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import SessionRow, SignInLinkRow
from socialpub.db.tables import access_rows, audit_log
from socialpub.db.tables.audit_log import AuditAction
from socialpub.runtime import Runtime

if TYPE_CHECKING:
    from argon2 import PasswordHasher

NOTED_EVERY = timedelta(minutes=10)
"""The resolution of a session's last use."""
MAX_USER_AGENT_LENGTH = 300
FAILURES_NOTED_EVERY = timedelta(hours=1)
"""Failures from one place within this time are one entry of the audit log."""
MAX_FAILURE_ENTRIES = 50
"""Further places share one entry within that time, so strangers cannot fill the disk."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """The session of a request. Instants are stamps."""

    token: str = field(repr=False)
    id: str
    created_at: str
    last_seen_at: str
    address: str
    user_agent: str


def begin_session(rt: Runtime, tx: Database, address: str, user_agent: str) -> BrowserSession:
    """Begin a session for the browser that just signed in."""
    token = secrets.token_urlsafe(32)
    values = {
        "id": secrets.token_hex(6),
        "created_at": tx.stamp,
        "last_seen_at": tx.stamp,
        "address": address,
        "user_agent": user_agent[:MAX_USER_AGENT_LENGTH],
    }
    clean_sessions(rt, tx)
    tx.insert(SessionRow, {"token_hash": crypto.hash_api_secret(token), "instance_id": rt.instance_id, **values})
    audit_log.record(tx, AuditAction.SIGNED_IN, values["id"], values["user_agent"], address=address)
    return BrowserSession(token, **values)


def is_failure_due(rt: Runtime, action: AuditAction, place: str) -> bool:
    """Return whether a failed sign-in from `place` must be recorded."""
    since = stamp(rt.now() - FAILURES_NOTED_EVERY)
    return not any(audit_log.is_recorded(rt.db, action, subject, since) for subject in (place, ""))


def record_failure(rt: Runtime, tx: Database, action: AuditAction, place: str, user_agent: str) -> None:
    """Record wrong or too many passwords. `place` is an IP address, or a network that counts as one IP address."""
    since, label = stamp(tx.now - FAILURES_NOTED_EVERY), user_agent[:MAX_USER_AGENT_LENGTH]
    audit_log.record_once(tx, action, place, label, since, MAX_FAILURE_ENTRIES, by=actor.VISITOR, address=place)


def find_session(rt: Runtime, db: Database, token: str) -> BrowserSession | None:
    """Return the session of this token. None: the session is unknown or has ended."""
    row = access_rows.find_session(db, crypto.hash_api_secret(token), rt.instance_id, _oldest(rt, rt.stamp()))
    if row is None:
        return None
    return BrowserSession(token, row.id, row.created_at, row.last_seen_at, row.address, row.user_agent)


def is_use_due(rt: Runtime, session: BrowserSession) -> bool:
    """Return whether `record_use` must be called."""
    return rt.now() - parse(session.last_seen_at) >= NOTED_EVERY


def record_use(rt: Runtime, tx: Database, session_id: str, address: str) -> None:
    tx.update(SessionRow, session_id, last_seen_at=tx.stamp, address=address)


def list_sessions(rt: Runtime, db: Database) -> list[SessionRow]:
    """Return the sessions that are signed in, the last used first."""
    return access_rows.list_sessions(db, rt.instance_id, _oldest(rt, rt.stamp()))


def sign_out(rt: Runtime, tx: Database, session: BrowserSession) -> None:
    """End the session of this browser. Ending a session again changes nothing."""
    _delete(tx, session.id, AuditAction.SIGNED_OUT)


def end_session(rt: Runtime, tx: Database, session_id: str) -> None:
    """End the session of another browser. Raises NotFound."""
    if not _delete(tx, session_id, AuditAction.SESSION_ENDED):
        raise NotFound("This session has ended already.")


def clean_sessions(rt: Runtime, tx: Database) -> int:
    """Delete expired sessions. Return the number of deleted sessions."""
    return tx.delete(SessionRow, SessionRow.last_seen_at <= _oldest(rt, tx.stamp))


def _delete(tx: Database, session_id: str, action: AuditAction) -> bool:
    browser = access_rows.delete_session(tx, session_id)
    if browser is not None:
        audit_log.record(tx, action, session_id, browser)
    return browser is not None


def _oldest(rt: Runtime, now: str) -> str:
    return stamp(parse(now) - rt.settings.dashboard.session_lifetime)


# --- links ------------------------------------------------------------------------------------------------------------
#
# Only a digest of a link is stored. It works once and for a day, and a new link of its purpose replaces it.

LINK_LIFETIME = timedelta(days=1)


class Purpose(StrEnum):
    SET_UP = "set_up"
    """A link to set the first password."""

    SIGN_IN = "sign_in"
    """A link to sign in without a password. The demo prints such a link."""


def create_link(rt: Runtime, tx: Database, purpose: Purpose) -> str:
    """Create a link, replace the previous link of this purpose, and return the token."""
    token = secrets.token_urlsafe(32)
    access_rows.replace_link(
        tx,
        purpose,
        token_hash=crypto.hash_api_secret(token),
        instance_id=rt.instance_id,
        expires_at=stamp(tx.now + LINK_LIFETIME),
    )
    return token


def is_link_valid(rt: Runtime, db: Database, purpose: Purpose, token: str) -> bool:
    return access_rows.is_link_valid(db, crypto.hash_api_secret(token), purpose, rt.instance_id, rt.stamp())


def use_link(rt: Runtime, tx: Database, purpose: Purpose, token: str) -> bool:
    return access_rows.use_link(tx, crypto.hash_api_secret(token), purpose, rt.instance_id)


def clean_links(rt: Runtime, tx: Database) -> int:
    """Delete expired links. Return the number of deleted links."""
    return tx.delete(SignInLinkRow, SignInLinkRow.expires_at <= tx.stamp)


# --- the password -----------------------------------------------------------------------------------------------------
#
# Hashed with argon2id at the least costs of OWASP's password storage cheat sheet: 19 MiB and about ten milliseconds,
# for one password at a time, and never on the event loop.

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 1000

_hashing = threading.Lock()


def is_password_set(db: Database) -> bool:
    return appliance_state.get(db, appliance_state.PASSWORD) is not None


def hash_password(password: str, repeated: str) -> str:
    """Return the hash of a new password. Raises InvalidRequest at `password` or `repeated`."""
    if len(password) < MIN_PASSWORD_LENGTH:
        raise InvalidRequest.at("password", message=f"must have at least {MIN_PASSWORD_LENGTH} characters")
    if len(password) > MAX_PASSWORD_LENGTH:
        raise InvalidRequest.at("password", message=f"may have at most {MAX_PASSWORD_LENGTH} characters")
    if password != repeated:
        raise InvalidRequest.at("repeated", message="must be the same as the password")
    with _hashing:
        return _hasher().hash(_password_bytes(password))


def set_password(rt: Runtime, tx: Database, password_hash: str) -> None:
    """Set the password, and end all sessions and links."""
    appliance_state.put(tx, appliance_state.PASSWORD, password_hash)
    tx.delete(SessionRow)
    tx.delete(SignInLinkRow)
    audit_log.record(tx, AuditAction.PASSWORD_SET)


def is_password(rt: Runtime, password: str) -> bool:
    """Return whether this is the password. Slow on purpose: not on the event loop."""
    from argon2.exceptions import InvalidHashError, VerificationError

    stored = appliance_state.get(rt.db, appliance_state.PASSWORD)
    if stored is None or len(password) > MAX_PASSWORD_LENGTH:
        return False
    with _hashing:
        try:
            return _hasher().verify(stored, _password_bytes(password))
        except (VerificationError, InvalidHashError):
            return False


def _password_bytes(password: str) -> bytes:
    # Terminals and browsers may encode the same letter in two ways.
    import unicodedata

    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


@cache
def _hasher() -> "PasswordHasher":
    # argon2 is imported only for a sign-in, and costs no memory elsewhere.
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
