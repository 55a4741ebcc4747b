"""The audit log: what owners and commands did. It keeps facts, and `ops/audit_text.py` puts them into words.

Each change records its entry in the same transaction:

    audit_log.record(tx, AuditAction.KEY_CREATED, key_id, name, scope=scope)

The transaction knows the actor (`Tx.actor`) from the entry point. Labels and details contain no secret: no key, no
token, no password, no set-up link.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from peewee import ModelSelect, fn

from socialpub.db.connection import BATCH_ROWS, Reader, Tx, prepared
from socialpub.db.models import TrailRow

MAX_LABEL = 80


class AuditAction(StrEnum):
    """What was done. What stands before the point is what it was done to, but for `session`."""

    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    KEY_KEPT = "key.kept"
    PROFILE_CONNECTED = "profile.connected"
    PROFILE_RECONNECTED = "profile.reconnected"
    PROFILE_IMPORTED = "profile.imported"
    PROFILE_RENAMED = "profile.renamed"
    PROFILE_DISCONNECTED = "profile.disconnected"
    PROFILE_OPTIONS_SET = "profile.options_set"
    PROFILE_REFRESHED = "profile.refreshed"
    PROFILE_BOARD_CREATED = "profile.board_created"
    PROFILE_SECTION_CREATED = "profile.section_created"
    PUBLISHING_PAUSED = "publishing.paused"
    PUBLISHING_RESUMED = "publishing.resumed"
    PUBLISHING_TRIED = "publishing.tried"
    PUBLISHING_RESTORED = "publishing.restored"
    COPY_MADE = "copy.made"
    COPY_FAILED = "copy.failed"
    SECRET_ROTATED = "secret.rotated"  # noqa: S105
    SECRET_RENEWED = "secret.renewed"  # noqa: S105  an action, no secret
    NOTIFY_ADDED = "notify.added"
    NOTIFY_REMOVED = "notify.removed"
    PASSWORD_SET = "password.set"  # noqa: S105
    SIGNED_IN = "session.signed_in"
    SIGN_IN_FAILED = "session.sign_in_failed"
    SIGN_INS_REFUSED = "session.sign_ins_refused"
    SIGNED_OUT = "session.signed_out"
    SESSION_ENDED = "session.ended"
    POST_CREATED = "post.created"
    POST_EDITED = "post.edited"
    POST_CANCELED = "post.canceled"
    POST_STOPPED = "post.stopped"
    POST_RETRIED = "post.retried"

    @property
    def kind(self) -> str:
        """`key`, `profile`, `publishing`, `copy`, `secret`, `notify`, `password`, `session`, `post`."""
        return self.value.partition(".")[0]


KINDS = tuple(dict.fromkeys(action.kind for action in AuditAction))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    id: int
    at: str
    actor: str
    action: str
    """An `AuditAction`, or one of a newer version."""
    subject_id: str | None
    label: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditPage:
    entries: list[AuditEntry]
    total: int


@prepared("each change")
def record(
    tx: Tx,
    action: AuditAction,
    subject_id: str | None = None,
    label: str | None = None,
    /,
    *,
    by: str | None = None,
    **detail: Any,
) -> None:
    """Note what `tx.actor` does, or `by`, in this transaction. `label` is what the subject is called now; details are
    what JSON can hold, and None is left out."""
    if label is not None and len(label) > MAX_LABEL:
        label = f"{label[:MAX_LABEL]}…"
    facts = {name: value for name, value in detail.items() if value is not None}
    tx.insert(
        "trail",
        at=tx.stamp,
        actor=by or tx.actor,
        action=action,
        subject_kind=action.kind,
        subject_id=subject_id,
        subject_label=label,
        detail=json.dumps(facts, ensure_ascii=False),
    )


def record_once(
    tx: Tx, action: AuditAction, subject_id: str, label: str, since: str, max_entries: int, *, by: str, **detail: Any
) -> None:
    """Note what strangers can repeat without limit: once for each subject since then, and `max_entries` times in all.

    The subjects beyond them have one entry together, without a subject.
    """
    if is_recorded(tx, action, subject_id, since):
        return
    entries = tx.rows(_done_since(action, since).where(TrailRow.subject_id != "").limit(max_entries))
    if len(entries) < max_entries:
        record(tx, action, subject_id, label, by=by, **detail)
    elif not is_recorded(tx, action, "", since):
        record(tx, action, "", by=by)


def is_recorded(reader: Reader, action: AuditAction, subject_id: str, since: str) -> bool:
    """Return whether this was done with the subject after that instant."""
    return reader.first(_done_since(action, since).where(TrailRow.subject_id == subject_id)) is not None


def _done_since(action: AuditAction, since: str) -> "ModelSelect[TrailRow]":
    return TrailRow.select(TrailRow.id).where((TrailRow.action == action) & (TrailRow.at > since))


def oldest_entry_at(reader: Reader) -> str | None:
    """Return when the first entry was made."""
    at: str | None = reader.scalar(TrailRow.select(TrailRow.at).order_by(TrailRow.id).limit(1))
    return at


def forget_oldest(tx: Tx, before: str) -> int:
    """Delete the oldest entries as far as they are that old. Return how many, at most `BATCH_ROWS`."""
    rows = tx.rows(TrailRow.select(TrailRow.id, TrailRow.at).order_by(TrailRow.id).limit(BATCH_ROWS))
    last = next((row.id for row in reversed(rows) if row.at <= before), None)
    return 0 if last is None else tx.delete(TrailRow, TrailRow.id <= last)


def exists(reader: Reader) -> bool:
    """Return whether this database has an audit log. One of a former version may have none."""
    return reader.has_table(TrailRow)


def load_page(reader: Reader, kinds: Collection[str] = (), page: int = 0, per_page: int = 50) -> AuditPage:
    """Return a page, newest first, and the number of entries; with `kinds` only of these."""
    query = TrailRow.select()
    if kinds:
        query = query.where(TrailRow.action.in_([action.value for action in AuditAction if action.kind in kinds]))
    total = int(reader.scalar(query.select(fn.COUNT())))
    return AuditPage(_entries(reader, query.order_by(TrailRow.id.desc()).paginate(page + 1, per_page)), total)


def list_of_subject(reader: Reader, subject_id: str) -> list[AuditEntry]:
    """Return what was done to it, oldest first."""
    return _entries(reader, TrailRow.select().where(TrailRow.subject_id == subject_id).order_by(TrailRow.id))


def _entries(reader: Reader, query: "ModelSelect[TrailRow]") -> list[AuditEntry]:
    entry = TrailRow
    columns = (entry.id, entry.at, entry.actor, entry.action, entry.subject_id, entry.subject_label, entry.detail)
    return [AuditEntry(*row) for row in reader.tuples(query.select(*columns))]
