"""Statements about access: the tables `api_key`, `session`, `sign_in_link` and `consent`."""

from collections.abc import Collection, Sequence
from typing import Any

from peewee import Expression, fn

from socialpub.db.connection import Database, Row, placeholders, prepared
from socialpub.db.models import ApiKeyRow, ConsentRow, SessionRow, SignInLinkRow

# --- API keys --------------------------------------------------------------------------------------------------------


def list_keys(reader: Database) -> list[ApiKeyRow]:
    return reader.rows(ApiKeyRow.select().order_by(ApiKeyRow.created_at, ApiKeyRow.id))


def unrevoked_keys(reader: Database) -> list[ApiKeyRow]:
    """Return the keys that are not revoked, oldest first."""
    key = ApiKeyRow
    return reader.rows(key.select().where(key.revoked_at.is_null()).order_by(key.created_at, key.id))


def revocations(reader: Database) -> dict[str, str | None]:
    """Return the time of revocation of each key, by id. None: the key is not revoked."""
    return dict(reader.tuples(ApiKeyRow.select(ApiKeyRow.id, ApiKeyRow.revoked_at)))


@prepared("each request")
def find_key(reader: Database, key_id: str) -> Row | None:
    """Return scope, secret_hash, providers and profiles (JSON), expires_at, revoked_at, name and both limits."""
    return reader.one(
        """SELECT scope, secret_hash, providers, profiles, expires_at, revoked_at, name, posts_per_day, approval
            FROM api_key WHERE id = ?""",
        (key_id,),
    )


@prepared("each second while callers wait")
def valid_keys(reader: Database, key_ids: Collection[str], now: str) -> set[str]:
    """Return the keys among these that are neither revoked nor expired."""
    rows = reader.all(
        f"""SELECT id FROM api_key WHERE id IN ({placeholders(key_ids)}) AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > ?)""",
        (*key_ids, now),
    )
    return {row.id for row in rows}


@prepared("a row for each key in use")
def note_key_uses(tx: Database, uses: Sequence[tuple[str, str]]) -> None:
    """Store when each key was last used: pairs of a stamp and an id."""
    tx.many("UPDATE api_key SET last_used_at = ? WHERE id = ?", uses)


@prepared("each post of a key with a daily limit")
def count_key_uses(store: Database, key_id: str, since: str) -> int:
    """Return the number of posts of this key after this instant. Each profile counts."""
    sql = "SELECT ifnull(sum(profiles), 0) FROM key_use WHERE key_id = ? AND accepted_at > ?"
    return int(store.value(sql, (key_id, since)))


@prepared("each post above a daily limit")
def find_key_use(store: Database, key_id: str, since: str, count: int) -> str:
    """Return when this key, after this instant, had created this number of posts. There are at least as many."""
    at: str = store.value(
        """SELECT accepted_at FROM (SELECT accepted_at, sum(profiles) OVER (ORDER BY accepted_at, post_id) AS total
            FROM key_use WHERE key_id = ? AND accepted_at > ?) WHERE total >= ? ORDER BY accepted_at LIMIT 1""",
        (key_id, since, count),
    )
    return at


# --- browsers --------------------------------------------------------------------------------------------------------


@prepared("each page")
def find_session(reader: Database, token_hash: bytes, instance_id: str, seen_after: str) -> Row | None:
    """Return id, created_at, last_seen_at, address and user_agent."""
    return reader.one(
        """SELECT id, created_at, last_seen_at, address, user_agent FROM session
            WHERE token_hash = ? AND instance_id = ? AND last_seen_at > ?""",
        (token_hash, instance_id, seen_after),
    )


def list_sessions(reader: Database, instance_id: str, seen_after: str) -> list[SessionRow]:
    """Return the sessions, last used first."""
    query = SessionRow.select().where((SessionRow.instance_id == instance_id) & (SessionRow.last_seen_at > seen_after))
    return reader.rows(query.order_by(SessionRow.last_seen_at.desc(), SessionRow.id))


def delete_session(tx: Database, session_id: str) -> str | None:
    """Delete the session. Return its user agent, or None."""
    found = tx.get(SessionRow, session_id)
    tx.delete(SessionRow, SessionRow.id == session_id)
    return None if found is None else found.user_agent


def replace_link(tx: Database, purpose: str, **columns: Any) -> None:
    """Insert a link. Delete earlier links of its purpose and expired links."""
    tx.delete(SignInLinkRow, (SignInLinkRow.purpose == purpose) | (SignInLinkRow.expires_at <= tx.stamp))
    tx.insert(SignInLinkRow, {"purpose": purpose, "created_at": tx.stamp, **columns})


def is_link_valid(reader: Database, token_hash: bytes, purpose: str, instance_id: str, now: str) -> bool:
    return reader.first(SignInLinkRow.select().where(_is_valid(token_hash, purpose, instance_id, now))) is not None


def use_link(tx: Database, token_hash: bytes, purpose: str, instance_id: str) -> bool:
    """Delete the link. Return whether it was valid."""
    return tx.delete(SignInLinkRow, _is_valid(token_hash, purpose, instance_id, tx.stamp)) > 0


def _is_valid(token_hash: bytes, purpose: str, instance_id: str, now: str) -> Expression:
    link = SignInLinkRow
    is_this = (link.token_hash == token_hash) & (link.purpose == purpose) & (link.instance_id == instance_id)
    return is_this & (link.expires_at > now)


# --- attempts to connect an account through a consent page -----------------------------------------------------------


def find_consent(reader: Database, provider: str, state_hash: bytes) -> ConsentRow | None:
    query = ConsentRow.select().where((ConsentRow.state_hash == state_hash) & (ConsentRow.provider == provider))
    return reader.first(query)


def waiting_consents(reader: Database, door: str, now: str) -> list[ConsentRow]:
    """Return the newest open attempt of each network that began at this entry point: id, provider, created_at."""
    newest = fn.MAX(ConsentRow.created_at).alias("created_at")
    is_open = ConsentRow.taken_at.is_null() & ConsentRow.finished_at.is_null() & (ConsentRow.expires_at > now)
    query = ConsentRow.select(ConsentRow.id, ConsentRow.provider, newest).where((ConsentRow.door == door) & is_open)
    return reader.rows(query.group_by(ConsentRow.provider).order_by(newest))


def fail_consent(tx: Database, consent_id: str, message: str, hint: str | None) -> None:
    """End the attempt, unless it has ended."""
    query = ConsentRow.update(finished_at=tx.stamp, error=message, hint=hint)
    tx.run(query.where((ConsentRow.id == consent_id) & ConsentRow.finished_at.is_null()))
