"""Browsers in which the owner is signed in to the dashboard.

A session is a random token in a cookie, of which only a digest is stored. It is made at sign-in and never taken from
the browser, ends when nobody used it for `dashboard.session_lifetime`, and survives a restart.
"""

import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from socialpub.core import actor, crypto
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import NotFound
from socialpub.db import trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Row, Tx
from socialpub.runtime import Runtime

NOTED_EVERY = timedelta(minutes=10)
"""How exactly it is known when a session was last used: a page that is read writes no more often."""
LONGEST_USER_AGENT = 300
FAILURES_NOTED_EVERY = timedelta(hours=1)
"""Wrong passwords from one place within this time are one entry of the audit log."""
MAX_FAILURE_ENTRIES = 50
"""Within that time. The places beyond them have one entry together: no stranger fills the disk."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """Instants are stamps. `token` is only known where the browser just brought it."""

    id: str
    created_at: str
    last_seen_at: str
    address: str
    user_agent: str
    token: str = field(default="", repr=False)


_COLUMNS = "id, created_at, last_seen_at, address, user_agent"


def begin(rt: Runtime, tx: Tx, address: str, user_agent: str) -> BrowserSession:
    """A new session for the browser that just signed in."""
    token = secrets.token_urlsafe(32)
    values = {
        "id": secrets.token_hex(6),
        "created_at": tx.stamp,
        "last_seen_at": tx.stamp,
        "address": address,
        "user_agent": user_agent[:LONGEST_USER_AGENT],
    }
    clean(rt, tx)
    tx.insert("session", token_hash=crypto.digest(token), instance_id=rt.instance_id, **values)
    trail.record(tx, TrailAction.SIGNED_IN, values["id"], values["user_agent"], address=address)
    return BrowserSession(**values, token=token)


def is_failure_due(rt: Runtime, action: TrailAction, place: str) -> bool:
    """Return whether a failed sign-in from `place` is to be noted: most of many need no write."""
    since = stamp(rt.now() - FAILURES_NOTED_EVERY)
    return not any(trail.is_recorded(rt.reader, action, subject, since) for subject in (place, ""))


def note_failure(rt: Runtime, tx: Tx, action: TrailAction, place: str, user_agent: str) -> None:
    """Note a wrong password, or that there are too many. `place` is an address, or the network that counts as one."""
    since, label = stamp(tx.now - FAILURES_NOTED_EVERY), user_agent[:LONGEST_USER_AGENT]
    trail.record_once(tx, action, place, label, since, MAX_FAILURE_ENTRIES, by=actor.VISITOR, address=place)


def find(rt: Runtime, reader: Reader, token: str) -> BrowserSession | None:
    """Whose token this is; None when it is nobody's, ended or unused for too long."""
    row = reader.one(
        f"SELECT {_COLUMNS} FROM session WHERE token_hash = ? AND instance_id = ? AND last_seen_at > ?",
        (crypto.digest(token), rt.instance_id, _oldest(rt, rt.stamp())),
    )
    return None if row is None else _session(row, token)


def is_due(rt: Runtime, session: BrowserSession) -> bool:
    """Whether its use is to be noted again (`note`)."""
    return rt.now() - parse(session.last_seen_at) >= NOTED_EVERY


def note(rt: Runtime, tx: Tx, session_id: str, address: str) -> None:
    """It is used at this moment, from this address."""
    tx.update("session", session_id, last_seen_at=tx.stamp, address=address)


def list_all(rt: Runtime, reader: Reader) -> list[BrowserSession]:
    """Those that are signed in, the last used first."""
    rows = reader.all(
        f"SELECT {_COLUMNS} FROM session WHERE instance_id = ? AND last_seen_at > ? ORDER BY last_seen_at DESC, id",
        (rt.instance_id, _oldest(rt, rt.stamp())),
    )
    return [_session(row) for row in rows]


def sign_out(rt: Runtime, tx: Tx, session: BrowserSession) -> None:
    """The browser's own wish. Again is fine."""
    _delete(tx, session.id, TrailAction.SIGNED_OUT)


def end(rt: Runtime, tx: Tx, session_id: str) -> None:
    """This browser has to sign in again. Raises NotFound."""
    if not _delete(tx, session_id, TrailAction.SESSION_ENDED):
        raise NotFound("This session has ended already.")


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget those that nobody used for too long; how many."""
    return tx.execute("DELETE FROM session WHERE last_seen_at <= ?", (_oldest(rt, stamp(tx.now)),)).rowcount


def end_all(tx: Tx) -> None:
    tx.execute("DELETE FROM session")


def _delete(tx: Tx, session_id: str, action: TrailAction) -> bool:
    row = tx.one("DELETE FROM session WHERE id = ? RETURNING user_agent", (session_id,))
    if row is not None:
        trail.record(tx, action, session_id, row["user_agent"])
    return row is not None


def _oldest(rt: Runtime, now: str) -> str:
    return stamp(parse(now) - rt.settings.dashboard.session_lifetime)


def _session(row: Row, token: str = "") -> BrowserSession:
    return BrowserSession(row["id"], row["created_at"], row["last_seen_at"], row["address"], row["user_agent"], token)
