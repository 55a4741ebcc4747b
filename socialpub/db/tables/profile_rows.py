"""Statements about the table `profile`."""

from collections.abc import Mapping
from typing import Any

from peewee import fn

from socialpub.db.connection import Database
from socialpub.db.models import ChoiceLabelRow, ProfileRow
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import delivery_rows


def get(db: Database, profile_id: str) -> ProfileRow:
    """Return a profile that exists: a profile is never deleted."""
    profile = find(db, profile_id)
    assert profile is not None
    return profile


def find(db: Database, profile_id: str) -> ProfileRow | None:
    return db.get(ProfileRow, profile_id)


def connected(db: Database, provider: str, account_id: str) -> str | None:
    """Return the connected profile of this account. There is at most one."""
    of_account = (ProfileRow.provider == provider) & (ProfileRow.account_id == account_id)
    profile_id: str | None = ProfileRow.select(ProfileRow.id).where(of_account, _IS_CONNECTED).scalar(db)
    return profile_id


_IS_CONNECTED = ProfileRow.status != ProfileStatus.DISCONNECTED


def update(tx: Database, profile_id: str, **columns: Any) -> None:
    """Set columns. Open deliveries follow a new name."""
    tx.update(ProfileRow, profile_id, **columns)
    if "name" in columns:
        delivery_rows.rename_open(tx, profile_id, str(columns["name"]))


def require_reauth(tx: Database, profile_id: str, reason: str) -> None:
    """Change `active` to `reauthRequired`. Other states stay."""
    change = ProfileRow.update(status=ProfileStatus.REAUTH_REQUIRED, reason=reason, updated_at=tx.stamp)
    change.where((ProfileRow.id == profile_id) & (ProfileRow.status == ProfileStatus.ACTIVE)).execute(tx)


def lose_tokens(tx: Database, reason: str) -> list[tuple[str, str]]:
    """Delete all tokens. Return the names and networks of the profiles that the owner must connect again."""
    ProfileRow.update(refresh_token=None, access_token=None).where(~_IS_CONNECTED).execute(tx)
    # A token of NULL would mean a disconnected profile.
    lost = {"refresh_token": None, "access_token": b"", "status": ProfileStatus.REAUTH_REQUIRED, "reason": reason}
    ProfileRow.update(**lost, updated_at=tx.stamp).where(_IS_CONNECTED).execute(tx)
    query = ProfileRow.select(ProfileRow.name, ProfileRow.provider).where(_IS_CONNECTED)
    return list(query.order_by(ProfileRow.created_at, ProfileRow.id).tuples().execute(tx))


def count_post(tx: Database, profile_id: str) -> None:
    """Count an additional published post."""
    ProfileRow.update(posts_count=ProfileRow.posts_count + 1).where(ProfileRow.id == profile_id).execute(tx)


def list_all(db: Database) -> list[ProfileRow]:
    """Return all profiles, oldest first."""
    return list(ProfileRow.select().order_by(ProfileRow.created_at, ProfileRow.id).execute(db))


def renewable(db: Database) -> list[ProfileRow]:
    """Return the active profiles with a refresh token, in the order of their last renewal."""
    query = ProfileRow.select().where((ProfileRow.status == ProfileStatus.ACTIVE) & ~ProfileRow.refresh_token.is_null())
    return sorted(query.execute(db), key=lambda row: (row.issued_at, row.id))


def account_data_due(db: Database, before: str) -> list[ProfileRow]:
    """Return the active profiles without new account data since then, in the order of their last read."""
    fetched_at = fn.IFNULL(ProfileRow.account_read_at, "")
    query = ProfileRow.select().where((ProfileRow.status == ProfileStatus.ACTIVE) & (fetched_at <= before))
    return list(query.order_by(fetched_at, ProfileRow.id).execute(db))


def with_avatar(db: Database) -> list[ProfileRow]:
    """Return the connected profiles with an avatar URL."""
    return [row for row in list_all(db) if row.is_connected and row.picture_url is not None]


def disconnected_with_tokens(db: Database) -> list[ProfileRow]:
    has_token = ~ProfileRow.access_token.is_null() | ~ProfileRow.refresh_token.is_null()
    return list(ProfileRow.select().where(~_IS_CONNECTED, has_token).execute(db))


def list_providers(db: Database) -> set[str]:
    """Return the networks of all profiles, including disconnected ones."""
    return {provider for (provider,) in ProfileRow.select(ProfileRow.provider).distinct().tuples().execute(db)}


def count_ending_by_provider(db: Database, before: str) -> list[tuple[str, int]]:
    """Return the number of active profiles, by network, that can publish only until this instant."""
    ends = (ProfileRow.status == ProfileStatus.ACTIVE) & (ProfileRow.expires_at < before)
    query = ProfileRow.select(ProfileRow.provider, fn.COUNT()).where(ends).group_by(ProfileRow.provider)
    return list(query.tuples().execute(db))


def count_by_provider_and_status(db: Database) -> list[tuple[str, str, int]]:
    of_these = (ProfileRow.provider, ProfileRow.status)
    query = ProfileRow.select(*of_these, fn.COUNT()).group_by(*of_these).order_by(*of_these)
    return list(query.tuples().execute(db))


# --- the network's labels for values of options ----------------------------------------------------------------------


def choice_labels(db: Database, profile_id: str, key: str) -> dict[str, str]:
    """Return the label of each known value of this option."""
    label = ChoiceLabelRow
    query = label.select(label.value, label.label).where(label.profile_id == profile_id, label.key == key)
    return dict(query.tuples().execute(db))


def put_choice_labels(tx: Database, profile_id: str, key: str, labels: Mapping[str, str]) -> None:
    """Store these labels. Earlier values keep their label, because older posts use them."""
    for value, label in labels.items():
        row = ChoiceLabelRow.insert(profile_id=profile_id, key=key, value=value, label=label)
        row.on_conflict_replace().execute(tx)
