"""An upgrade for its owner: announced by the doctor, reported afterwards, and undone on request."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from socialpub.accounts import api_keys, sign_in
from socialpub.accounts.sign_in import Purpose
from socialpub.db import upgrade, upgrade_backups
from socialpub.db.connection import open_file
from socialpub.db.tables import audit_log
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept, state_of
from tests.support.copies import resumed
from tests.support.drain import drain
from tests.support.select import select_value

NEXT = """
def up(_migrator, db):
    db.execute_sql("CREATE TABLE extra (n INTEGER)")
"""


@pytest.fixture
def profile(terminal: Terminal) -> str:
    return terminal.connect("ada")


@pytest.fixture
def next_version(terminal: Terminal, profile: str, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Install the next version; `undo` returns to the present version."""
    install_next(terminal, monkeypatch)
    return monkeypatch


def install_next(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations = terminal.folder / "migrations"
    shutil.copytree(upgrade.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "9001_next.py").write_text(NEXT)
    monkeypatch.setattr(upgrade, "MIGRATIONS", migrations)


@contextmanager
def former_version(next_version: pytest.MonkeyPatch) -> Iterator[None]:
    with next_version.context() as patch:
        patch.setattr(upgrade, "MIGRATIONS", Path(upgrade.__file__).parent / "migrations")
        yield


def copy_in(terminal: Terminal) -> Path:
    return upgrade_backups.list_all(database_of(terminal))[0].path


def database_of(terminal: Terminal) -> Path:
    return terminal.folder / "data" / "socialpub.db"


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_doctor_says_beforehand_what_will_be_done_and_does_nothing(
    terminal: Terminal, next_version: pytest.MonkeyPatch
) -> None:
    told = words(terminal("doctor").stdout)
    assert "The next start updates the database and keeps a copy of it in " in told
    assert "upgrades (9001_next)." in told
    assert not (terminal.folder / "data" / "upgrades").exists()


def test_a_command_names_what_of_the_former_version_still_runs(
    terminal: Terminal, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal.open("worker"):
        install_next(terminal, monkeypatch)
        assert "A process of the previous version is still running" in words(terminal("admin", "list-keys").stderr)


def test_afterwards_it_names_the_backup(terminal: Terminal, next_version: pytest.MonkeyPatch) -> None:
    assert terminal("admin", "list-keys").exit_code == 0
    assert f"is in {copy_in(terminal)}" in words(terminal("doctor").stdout)


def test_going_back_finds_what_went_out_meanwhile_and_sends_none_of_it_again(
    terminal: Terminal, profile: str, next_version: pytest.MonkeyPatch
) -> None:
    with former_version(next_version), terminal.open() as rt:
        due = accept(rt, profile, body="Due at the upgrade")
    with terminal.open() as rt:
        drain(rt, terminal.clock, within=60)
        since = accept(rt, profile, body="Accepted since")
        drain(rt, terminal.clock, within=60)
    assert [post.text for post in terminal.world.x.posts] == ["Due at the upgrade", "Accepted since"]
    before = copy_in(terminal)
    terminal.clock.forward(60)
    assert "Install the previous version" in terminal.success("restore", str(before)).stderr
    with open_file(database_of(terminal), "ro") as rows:
        assert "9001_next" not in upgrade.list_applied(rows)
    next_version.undo()  # the former version is installed again
    with terminal.open() as rt:
        assert select_value(rt.db, "SELECT count(*) FROM post WHERE id = ?", (since,)) == 0
        resumed(rt, terminal.clock)
        assert state_of(rt, due) == "published"
    assert len(terminal.world.x.posts) == 2, "it was found, and not sent again"
    aside = copy_in(terminal)
    assert aside.name.startswith("9001_next@"), "what was accepted since is not lost"
    assert before.exists()
    refused = terminal("restore", str(aside))
    assert "was made by a newer socialpub" in words(refused.stderr)


def test_going_back_and_forward_again_revives_no_revoked_key_no_password_and_no_session(
    terminal: Terminal, profile: str, next_version: pytest.MonkeyPatch
) -> None:
    with former_version(next_version):
        terminal("admin", "set-password", stdin="the first password\n")
        leaked, lasting = (terminal("admin", "create-key", name).stdout.strip() for name in ("leaked", "lasting"))
        session = signed_in(terminal)
        with terminal.open() as rt:
            link = rt.write(sign_in.create_link, Purpose.SIGN_IN)
    terminal("admin", "revoke-key", leaked)
    terminal("admin", "set-password", stdin="the second password\n")
    fresh = terminal("admin", "create-key", "fresh").stdout.strip()
    with_the_second = signed_in(terminal)

    back = terminal.success("restore", str(copy_in(terminal)))
    assert "API keys revoked since the backup stay revoked: leaked." in back.stderr
    assert "API keys created since the backup are gone: fresh." in back.stderr
    assert "password is unchanged. Every browser must sign in again." in back.stderr
    assert "came with the restored backup" not in back.stderr, "nothing is left to decide"
    with former_version(next_version):
        with terminal.open() as rt:
            assert [works(rt, key) for key in (leaked, lasting, fresh)] == [False, True, False]
            assert not sign_in.is_password(rt, "the first password")
            assert sign_in.is_password(rt, "the second password")
            assert sign_in.find_session(rt, rt.db, session) is None
            assert sign_in.find_session(rt, rt.db, with_the_second) is None
            assert not sign_in.is_link_valid(rt, rt.db, Purpose.SIGN_IN, link)
            revoked = [
                (one.actor, one.label) for one in audit_log.load_page(rt.db, ["key"]).entries if "revoked" in one.action
            ]
            assert revoked == [("command", "leaked")]
        terminal("admin", "revoke-key", lasting)
        terminal("admin", "set-password", stdin="the third password\n")

    aside = next(one.path for one in upgrade_backups.list_all(database_of(terminal)) if "9001" in one.path.name)
    terminal.clock.forward(60)
    forward = terminal.success("restore", str(aside))
    assert "stay revoked: lasting." in forward.stderr
    assert "1 API key came with the restored backup and is valid." in forward.stderr, (
        "it could not be revoked meanwhile"
    )
    assert "“fresh”" in forward.stderr
    with terminal.open() as rt:
        assert [works(rt, key) for key in (leaked, lasting, fresh)] == [False, False, True]
        assert sign_in.is_password(rt, "the third password")
        assert sign_in.find_session(rt, rt.db, with_the_second) is None
    assert "“fresh”" in words(terminal("doctor").stdout)


def signed_in(terminal: Terminal) -> str:
    with terminal.open() as rt:
        return str(rt.write(sign_in.begin_session, "127.0.0.1", "Test browser").token)


def works(rt: Runtime, key: str) -> bool:
    return api_keys.authenticate(rt, key) is not None


DIE = """
import os, signal, sys
from pathlib import Path
from socialpub.core import durable_files
from socialpub.core.clock import SystemClock
from socialpub.core.settings.loader import Settings
from socialpub.ops.backup import restore
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "before":
    Path.replace = die
else:
    durable_files.flush_folder = lambda folder: die() if folder == Path(sys.argv[1]) and done else None
    replace, done = Path.replace, []
    Path.replace = lambda self, target: (replace(self, target), done.append(target))
restore.restore(Path(sys.argv[2]), Settings(data_dir=Path(sys.argv[1])), SystemClock())
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rollback_that_is_killed_leaves_the_older_or_the_newer_database_and_a_backup_of_the_newer(
    terminal: Terminal, profile: str, next_version: pytest.MonkeyPatch, when: str
) -> None:
    assert terminal("admin", "list-keys").exit_code == 0
    before = copy_in(terminal)
    with terminal.open() as rt:
        accept(rt, profile, body="Accepted since")
    arguments = [str(database_of(terminal).parent), str(before), when]
    killed = subprocess.run([sys.executable, "-c", DIE, *arguments], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    newer = next(one for one in upgrade_backups.list_all(database_of(terminal)) if one.schema == "9001_next")
    for database, posts in ((newer.path / "socialpub.db", 1), (database_of(terminal), int(when == "before"))):
        with closing(sqlite3.connect(database)) as rows:
            assert [*rows.execute("PRAGMA integrity_check"), *rows.execute("SELECT count(*) FROM post")] == [
                ("ok",),
                (posts,),
            ]
    terminal.clock.forward(60)
    terminal.success("restore", str(before))


@pytest.mark.parametrize(
    "command",
    [("serve",), ("worker",), ("admin", "rotate-secret"), ("backup", "copy.tar"), ("init", "--new-secret")],
    ids=" ".join,
)
def test_no_door_opens_a_database_of_a_newer_version(
    terminal: Terminal, next_version: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    assert terminal("admin", "list-keys").exit_code == 0
    next_version.undo()
    if command[0] == "init":
        (terminal.folder / "data" / "secret.key").unlink()
    before = database_of(terminal).read_bytes()
    refused = terminal(*command)
    assert refused.exit_code == 1
    told = words(refused.output)
    assert "9001_next" in told or "by another version" in told
    assert database_of(terminal).read_bytes() == before
