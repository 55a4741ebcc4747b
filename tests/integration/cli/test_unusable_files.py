"""Files that cannot be used although nothing damaged them: the doctor and every command name the cause and its line."""

import errno
import json
import os
import pwd
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from socialpub.cli.output import as_command_error
from socialpub.core import commands, locks
from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader, template
from socialpub.ops import file_faults
from socialpub.ops.doctor import offline
from tests.integration.cli.conftest import Terminal

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
USER = next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)
REMEDY = f"Run `sudo chown -R {USER.pw_name} {{data}}` and `sudo chmod -R u+rwX {{data}}`."
ABOUT_DAMAGE = ("damaged", "Move data_dir")


def problems(shown: str) -> dict[str, dict[str, Any]]:
    return {one["subject"]: one for one in json.loads(shown) if one["level"] == "problem"}


def assert_no_damage(shown: str) -> None:
    assert [words for words in ABOUT_DAMAGE if words in shown] == []


@pytest.fixture
def opened(terminal: Terminal) -> Terminal:
    assert terminal("admin", "list-keys").exit_code == 0
    return terminal


@contextmanager
def as_user() -> Iterator[None]:
    """Open and create files as the user, without root's groups."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(USER.pw_gid)
    os.seteuid(USER.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.fixture
def users_own(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """An appliance of another user, in a place that this user can reach."""
    # This user may not be able to read Python's modules: have them imported.
    for command in (("admin", "create-key", "first"), ("doctor",), ("doctor", "--json")):
        terminal(*command)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(terminal.folder, Path(folder, "home"))
        own = Path(folder, "home")
        for path in (own, *own.rglob("*")):
            os.chown(path, USER.pw_uid, USER.pw_gid)
        monkeypatch.setattr(terminal, "folder", own)
        monkeypatch.setattr(terminal, "config", own / "config.toml")
        yield terminal


def doctor_of(terminal: Terminal) -> dict[str, dict[str, Any]]:
    with as_user():
        shown = terminal("doctor", "--json").stdout
    assert_no_damage(shown)
    return problems(shown)


@AS_ROOT
@pytest.mark.parametrize("name", ["socialpub.db", "run", "media"])
def test_a_file_of_another_user_is_given_back_by_one_line(users_own, name):
    data = users_own.folder / "data"
    os.chown(data / name, 0, 0)
    (data / name).chmod(0o700)
    found = doctor_of(users_own)
    assert f"{data / name} cannot be written by {USER.pw_name}." == found["data_dir"]["message"]
    assert found["data_dir"]["remedy"] == REMEDY.format(data=data)
    with as_user():
        refused = users_own("admin", "create-key", "first")
    assert refused.exit_code == 1
    assert "sudo chown -R" in refused.stderr
    assert_no_damage(refused.stderr)

    subprocess.run(["chown", "-R", USER.pw_name, data], check=True)
    assert "data_dir" not in doctor_of(users_own)


@AS_ROOT
@pytest.mark.parametrize("mode", [0o400, 0o000])
def test_a_file_that_its_owner_must_not_write_gets_its_mode_back_by_one_line(users_own, mode):
    data = users_own.folder / "data"
    (data / "socialpub.db").chmod(mode)
    found = doctor_of(users_own)
    assert found["data_dir"]["message"] == f"{data / 'socialpub.db'} cannot be written by {USER.pw_name}."
    assert found["data_dir"]["remedy"] == REMEDY.format(data=data)
    with as_user():
        refused = users_own("admin", "create-key", "first")
    assert f"Hint: {REMEDY.format(data=data)}" in refused.stderr
    with as_user():
        subprocess.run(["chmod", "-R", "u+rwX", data], check=True)
    assert "data_dir" not in doctor_of(users_own)


@AS_ROOT
def test_a_folder_of_another_user_is_used_as_that_user(users_own):
    data = users_own.folder / "data"
    os.chown(data, 0, 0)
    for path in data.rglob("*"):
        os.chown(path, 0, 0)
    found = doctor_of(users_own)
    assert found["data_dir"]["message"] == f"{data} is owned by root, and only root may use it."
    assert found["data_dir"]["remedy"].startswith(
        f"Run `sudo -u root {Path(sys.executable).with_name('socialpub')} --config "
    )


@AS_ROOT
def test_everything_of_a_service_belongs_to_its_user(users_own, monkeypatch):
    data = users_own.folder / "data"
    for path in (data, *data.rglob("*")):
        os.chown(path, 0, 0)
    for manager in ("systemctl", "podman"):
        monkeypatch.setattr(commands, "manager", lambda manager=manager: manager)
        assert doctor_of(users_own)["data_dir"]["remedy"].startswith(f"Run `sudo chown -R {USER.pw_name} ")


# --- by SQLite's codes -----------------------------------------------------------------------------------------------

UNUSABLE = [
    name
    for name in dir(sqlite3)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_FULL"))
]
DAMAGED = [name for name in dir(sqlite3) if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))]


def error_of(name: str) -> sqlite3.Error:
    error = sqlite3.DatabaseError("words that decide nothing: database disk image is malformed")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    return error


def test_no_code_but_those_of_damage_leads_to_moving_the_data_away(
    opened: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = loader.load(opened.config)
    for name in UNUSABLE:

        def fail(*_: object, name: str = name, **__: object) -> None:
            raise error_of(name)

        with monkeypatch.context() as broken:
            broken.setattr(offline.sqlite3, "connect", fail)
            (finding,) = [one for one in offline.check(settings) if one.subject == "database"]
        assert finding.remedy, name
        assert_no_damage(finding.sentences)
        shown = as_command_error(error_of(name), partial(file_faults.find_fault, settings=settings))
        assert shown is not None and shown.hint, name
        assert_no_damage(shown.message + shown.hint)


CANNOT = "The file system of data_dir cannot "


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *((f"SQLITE_IOERR_{end}", "share memory between processes") for end in ("SHMOPEN", "SHMMAP")),
        *((f"SQLITE_IOERR_{end}", "(POSIX locks)") for end in ("SHMLOCK", "LOCK", "RDLOCK", "UNLOCK")),
        ("SQLITE_IOERR_CHECKRESERVEDLOCK", "(POSIX locks)"),
        ("SQLITE_NOLFS", "store large files"),
    ],
)
def test_what_the_file_system_lacks_is_named_by_the_extended_code(opened, name, what):
    find_fault = partial(file_faults.find_fault, settings=loader.load(opened.config))
    shown = as_command_error(error_of(name), find_fault)
    assert shown is not None and shown.hint
    assert shown.message.startswith(CANNOT) and what in shown.message
    assert "Use a local disk" in shown.hint


def test_no_space_for_the_journals_shared_memory_is_a_full_disk(opened):
    find_fault = partial(file_faults.find_fault, settings=loader.load(opened.config))
    shown = as_command_error(error_of("SQLITE_IOERR_SHMSIZE"), find_fault)
    assert shown is not None and "is full" in shown.message


NO_LOCKS = ["ENOLCK", "EOPNOTSUPP", "ENOSYS", "EINVAL"]


@pytest.mark.parametrize("code", NO_LOCKS)
def test_a_file_system_without_flock_is_named(opened, monkeypatch, code):
    def refuse(*_: object) -> None:
        raise OSError(getattr(errno, code), "words")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    shown = opened.refusal("admin", "list-keys")
    assert f"{CANNOT}lock files (flock)." in shown and "Use a local disk" in shown


def test_a_file_system_that_refuses_modes_is_named_by_init(tmp_path, monkeypatch):
    def refuse(path: Path, _: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(OperatorError, match=re.escape(f"{CANNOT}keep files from other users (chmod).")):
        template.create(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_codes_of_damage_do(opened: Terminal) -> None:
    settings = loader.load(opened.config)
    for name in DAMAGED:
        shown = as_command_error(error_of(name), partial(file_faults.find_fault, settings=settings))
        assert shown is not None and shown.hint
        assert "damaged" in shown.message and "Move data_dir" in shown.hint


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("EIO", "failed to read or write"),
        ("ENOSPC", "is full"),
        ("EDQUOT", "is full"),
        ("EMFILE", "Too many files are open"),
    ],
)
def test_the_systems_own_codes_are_reported_in_the_same_words(opened, code, words):
    error = OSError(getattr(errno, code), "words", str(opened.folder / "data" / "media"))
    shown = as_command_error(error, partial(file_faults.find_fault, settings=loader.load(opened.config)))
    assert shown is not None and shown.hint
    assert words in shown.message
    if code == "EIO":
        assert "sudo dmesg" in shown.hint


def test_the_remedy_for_damage_is_typed_line_by_line(opened):
    assert opened("admin", "create-key", "kept").exit_code == 0
    opened.config.write_text(f'{opened.config.read_text()}\n[backup]\nfolder = "backups"\n')
    assert opened("backup").exit_code == 0
    (opened.folder / "data" / "socialpub.db").write_bytes(b"this is no database" * 1000)
    assert "socialpub.db is damaged: file is not a database." in opened.refusal("admin", "list-keys")
    remedy = problems(opened("doctor", "--json").stdout)["database"]["remedy"]
    stop, *typed, start = re.findall("`([^`]+)`", remedy)
    assert stop.endswith(" serve") and start.endswith(" serve")
    for line in typed:
        words = shlex.split(line)
        if words[0] == "socialpub":
            assert opened(*words[3:]).exit_code == 0, line
        else:
            subprocess.run(words, check=True)
    assert "database" not in problems(opened("doctor", "--json").stdout)
    assert "kept" in opened("admin", "list-keys").stdout
