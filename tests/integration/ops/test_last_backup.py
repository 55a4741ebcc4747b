"""How old the last backup is: an owner is reminded before it is needed, and a failed one does not count."""

import pytest

from socialpub.core.errors import OperatorError
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.ops.backup import create, last_backup
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding
from socialpub.runtime import Runtime

DAY = 86400


def told(rt: Runtime) -> Finding:
    """Return the finding about backups."""
    (finding,) = [finding for finding in checks.check(rt) if finding.subject == "backup"]
    return finding


def test_the_owner_is_reminded_of_the_first_backup_and_of_one_after_a_week(rt, clock, tmp_path):
    assert told(rt).level == "note"
    assert told(rt).message == "This installation does not have a backup."
    assert "socialpub backup" in str(told(rt).remedy)
    create.write_backup(rt, tmp_path / "first")
    assert (told(rt).level, told(rt).message) == ("ok", "The last backup was made at 2026-10-12T09:00:00.000Z.")
    clock.forward(7 * DAY)
    assert told(rt).level == "ok"
    clock.forward(DAY)
    assert (told(rt).level, told(rt).message) == (
        "note",
        "The last backup was made 8 days ago, at 2026-10-12T09:00:00.000Z.",
    )
    create.write_backup(rt, tmp_path / "second")
    assert told(rt).level == "ok"


def test_a_backup_that_failed_is_none(rt, clock, tmp_path):
    missing = tmp_path / "missing" / "copy"
    with pytest.raises(OperatorError):
        create.write_backup(rt, missing)
    why = f"The folder {missing.parent} does not exist."
    assert last_backup.load(rt.db) == last_backup.LastBackup(None, "2026-10-12T09:00:00.000Z", why)
    assert told(rt).message == (
        f"The backup planned for 2026-10-12T09:00:00.000Z failed, and no other backup is known. {why}"
    )
    assert (told(rt).level, str(told(rt).remedy).partition(".")[0]) == ("problem", "Fix the cause")
    create.write_backup(rt, tmp_path / "copy")
    assert told(rt).level == "ok"
    clock.forward(DAY)
    with pytest.raises(OperatorError):
        create.write_backup(rt, tmp_path / "copy")
    assert told(rt).message == (
        "The backup planned for 2026-10-13T09:00:00.000Z failed. The last backup was made at 2026-10-12T09:00:00.000Z. "
        f"{tmp_path / 'copy'} already exists."
    )
    assert create.write_backup(rt, tmp_path / "other").copied_at == last_backup.load(rt.db).made_at
    entries = [audit_text.describe(entry) for entry in reversed(audit_log.load_page(rt.db).entries)]
    assert entries == [
        f"Could not make a backup: {why}",
        "Made a backup: 0 posts and 0 media files.",
        f"Could not make a backup: {tmp_path / 'copy'} already exists.",
        "Made a backup: 0 posts and 0 media files.",
    ]
