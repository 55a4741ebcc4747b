"""Statements about the tables `session` and `sign_in_link`: browsers that are signed in, and links that work once."""

from typing import Any

from peewee import Expression

from socialpub.db.connection import Reader, Tx
from socialpub.db.models import SessionRow, SignInLinkRow


def insert_session(tx: Tx, **columns: Any) -> None:
    tx.run(SessionRow.insert(**columns))


def find_session(reader: Reader, token_hash: bytes, instance_id: str, seen_after: str) -> SessionRow | None:
    query = SessionRow.select().where(SessionRow.token_hash == token_hash)
    return reader.first(query.where(_is_current(instance_id, seen_after)))


def list_sessions(reader: Reader, instance_id: str, seen_after: str) -> list[SessionRow]:
    """Return the sessions, the last used first."""
    query = SessionRow.select().where(_is_current(instance_id, seen_after))
    return reader.rows(query.order_by(SessionRow.last_seen_at.desc(), SessionRow.id))


def _is_current(instance_id: str, seen_after: str) -> Expression:
    return (SessionRow.instance_id == instance_id) & (SessionRow.last_seen_at > seen_after)


def note_use(tx: Tx, session_id: str, address: str) -> None:
    tx.run(SessionRow.update(last_seen_at=tx.stamp, address=address).where(SessionRow.id == session_id))


def delete_session(tx: Tx, session_id: str) -> str | None:
    """Delete the session. Return its browser, or None."""
    found = tx.first(SessionRow.select().where(SessionRow.id == session_id))
    tx.run(SessionRow.delete().where(SessionRow.id == session_id))
    return None if found is None else found.user_agent


def delete_unused_sessions(tx: Tx, seen_until: str) -> int:
    return int(tx.run(SessionRow.delete().where(SessionRow.last_seen_at <= seen_until)))


def delete_all_sessions(tx: Tx) -> None:
    tx.run(SessionRow.delete())


# --- links -----------------------------------------------------------------------------------------------------------


def replace_link(tx: Tx, purpose: str, **columns: Any) -> None:
    """Insert a link. Delete the former links of its purpose, and the expired ones."""
    tx.run(SignInLinkRow.delete().where((SignInLinkRow.purpose == purpose) | (SignInLinkRow.expires_at <= tx.stamp)))
    tx.run(SignInLinkRow.insert(purpose=purpose, created_at=tx.stamp, **columns))


def is_link_valid(reader: Reader, token_hash: bytes, purpose: str, instance_id: str, now: str) -> bool:
    return reader.first(SignInLinkRow.select().where(_is_valid(token_hash, purpose, instance_id, now))) is not None


def use_link(tx: Tx, token_hash: bytes, purpose: str, instance_id: str) -> bool:
    """Delete the link. Return whether it was valid."""
    return bool(tx.run(SignInLinkRow.delete().where(_is_valid(token_hash, purpose, instance_id, tx.stamp))))


def _is_valid(token_hash: bytes, purpose: str, instance_id: str, now: str) -> Expression:
    link = SignInLinkRow
    return (
        (link.token_hash == token_hash)
        & (link.purpose == purpose)
        & (link.instance_id == instance_id)
        & (link.expires_at > now)
    )


def delete_expired_links(tx: Tx) -> int:
    return int(tx.run(SignInLinkRow.delete().where(SignInLinkRow.expires_at <= tx.stamp)))


def delete_all_links(tx: Tx) -> None:
    tx.run(SignInLinkRow.delete())
