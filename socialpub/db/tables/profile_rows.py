"""Statements about the table `profile`. The API's view of it is in `queries/api_json.py`."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from socialpub.db.connection import Reader, Row, Tx, Value
from socialpub.db.states import ProfileStatus


@dataclass(slots=True)
class Profile:
    id: str
    provider: str
    account_id: str
    name: str
    status: ProfileStatus
    username: str | None
    scopes: frozenset[str]
    facts: dict[str, Any]
    options: dict[str, Any]
    access_token: bytes | None = field(repr=False)
    refresh_token: bytes | None = field(repr=False)
    access_expires_at: str | None = None
    refresh_expires_at: str | None = None
    reason: str | None = None
    account_name: str | None = None
    """As the network names the account; None: not known. The label follows it until the owner changes the label."""

    COLUMNS: ClassVar[str] = (
        "id, provider, account_id, name, status, username, scopes, facts, options, access_token, refresh_token, "
        "access_expires_at, refresh_expires_at, reason, account_name"
    )

    @classmethod
    def of(cls, row: sqlite3.Row) -> "Profile":
        return cls(
            row["id"],
            row["provider"],
            row["account_id"],
            row["name"],
            ProfileStatus(row["status"]),
            row["username"],
            frozenset(row["scopes"].split()),
            json.loads(row["facts"]),
            json.loads(row["options"]),
            row["access_token"],
            row["refresh_token"],
            row["access_expires_at"],
            row["refresh_expires_at"],
            row["reason"],
            row["account_name"],
        )


def find(store: Reader, profile_id: str) -> Profile | None:
    row = store.one(f"SELECT {Profile.COLUMNS} FROM profile WHERE id = ?", (profile_id,))
    return None if row is None else Profile.of(row)


def connected(store: Reader, provider: str, account_id: str) -> str | None:
    """The id of the profile of this account that is not disconnected; there is at most one."""
    row = store.one(
        "SELECT id FROM profile WHERE provider = ? AND account_id = ? AND status <> ?",
        (provider, account_id, ProfileStatus.DISCONNECTED),
    )
    return None if row is None else str(row[0])


def insert(tx: Tx, **columns: Value) -> None:
    tx.insert("profile", **columns)


def update(tx: Tx, profile_id: str, **columns: Value) -> None:
    tx.update("profile", profile_id, **columns)


def require_reauth(tx: Tx, profile_id: str, reason: str) -> None:
    """`active` becomes `reauthRequired`; other states stay."""
    tx.execute(
        "UPDATE profile SET status = ?, reason = ?, updated_at = ? WHERE id = ? AND status = ?",
        (ProfileStatus.REAUTH_REQUIRED, reason, tx.stamp, profile_id, ProfileStatus.ACTIVE),
    )


def lose_tokens(tx: Tx, reason: str) -> list[tuple[str, str]]:
    """No stored token can be read any more: the owner of each connected profile is asked for. Their names and
    networks."""
    gone = ProfileStatus.DISCONNECTED
    tx.execute("UPDATE profile SET refresh_token = NULL, access_token = NULL WHERE status = ?", (gone,))
    # An empty token is none, and the profile is not taken for a disconnected one.
    tx.execute(
        "UPDATE profile SET refresh_token = NULL, access_token = x'', status = ?, reason = ?, updated_at = ? "
        "WHERE status <> ?",
        (ProfileStatus.REAUTH_REQUIRED, reason, tx.stamp, gone),
    )
    named = tx.all("SELECT name, provider FROM profile WHERE status <> ? ORDER BY created_at, id", (gone,))
    return [(row.name, row.provider) for row in named]


def count_post(tx: Tx, profile_id: str) -> None:
    """One more post was published."""
    tx.execute("UPDATE profile SET posts_count = posts_count + 1 WHERE id = ?", (profile_id,))


def list_all(reader: Reader) -> list[Row]:
    """Every profile, oldest first: what the API shows of it, its stored options (JSON), why it needs its owner, and
    whether its access can be renewed without one (`renewable`)."""
    return reader.all(
        "SELECT id, name, provider, status, username, picture_url, expires_at, posts_count, created_at, updated_at, "
        "options, reason, refresh_token IS NOT NULL AS renewable FROM profile ORDER BY created_at, id"
    )


def of_owner(reader: Reader, profile_id: str) -> Row | None:
    """One profile as its owner sees it: what `list_all` has of it, and scopes, access_expires_at, refresh_expires_at,
    renewed_at, disconnected_at, account_id, facts (JSON), account_read_at."""
    return reader.one(
        """SELECT id, name, provider, status, username, picture_url, expires_at, posts_count, created_at, updated_at,
                options, reason, refresh_token IS NOT NULL AS renewable, scopes, access_expires_at, refresh_expires_at,
                coalesce(renewed_at, created_at) AS renewed_at, disconnected_at, account_id,
                facts, account_read_at
            FROM profile WHERE id = ?""",
        (profile_id,),
    )


def not_warned_since(reader: Reader, instant: str) -> list[Row]:
    """Profiles that are not disconnected and whose owner was not warned since: id, name, provider, status, reason,
    expires_at, renewable."""
    return reader.all(
        """SELECT id, name, provider, status, reason, expires_at, refresh_token IS NOT NULL AS renewable FROM profile
            WHERE status <> ? AND (warned_at IS NULL OR warned_at <= ?) ORDER BY created_at, id""",
        (ProfileStatus.DISCONNECTED, instant),
    )


def renewable(reader: Reader) -> list[Row]:
    """Active profiles with a refresh token, the longest unrenewed first: id, provider, renewed_at, access_expires_at,
    refresh_expires_at."""
    return reader.all(
        """SELECT id, provider, coalesce(renewed_at, created_at) AS renewed_at, access_expires_at, refresh_expires_at
            FROM profile WHERE status = ? AND refresh_token IS NOT NULL ORDER BY 3, id""",
        (ProfileStatus.ACTIVE,),
    )


def account_data_due(reader: Reader, before: str) -> list[Row]:
    """Active profiles whose account data was not fetched since, the longest ago first: id, provider."""
    return reader.all(
        """SELECT id, provider FROM profile WHERE status = ? AND ifnull(account_read_at, '') <= ?
            ORDER BY ifnull(account_read_at, ''), id""",
        (ProfileStatus.ACTIVE, before),
    )


def expect_account_data(tx: Tx, profile_id: str) -> None:
    """What is known of the account may be wrong: it is fetched again soon."""
    tx.update("profile", profile_id, account_read_at=None)


def with_avatar(reader: Reader) -> list[Row]:
    """Profiles that are not disconnected and whose network names a picture: id, provider, picture_url."""
    return reader.all(
        """SELECT id, provider, picture_url FROM profile WHERE status <> ? AND picture_url IS NOT NULL
            ORDER BY created_at, id""",
        (ProfileStatus.DISCONNECTED,),
    )


def disconnected_with_tokens(reader: Reader) -> list[Row]:
    """id and disconnected_at of those whose tokens are still here."""
    return reader.all(
        """SELECT id, disconnected_at FROM profile
            WHERE status = ? AND (access_token IS NOT NULL OR refresh_token IS NOT NULL)""",
        (ProfileStatus.DISCONNECTED,),
    )


def count_ending_by_provider(reader: Reader, before: str) -> list[tuple[str, int]]:
    """How many active ones of each network can publish only until then."""
    rows = reader.all(
        "SELECT provider, count(*) FROM profile WHERE status = 'active' AND expires_at < ? GROUP BY provider", (before,)
    )
    return [(row[0], row[1]) for row in rows]


def count_by_provider_and_status(reader: Reader) -> list[tuple[str, str, int]]:
    rows = reader.all("SELECT provider, status, count(*) FROM profile GROUP BY provider, status ORDER BY 1, 2")
    return [(row[0], row[1], row[2]) for row in rows]


# --- what the network calls the values that an account can choose ----------------------------------------------------


def choice_labels(reader: Reader, profile_id: str, key: str) -> dict[str, str]:
    """Return the label of each known value of this option."""
    rows = reader.all("SELECT value, label FROM choice_label WHERE profile_id = ? AND key = ?", (profile_id, key))
    return {row.value: row.label for row in rows}


def put_choice_labels(tx: Tx, profile_id: str, key: str, labels: Mapping[str, str]) -> None:
    """Note these labels. A value that is no longer offered keeps its last label: older posts name it."""
    tx.many(
        """INSERT INTO choice_label (profile_id, key, value, label) VALUES (?, ?, ?, ?)
            ON CONFLICT (profile_id, key, value) DO UPDATE SET label = excluded.label""",
        [(profile_id, key, value, label) for value, label in labels.items()],
    )
