"""Bluesky's accounts, records and blobs."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

POST = "app.bsky.feed.post"
THREADGATE = "app.bsky.feed.threadgate"
POSTGATE = "app.bsky.feed.postgate"
PROFILE = "app.bsky.actor.profile"

APP_PASSWORD_SCOPE, MAIN_SCOPE = "com.atproto.appPass", "com.atproto.access"

Status = Literal["active", "deactivated", "takendown", "deleted"]

TID_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
TID = re.compile(rf"[234567abcdefghij][{TID_DIGITS}]{{12}}")
HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass
class BlueskyAccount:
    did: str
    username: str
    """The handle of the day."""
    name: str
    app_passwords: dict[str, str]
    """By name. Each can be revoked alone."""
    password: str
    """The main password, which signs in with all permissions."""
    status: Status = "active"
    picture: str = ""
    email_confirmed: bool = True

    @property
    def id(self) -> str:
        return self.did

    @property
    def app_password(self) -> str:
        """The first app password that is not revoked."""
        return next(iter(self.app_passwords.values()))


@dataclass(slots=True)
class BlueskyBlob:
    cid: str
    did: str
    mime_type: str
    size: int
    uploaded_at: datetime

    @property
    def shown(self) -> dict[str, Any]:
        """The object that a record contains."""
        return {"$type": "blob", "ref": {"$link": self.cid}, "mimeType": self.mime_type, "size": self.size}


@dataclass(slots=True)
class BlueskyRecord:
    did: str
    collection: str
    rkey: str
    value: dict[str, Any]
    cid: str
    created_at: datetime
    """By the world's clock: when the server stored it."""
    received_monotonic: float = 0.0
    """When the call's first byte arrived, by the machine's clock."""
    taken_down: bool = False

    @property
    def uri(self) -> str:
        return f"at://{self.did}/{self.collection}/{self.rkey}"

    @property
    def sorted_at(self) -> datetime:
        """Where readers find it: at its own date, but never after the server stored it."""
        try:
            dated = datetime.fromisoformat(self.value["createdAt"])
        except (KeyError, TypeError, ValueError):
            return self.created_at
        return min(dated, self.created_at) if dated.tzinfo else self.created_at

    @property
    def text(self) -> str:
        return str(self.value.get("text", ""))


def blobs_in(value: Any) -> list[dict[str, Any]]:
    """Return all blob objects in a record."""
    if isinstance(value, list):
        return [blob for item in value for blob in blobs_in(item)]
    if not isinstance(value, dict):
        return []
    if value.get("$type") == "blob":
        return [value]
    return [blob for item in value.values() for blob in blobs_in(item)]
