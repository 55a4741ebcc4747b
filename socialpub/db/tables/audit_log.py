"""The trail: what owners and commands did, newest first. Facts are kept, and `ops/trail_sentences.py` puts them into
words.

Whoever changes something notes it in the same transaction, in one line:

    trail.record(tx, TrailAction.KEY_CREATED, key_id, name, scope=scope)

Who did it stands on the transaction (`Tx.actor`), which has it from the door. A door that does something of its own,
such as signing somebody in, records it in its write in the same way:

    with acting(DASHBOARD):
        await rt.write_soon(sessions.begin, ...)    # which calls trail.record(tx, TrailAction.SIGNED_IN, id, browser)

Nothing secret goes into a label or a detail: no key, no token, no password, no set-up link.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from socialpub.db.connection import BATCH_ROWS, Reader, Row, Tx, Value, placeholders

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
    """An `TrailAction`, or one of a newer version."""
    subject_id: str | None
    label: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditPage:
    entries: list[AuditEntry]
    total: int


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
    The subjects beyond them have one entry together, without a subject."""
    if is_recorded(tx, action, subject_id, since):
        return
    entries = tx.all(f"{_SINCE} AND subject_id <> '' LIMIT ?", (action, since, max_entries))
    if len(entries) < max_entries:
        record(tx, action, subject_id, label, by=by, **detail)
    elif not is_recorded(tx, action, "", since):
        record(tx, action, "", by=by)


def is_recorded(store: Reader, action: AuditAction, subject_id: str, since: str) -> bool:
    """Return whether this was done with the subject after that instant."""
    return store.one(f"{_SINCE} AND subject_id = ? LIMIT 1", (action, since, subject_id)) is not None


_SINCE = "SELECT 1 FROM trail WHERE action = ? AND at > ?"


def oldest(reader: Reader) -> str | None:
    """When the first entry was made."""
    at: str | None = reader.value("SELECT at FROM trail ORDER BY id LIMIT 1")
    return at


def forget_oldest(tx: Tx, before: str) -> int:
    """Remove the oldest entries as far as they are that old; how many, a few hundred at most."""
    rows = tx.all("SELECT id, at FROM trail ORDER BY id LIMIT ?", (BATCH_ROWS,))
    last = next((row.id for row in reversed(rows) if row.at <= before), None)
    return 0 if last is None else tx.execute("DELETE FROM trail WHERE id <= ?", (last,)).rowcount


def exists(store: Reader) -> bool:
    """Whether this database has a trail: one that no process of this version has opened yet may have none."""
    return store.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'trail'") is not None


def read(reader: Reader, kinds: Collection[str] = (), page: int = 0, per_page: int = 50) -> AuditPage:
    """A page, newest first, and how many entries there are in all; with `kinds` only of these."""
    where, params = "1", list[Value]()
    if kinds:
        actions = [action.value for action in AuditAction if action.kind in kinds]
        where, params = f"action IN ({placeholders(actions)})", [*actions]
    rows = reader.all(
        f"""SELECT id, at, actor, action, subject_id, subject_label, detail FROM trail WHERE {where}
            ORDER BY id DESC LIMIT ? OFFSET ?""",
        [*params, per_page, page * per_page],
    )
    total = int(reader.value(f"SELECT count(*) FROM trail WHERE {where}", params))
    return AuditPage([_entry(row) for row in rows], total)


def of_subject(reader: Reader, subject_id: str) -> list[AuditEntry]:
    """What was done to it, oldest first."""
    rows = reader.all(
        """SELECT id, at, actor, action, subject_id, subject_label, detail FROM trail WHERE subject_id = ?
            ORDER BY id""",
        (subject_id,),
    )
    return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(row[0], row[1], row[2], row[3], row[4], row[5], json.loads(row[6]))
