"""A copy of a former version, restored just now: the update notes in the new trail what there was no place for."""

import shutil
from pathlib import Path

import pytest

from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.ops.backup import restore
from tests.support.appliance import open_appliance
from tests.support.copies import copy_of_former_tables
from tests.support.hand_clock import HandClock


def test_a_restored_copy_of_a_former_version_is_told_once(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / "former"
    former.mkdir()
    for path in upgrade.MIGRATIONS.glob("000[1-7]_*.py"):
        shutil.copy(path, former)
    new = tmp_path / "new"
    new.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(upgrade, "MIGRATIONS", former)
        rt = open_appliance(tmp_path, clock)
        assert not audit_log.exists(rt.reader)
        copy = copy_of_former_tables(rt, tmp_path)
        rt.close()
        clock.forward(60)
        restore.restore(copy, Settings(data_dir=new / "data"), clock)
    for _ in range(2):
        rt = open_appliance(new, clock)
        entries = audit_log.read(rt.reader).entries
        rt.close()
    assert [(entry.at, audit_text.describe(entry)) for entry in entries] == [
        ("2026-10-12T09:01:00.000Z", "Restored a backup of 2026-10-12T09:00:00.000Z, paused.")
    ]
