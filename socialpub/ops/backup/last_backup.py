"""The record of the last backup and the last failure, which is the source of reminders."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from socialpub.accounts.remedies import Surface
from socialpub.core import commands, units
from socialpub.core.clock import parse
from socialpub.core.errors import cut
from socialpub.core.secrets.redaction import redact
from socialpub.db import appliance_state
from socialpub.db.backup_format import BackupSummary
from socialpub.db.connection import Database
from socialpub.db.tables import audit_log
from socialpub.db.tables.audit_log import AuditAction
from socialpub.runtime import Runtime

RETRY_AFTER = timedelta(hours=1)
"""The longest time until a failed scheduled backup is retried."""

MAX_AGE = timedelta(days=7)
"""The age of the last backup at which `doctor` and the dashboard remind the owner."""

_MAX_REASON_CHARACTERS = 1000


def describe_remedy(surface: Surface = Surface.SHELL, *, failed: bool = False) -> str:
    """Return how to make a backup. `failed`: the message about the last attempt contains the cause."""
    line = commands.line("backup", "FILE")
    how = "press “Download backup” under System" if surface is Surface.DASHBOARD else f"run `{line}`"
    if failed:
        return f"Fix the cause. To make a backup in the meantime, {how}."
    return f"To make a backup, {how}. Keep the file on another disk."


@dataclass(frozen=True, slots=True)
class ScheduledBackup:
    """The last backup in the folder of scheduled backups."""

    made_at: str
    folder: str
    size_bytes: int
    new_bytes: int
    """The bytes that are not shared with the data and the previous backup."""

    @property
    def sentence(self) -> str:
        size, new = (units.size(size_bytes).partition(" (")[0] for size_bytes in (self.size_bytes, self.new_bytes))
        return f"The last scheduled backup, from {self.made_at}, is in {self.folder}: {size}, of which {new} are new."


@dataclass(frozen=True, slots=True)
class LastBackup:
    made_at: str | None
    failed_at: str | None
    """The instant at which a later attempt failed."""
    failure: str | None = None
    """The cause of the failure, as sentences."""
    scheduled: ScheduledBackup | None = None

    def reminder(self, now: datetime) -> str | None:
        """Return why the owner should make a backup, or None."""
        why = f" {self.failure}" if self.failure else ""
        if self.made_at is None:
            if self.failed_at is None:
                return "This installation does not have a backup."
            return f"The backup planned for {self.failed_at} failed, and no other backup is known.{why}"
        if self.failed_at is not None:
            return f"The backup planned for {self.failed_at} failed. The last backup was made at {self.made_at}.{why}"
        age = now - parse(self.made_at)
        return None if age <= MAX_AGE else f"The last backup was made {age.days} days ago, at {self.made_at}."


def load(db: Database) -> LastBackup:
    scheduled = appliance_state.get(db, appliance_state.SCHEDULED_BACKUP)
    return LastBackup(
        appliance_state.get(db, appliance_state.BACKED_UP_AT),
        appliance_state.get(db, appliance_state.BACKUP_FAILED_AT),
        appliance_state.get(db, appliance_state.BACKUP_FAILURE),
        None if scheduled is None else ScheduledBackup(**json.loads(scheduled)),
    )


def next_backup_at(last: LastBackup, every: timedelta, now: datetime) -> datetime:
    """Return when the next scheduled backup is due, which may be in the past."""
    made_at = last.scheduled.made_at if last.scheduled else None
    if last.failed_at is not None and (made_at is None or last.failed_at > made_at):
        due = parse(last.failed_at) + min(every, RETRY_AFTER)
    elif made_at is None:
        due = now
    else:
        due = parse(made_at) + every
    return due if due - now <= every else now  # otherwise, the clock was set back


def record_backup(rt: Runtime, tx: Database, made: BackupSummary, scheduled: ScheduledBackup | None = None) -> None:
    appliance_state.put(tx, appliance_state.BACKED_UP_AT, made.copied_at)
    appliance_state.remove(tx, appliance_state.BACKUP_FAILED_AT)
    appliance_state.remove(tx, appliance_state.BACKUP_FAILURE)
    if scheduled is not None:
        appliance_state.put(tx, appliance_state.SCHEDULED_BACKUP, json.dumps(asdict(scheduled)))
    audit_log.record(
        tx, AuditAction.BACKUP_MADE, posts=made.posts, media_files=made.media_files, holds_secret=made.holds_secret
    )


def record_failure(rt: Runtime, tx: Database, reason: str) -> None:
    reason = cut(redact(reason), _MAX_REASON_CHARACTERS)
    appliance_state.put(tx, appliance_state.BACKUP_FAILED_AT, tx.stamp)
    appliance_state.put(tx, appliance_state.BACKUP_FAILURE, reason)
    audit_log.record(tx, AuditAction.BACKUP_FAILED, reason=reason)
