"""Statements about access: the tables `api_key`, `session`, `sign_in_link` and `consent`."""

from collections.abc import Collection
from typing import Any

from peewee import Expression, fn

from socialpub.db.connection import Database
from socialpub.db.models import ApiKeyRow, ConsentRow, KeyUseRow, SessionRow, SignInLinkRow

# --- API keys --------------------------------------------------------------------------------------------------------


def list_keys(db: Database) -> list[ApiKeyRow]:
    return list(ApiKeyRow.select().order_by(ApiKeyRow.created_at, ApiKeyRow.id).execute(db))


def unrevoked_keys(db: Database) -> list[ApiKeyRow]:
    """Return the keys that are not revoked, oldest first."""
    key = ApiKeyRow
    return list(key.select().where(key.revoked_at.is_null()).order_by(key.created_at, key.id).execute(db))


def revocations(db: Database) -> dict[str, str | None]:
    """Return the time of revocation of each key, by id. None: the key is not revoked."""
    return dict(ApiKeyRow.select(ApiKeyRow.id, ApiKeyRow.revoked_at).tuples().execute(db))


def valid_keys(db: Database, key_ids: Collection[str], now: str) -> set[str]:
    """Return the keys among these that are neither revoked nor expired."""
    key = ApiKeyRow
    is_valid = key.revoked_at.is_null() & (key.expires_at.is_null() | (key.expires_at > now))
    query = key.select(key.id).where(key.id.in_(list(key_ids)), is_valid)
    return {key_id for (key_id,) in query.tuples().execute(db)}


def count_key_uses(db: Database, key_id: str, since: str) -> int:
    """Return the number of posts of this key after this instant. Each profile counts."""
    use = KeyUseRow
    uses = use.select(fn.SUM(use.profiles)).where((use.key_id == key_id) & (use.accepted_at > since))
    return int(uses.scalar(db) or 0)


def find_key_use(db: Database, key_id: str, since: str, count: int) -> str:
    """Return when this key, after this instant, had created this number of posts. There are at least as many."""
    use = KeyUseRow
    uses = use.select(use.accepted_at, use.profiles).where((use.key_id == key_id) & (use.accepted_at > since))
    for accepted_at, profiles in uses.order_by(use.accepted_at, use.post_id).tuples().execute(db):
        count -= profiles
        if count <= 0:
            return str(accepted_at)
    raise AssertionError("the key has fewer posts")


# --- browsers --------------------------------------------------------------------------------------------------------


def find_session(db: Database, token_hash: bytes, instance_id: str, seen_after: str) -> SessionRow | None:
    is_this = (SessionRow.token_hash == token_hash) & (SessionRow.instance_id == instance_id)
    session: SessionRow | None = SessionRow.select().where(is_this & (SessionRow.last_seen_at > seen_after)).first(db)
    return session


def list_sessions(db: Database, instance_id: str, seen_after: str) -> list[SessionRow]:
    """Return the sessions, last used first."""
    query = SessionRow.select().where((SessionRow.instance_id == instance_id) & (SessionRow.last_seen_at > seen_after))
    return list(query.order_by(SessionRow.last_seen_at.desc(), SessionRow.id).execute(db))


def delete_session(tx: Database, session_id: str) -> str | None:
    """Delete the session. Return its user agent, or None."""
    session = tx.get(SessionRow, session_id)
    tx.delete(SessionRow, SessionRow.id == session_id)
    return None if session is None else session.user_agent


def replace_link(tx: Database, purpose: str, **columns: Any) -> None:
    """Insert a link. Delete earlier links of its purpose and expired links."""
    tx.delete(SignInLinkRow, (SignInLinkRow.purpose == purpose) | (SignInLinkRow.expires_at <= tx.stamp))
    tx.insert(SignInLinkRow, {"purpose": purpose, "created_at": tx.stamp, **columns})


def is_link_valid(db: Database, token_hash: bytes, purpose: str, instance_id: str, now: str) -> bool:
    return SignInLinkRow.select().where(_is_valid(token_hash, purpose, instance_id, now)).first(db) is not None


def use_link(tx: Database, token_hash: bytes, purpose: str, instance_id: str) -> bool:
    """Delete the link. Return whether it was valid."""
    return tx.delete(SignInLinkRow, _is_valid(token_hash, purpose, instance_id, tx.stamp)) > 0


def _is_valid(token_hash: bytes, purpose: str, instance_id: str, now: str) -> Expression:
    link = SignInLinkRow
    is_this = (link.token_hash == token_hash) & (link.purpose == purpose) & (link.instance_id == instance_id)
    return is_this & (link.expires_at > now)


# --- attempts to connect an account through a consent page -----------------------------------------------------------


def find_consent(db: Database, provider: str, state_hash: bytes) -> ConsentRow | None:
    query = ConsentRow.select().where((ConsentRow.state_hash == state_hash) & (ConsentRow.provider == provider))
    consent: ConsentRow | None = query.first(db)
    return consent


def waiting_consents(db: Database, door: str, now: str) -> list[ConsentRow]:
    """Return the newest open attempt of each network that began at this entry point: id, provider, created_at."""
    newest = fn.MAX(ConsentRow.created_at).alias("created_at")
    is_open = ConsentRow.taken_at.is_null() & ConsentRow.finished_at.is_null() & (ConsentRow.expires_at > now)
    query = ConsentRow.select(ConsentRow.id, ConsentRow.provider, newest).where((ConsentRow.door == door) & is_open)
    return list(query.group_by(ConsentRow.provider).order_by(newest).execute(db))


def fail_consent(tx: Database, consent_id: str, message: str, hint: str | None) -> None:
    """End the attempt, unless it has ended."""
    query = ConsentRow.update(finished_at=tx.stamp, error=message, hint=hint)
    query.where((ConsentRow.id == consent_id) & ConsentRow.finished_at.is_null()).execute(tx)
