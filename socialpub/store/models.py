"""The states, each with what it means and how it is left, and the shapes of the rows that the domain works with."""

import json
import sqlite3
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class PostStatus(StrEnum):
    PENDING = "pending"
    """Accepted and started, or to be started at once. Left when the last delivery settles."""

    SCHEDULED = "scheduled"
    """Waits for its time. Left when the first delivery starts, or by cancel."""

    SETTLED = "settled"
    """Every delivery has an outcome. Final."""

    CANCELED = "canceled"
    """Stopped before any delivery ran. Final."""


class State(StrEnum):
    """A delivery's state inside; `outside` is what the API calls it."""

    QUEUED = "queued"
    """Waits for `run_at`: its time, a retry, a network's wait. Left by a claim or a cancel."""

    RUNNING = "running"
    """Its owner holds a conversation. Left by settling, or by another owner once this one's lock is free."""

    PUBLISHED = "published"
    """Exactly one post is up. Final; `url` and `providerPostId` may still be filled in."""

    FAILED = "failed"
    """Certain that nothing was posted. Final."""

    UNCONFIRMED = "unconfirmed"
    """It may be public and the network cannot tell. Final; shown as failed, with a message that says so."""

    CANCELED = "canceled"
    """Stopped with its post before it ran. Final."""

    @property
    def outside(self) -> str:
        match self:
            case State.QUEUED | State.RUNNING:
                return "pending"
            case State.UNCONFIRMED:
                return "failed"
            case _:
                return self.value

    @property
    def final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


class ProfileStatus(StrEnum):
    ACTIVE = "active"
    """Usable."""

    REAUTH_REQUIRED = "reauthRequired"
    """The owner must connect the account again. Left when that happens, or by an import of tokens for it."""

    DISCONNECTED = "disconnected"
    """No longer linked. Final."""


class ArtifactStatus(StrEnum):
    RESERVED = "reserved"
    """An id and a place for bytes. Left by `complete`."""

    VERIFIED = "verified"
    """Examined and usable in posts. Final."""

    REJECTED = "rejected"
    """Examined and refused; its bytes are gone. Final."""


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

    COLUMNS: ClassVar[str] = (
        "id, provider, account_id, name, status, username, scopes, facts, options, access_token, refresh_token, "
        "access_expires_at, refresh_expires_at, reason"
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
        )
