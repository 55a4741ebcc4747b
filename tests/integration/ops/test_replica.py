"""A database alone, from a replica, becomes a paused appliance."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.backup_format import Seal
from socialpub.ops.backup import create, restore, verify
from socialpub.runtime import Runtime, build
from tests.support.appliance import accept, add_profile
from tests.support.hand_clock import HandClock


@pytest.fixture
def replica(rt: Runtime, stored_image: Path, tmp_path: Path, clock: HandClock) -> Path:
    """The database as of the worker's last report, two hours ago."""
    rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp))
    target = tmp_path / "replica.db"
    create.copy_database(rt, target)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    clock.forward(7200)
    return target


@pytest.fixture
def elsewhere(rt: Runtime, tmp_path: Path) -> Settings:
    """Another machine with secret.key in place."""
    settings = Settings(data_dir=tmp_path / "new")
    settings.data_dir.mkdir()
    settings.secret_key_file.write_bytes(rt.settings.secret_key_file.read_bytes())
    return settings


def test_it_is_restored_beside_its_media_and_is_paused(rt, replica, stored_image, elsewhere, clock):
    reported_at = appliance_state.get(rt.db, appliance_state.HEARTBEAT)
    brought_back = elsewhere.media_dir / stored_image.parent.name / stored_image.name
    brought_back.parent.mkdir(parents=True)
    brought_back.write_bytes(stored_image.read_bytes())
    told = restore.restore(replica, elsewhere, clock, unsealed=True).summary
    assert (told.posts, told.media_files, told.media_missing) == (1, 1, 0)
    with closing(build(elsewhere, clock=clock)) as other:
        assert appliance_state.paused_at(other.db) == other.stamp()
        assert appliance_state.restored_from(other.db) == reported_at, "what came later may have been sent"
        assert other.instance_id != rt.instance_id
        assert brought_back.is_file()


def test_media_that_were_not_brought_back_are_reported(replica, elsewhere, clock):
    told = restore.restore(replica, elsewhere, clock, unsealed=True).summary
    assert (told.media_files, told.media_missing) == (0, 1)
    assert elsewhere.media_dir.is_dir()


def test_it_has_no_seal_and_says_so(rt, replica, elsewhere, clock):
    with pytest.raises(verify.InvalidBackup, match="the file is only a database") as refused:
        restore.restore(replica, elsewhere, clock)
    assert "--unsealed" in (refused.value.hint or "")
    found = verify.verify_backup(replica, rt.secrets, unsealed=True)
    assert (found.seal, found.posts) == (Seal.NONE, 1)


def test_one_that_is_in_use_is_no_backup(rt, elsewhere, clock):
    accept(rt, add_profile(rt))
    with pytest.raises(OperatorError, match="is not a backup: its journal"):
        restore.restore(rt.settings.database_file, elsewhere, clock, unsealed=True)


def test_another_programs_database_is_refused(tmp_path, elsewhere, clock):
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE photo (id)")
    with pytest.raises(OperatorError, match="cannot be read: no such table"):
        restore.restore(foreign, elsewhere, clock, unsealed=True)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(OperatorError, match="cannot be read"):
        restore.restore(damaged, elsewhere, clock, unsealed=True)


def test_one_from_a_clock_that_was_ahead_is_of_now_at_the_latest(rt, replica, elsewhere, clock):
    clock.jump(-86400)
    restore.restore(replica, elsewhere, clock, unsealed=True)
    with closing(build(elsewhere, clock=clock)) as other:
        assert appliance_state.restored_from(other.db) == other.stamp()
