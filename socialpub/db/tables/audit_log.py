"""The audit log of changes by owners and commands. It stores facts; `ops/audit_text.py` has the sentences.

Each change records its entry in the same transaction:

    audit_log.record(tx, AuditAction.KEY_CREATED, key_id, name, scope=scope)

The transaction has the actor (`Database.actor`) from the entry point. Labels and details contain no secret.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from peewee import ModelSelect, fn

from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.models import TrailRow

MAX_LABEL = 80


class AuditAction(StrEnum):
    """An action. The word before the point is the kind of the subject, except for `session`."""

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
    BACKUP_MADE = "backup.made"
    BACKUP_FAILED = "backup.failed"
    SECRET_ROTATED = "secret.rotated"  # noqa: S105
    SECRET_RENEWED = "secret.renewed"  # noqa: S105  an action, no secret
    NOTIFY_ADDED = "notify.added"
    NOTIFY_REMOVED = "notify.removed"
    WEBHOOK_ADDED = "webhook.added"
    WEBHOOK_REMOVED = "webhook.removed"
    PASSWORD_SET = "password.set"  # noqa: S105
    SIGNED_IN = "session.signed_in"
    SIGN_IN_FAILED = "session.sign_in_failed"
    SIGN_INS_REFUSED = "session.sign_ins_refused"
    SIGNED_OUT = "session.signed_out"
    SESSION_ENDED = "session.ended"
    POST_CREATED = "post.created"
    POST_EDITED = "post.edited"
    POST_APPROVED = "post.approved"
    POST_CANCELED = "post.canceled"
    POST_STOPPED = "post.stopped"
    POST_RETRIED = "post.retried"

    @property
    def kind(self) -> str:
        """`key`, `profile`, `publishing`, `copy`, `secret`, `notify`, `webhook`, `password`, `session`, `post`."""
        return self.value.partition(".")[0]


KINDS = tuple(dict.fromkeys(action.kind for action in AuditAction))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    id: int
    at: str
    actor: str
    action: str
    """An `AuditAction`, or an action of a newer version."""
    subject_id: str | None
    label: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditPage:
    entries: list[AuditEntry]
    total: int


def record(
    tx: Database,
    action: AuditAction,
    subject_id: str | None = None,
    label: str | None = None,
    /,
    *,
    by: str | None = None,
    **detail: Any,
) -> None:
    """Record an action of `tx.actor`, or of `by`. `label` is the current name of the subject.

    Details are JSON values. None is left out.
    """
    if label is not None and len(label) > MAX_LABEL:
        label = f"{label[:MAX_LABEL]}…"
    facts = {name: value for name, value in detail.items() if value is not None}
    entry = {"at": tx.stamp, "actor": by or tx.actor, "action": action, "subject_kind": action.kind}
    tx.insert(TrailRow, {**entry, "subject_id": subject_id, "subject_label": label, "detail": facts})


def record_once(
    tx: Database,
    action: AuditAction,
    subject_id: str,
    label: str,
    since: str,
    max_entries: int,
    *,
    by: str,
    **detail: Any,
) -> None:
    """Record an action that strangers can repeat: once for each subject since then, and at most `max_entries` times.

    All further subjects share one entry without a subject.
    """
    if is_recorded(tx, action, subject_id, since):
        return
    entries = list(_done_since(action, since).where(TrailRow.subject_id != "").limit(max_entries).execute(tx))
    if len(entries) < max_entries:
        record(tx, action, subject_id, label, by=by, **detail)
    elif not is_recorded(tx, action, "", since):
        record(tx, action, "", by=by)


def is_recorded(db: Database, action: AuditAction, subject_id: str, since: str) -> bool:
    """Return whether the subject has an entry of this action after this instant."""
    return _done_since(action, since).where(TrailRow.subject_id == subject_id).first(db) is not None


def _done_since(action: AuditAction, since: str) -> "ModelSelect[TrailRow]":
    return TrailRow.select(TrailRow.id).where((TrailRow.action == action) & (TrailRow.at > since))


def oldest_entry_at(db: Database) -> str | None:
    at: str | None = TrailRow.select(TrailRow.at).order_by(TrailRow.id).limit(1).scalar(db)
    return at


def forget_oldest(tx: Database, before: str) -> int:
    """Delete the oldest entries up to this instant, at most `BATCH_ROWS`. Return their number."""
    rows = list(TrailRow.select(TrailRow.id, TrailRow.at).order_by(TrailRow.id).limit(BATCH_ROWS).execute(tx))
    last = next((row.id for row in reversed(rows) if row.at <= before), None)
    return 0 if last is None else tx.delete(TrailRow, TrailRow.id <= last)


def load_page(db: Database, kinds: Collection[str] = (), page: int = 0, per_page: int = 50) -> AuditPage:
    """Return a page of these kinds or of all kinds, newest first, and the total."""
    query = TrailRow.select()
    if kinds:
        query = query.where(TrailRow.action.in_([action.value for action in AuditAction if action.kind in kinds]))
    total = int(query.select(fn.COUNT()).scalar(db))
    return AuditPage(_entries(db, query.order_by(TrailRow.id.desc()).paginate(page + 1, per_page)), total)


def list_of_subject(db: Database, subject_id: str) -> list[AuditEntry]:
    """Return the entries about this subject, oldest first."""
    return _entries(db, TrailRow.select().where(TrailRow.subject_id == subject_id).order_by(TrailRow.id))


def _entries(db: Database, query: "ModelSelect[TrailRow]") -> list[AuditEntry]:
    entry = TrailRow
    columns = (entry.id, entry.at, entry.actor, entry.action, entry.subject_id, entry.subject_label, entry.detail)
    return [AuditEntry(*row) for row in query.select(*columns).tuples().execute(db)]
