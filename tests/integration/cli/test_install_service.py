"""A service put together below another folder, as for a package: what lies where, and with which contents.

What takes root, and the whole of what socialpub needs, is played in `tests/endurance/test_installing.py`.
"""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import socialpub
from socialpub.cli.install import environment, files, installer
from socialpub.cli.install.environment import ServiceInterpreter
from socialpub.cli.install.files import InstallationPlaces
from socialpub.cli.main import COMMANDS, main
from socialpub.core import version
from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader
from socialpub.ops.doctor import addresses

PROGRAM = "/opt/socialpub/.venv/bin/socialpub"
UNITS = Path("usr/local/lib/systemd/system")


@pytest.fixture(autouse=True)
def socialpub_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install only socialpub, because copying and testing its packages takes seconds."""
    monkeypatch.setattr(environment, "needed_packages", lambda: [distribution("socialpub")])
    monkeypatch.setattr(environment, "_compile", lambda *_: None)
    monkeypatch.setattr(environment, "check", lambda *_: None)


def run(*arguments: str) -> Result:
    before = os.umask(0o077)
    try:
        return CliRunner().invoke(main, arguments)
    finally:
        os.umask(before)


def install(stage: Path, *options: str) -> Result:
    done = run("install-service", "--destdir", str(stage), *options)
    assert done.exit_code == 0, done.output
    return done


def files_below(folder: Path) -> dict[str, str]:
    """Return every file and link with its mode, without Python's packages."""
    return {
        str(path.relative_to(folder)): "link" if path.is_symlink() else f"{path.stat().st_mode & 0o777:o}"
        for path in folder.rglob("*")
        if (path.is_symlink() or path.is_file()) and "site-packages" not in path.parts
    }


def test_everything_is_below_destdir_and_says_where_it_will_be(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    install(stage)
    installed = version.current()
    at = f"opt/socialpub/environments/{installed}"
    assert files_below(stage) == {
        "etc/socialpub/config.toml": "640",
        "usr/local/bin/socialpub": "755",
        "opt/socialpub/.venv": "link",
        f"{at}/pyvenv.cfg": "644",
        f"{at}/bin/socialpub": "755",
        **{f"{at}/bin/{name}": "link" for name in ("python", "python3", environment.PYTHON_NAME)},
        **{str(UNITS / name): "644" for name in units_of(stage)},
    }
    assert (stage / "opt/socialpub/.venv").readlink() == Path("environments", installed)
    assert (stage / "var/lib/socialpub").stat().st_mode & 0o777 == 0o700
    assert not any((stage / "var/lib/socialpub").iterdir()), "a package holds no secret"
    assert tomllib.loads((stage / "etc/socialpub/config.toml").read_text())["data_dir"] == "/var/lib/socialpub"
    for path in (*(stage / at / "bin").glob("socialpub"), *(stage / "usr").rglob("*"), *(stage / "etc").rglob("*")):
        if path.is_file():
            assert str(tmp_path) not in path.read_text(), path


def units_of(stage: Path) -> list[str]:
    found = [str(path.relative_to(stage / UNITS)) for path in (stage / UNITS).rglob("*") if path.is_file()]
    assert {"socialpub-web.service", "socialpub-web.socket", "socialpub-backup.timer"} <= set(found)
    return found


def test_the_environment_runs_what_was_installed_and_not_the_checkout(tmp_path: Path) -> None:
    install(tmp_path)
    python = tmp_path / "opt/socialpub/.venv/bin/python"
    code = "import socialpub, sys, importlib.metadata as m; print(socialpub.__file__, m.version('socialpub'))"
    asked = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True, cwd="/", env={})
    lies, stated = asked.stdout.split()
    assert Path(lies).is_relative_to(tmp_path)
    assert stated == version.current()
    installed, source = Path(lies).parent, Path(socialpub.__file__).parent
    for name in ("cli/examples/config.example.toml", "web/static", "py.typed"):
        assert (installed / name).exists()
        assert not (installed / name).is_symlink(), "what is a link in a checkout leads out of here"
    assert {path.relative_to(installed) for path in installed.rglob("*.py")} == {
        path.relative_to(source) for path in source.rglob("*.py")
    }
    for path in installed.rglob("*"):
        assert path.stat().st_mode & 0o005 == (0o005 if path.is_dir() else 0o004), f"{path} is not for everybody"


def test_units_and_command_follow_where_everything_lies(tmp_path: Path) -> None:
    where = ("--program-dir", "/srv/sp", "--config-dir", "/srv/etc", "--data-dir", "/data/sp", "--user", "poster")
    install(tmp_path, *where, "--unit-dir", "/usr/lib/systemd/system", "--command-dir", "/usr/bin")
    for name in ("web", "worker"):
        unit = (tmp_path / f"usr/lib/systemd/system/socialpub-{name}.service").read_text()
        assert f"\nExecStart=/srv/sp/.venv/bin/socialpub --config /srv/etc/config.toml {name}\n" in unit
        assert "\nUser=poster\nGroup=poster\n" in unit
        assert "\nReadWritePaths=/data/sp\n" in unit
        assert "StateDirectory" not in unit
    command = (tmp_path / "usr/bin/socialpub").read_text()
    assert "program=/srv/sp/.venv/bin/socialpub\n" in command
    assert "--reuid=poster " in command


def test_a_data_folder_below_var_lib_is_made_by_systemd(tmp_path: Path) -> None:
    install(tmp_path, "--data-dir", "/var/lib/posts/sp")
    unit = (tmp_path / UNITS / "socialpub-web.service").read_text()
    assert "\nStateDirectory=posts/sp\nStateDirectoryMode=0700\n" in unit


def test_the_socket_listens_where_the_configuration_says(tmp_path: Path) -> None:
    config = tmp_path / "etc/socialpub/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('listen = "0.0.0.0:9000"\ndata_dir = "/var/lib/socialpub"\n')
    install(tmp_path)
    drop_in = tmp_path / UNITS / files.ADDRESSES
    assert "\nBindIPv6Only=both\nListenStream=\nListenStream=0.0.0.0:9000\n" in drop_in.read_text(), (
        "the usual one is taken back first"
    )
    config.write_text(config.read_text().replace("9000", "9001"))
    install(tmp_path)
    assert "ListenStream=0.0.0.0:9001\n" in drop_in.read_text()


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:8000", ["127.0.0.1:8000"]),
        ("0.0.0.0:80", ["0.0.0.0:80"]),
        ("[::1]:8000", ["[::1]:8000"]),
        ("[::]:81", ["[::]:81"]),
        (["127.0.0.1:81", "[::1]:82"], ["127.0.0.1:81", "[::1]:82"]),
    ],
)
def test_an_address_is_written_as_systemd_reads_it(listen: Any, expected: list[str]) -> None:
    assert addresses.resolve_listen(loader.Settings(listen=listen)) == expected


def test_a_configuration_is_never_overwritten_and_its_data_dir_counts(tmp_path: Path) -> None:
    config = tmp_path / "etc/socialpub/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('data_dir = "/data/mine"\n')
    install(tmp_path)
    assert config.read_text() == 'data_dir = "/data/mine"\n'
    assert "ReadWritePaths=/data/mine" in (tmp_path / UNITS / "socialpub-web.service").read_text()
    refused = run("install-service", "--destdir", str(tmp_path), "--data-dir", "/data/other")
    assert refused.exit_code == 1
    assert "Omit --data-dir" in refused.stderr


def test_a_second_version_takes_the_firsts_place_in_one_moment(tmp_path: Path) -> None:
    install(tmp_path)
    link = tmp_path / "opt/socialpub/.venv"
    first = link.resolve()
    install(tmp_path)
    assert link.resolve() != first
    assert first.is_dir(), "what runs still needs it"


def test_what_fails_leaves_the_version_in_use_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    before = files_below(tmp_path), (tmp_path / "opt/socialpub/.venv").readlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/opt/socialpub")

    monkeypatch.setattr(environment, "copy_packages", full)
    failed = run("install-service", "--destdir", str(tmp_path))
    assert failed.exit_code == 1
    assert "No space left" in failed.stderr
    assert (files_below(tmp_path), (tmp_path / "opt/socialpub/.venv").readlink()) == before


def test_a_dry_run_says_all_and_does_nothing(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    said = run("install-service", "--destdir", str(stage), "--dry-run").stdout
    assert not stage.exists()
    assert said == install(stage).stdout
    said = run("uninstall-service", "--destdir", str(stage), "--dry-run").stdout
    before = files_below(stage)
    assert files_below(stage) == before
    assert "Remove /usr/local/bin/socialpub" in said


def test_uninstalling_keeps_configuration_and_data_and_says_how_to_remove_them(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "var/lib/socialpub/socialpub.db").write_text("posts")
    done = run("uninstall-service", "--destdir", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert set(files_below(tmp_path)) == {"etc/socialpub/config.toml", "var/lib/socialpub/socialpub.db"}
    assert not (tmp_path / "opt/socialpub").exists()
    assert "sudo rm -r /etc/socialpub /var/lib/socialpub && sudo userdel socialpub" in done.stderr


def test_a_command_of_another_program_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "usr/local/bin/socialpub"
    theirs.parent.mkdir(parents=True)
    theirs.symlink_to("/opt/pipx/venvs/socialpub/bin/socialpub")
    assert "belongs to another program and is unchanged" in install(tmp_path).stderr
    assert run("uninstall-service", "--destdir", str(tmp_path)).exit_code == 0
    assert theirs.is_symlink()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--program-dir", "/home/ada/socialpub"), "cannot see /home/ada/socialpub"),
        (("--data-dir", "data"), "cannot refer to the folder data"),
        (("--config-dir", "/etc/my socialpub"), "without spaces"),
        (("--user", "root"), "must not run as root"),
    ],
)
def test_places_where_no_service_can_work_are_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    refused = run("install-service", "--destdir", str(tmp_path / "stage"), *options)
    assert refused.exit_code == 1
    assert said in refused.stderr
    assert not (tmp_path / "stage").exists()


def test_only_root_can_install_and_gets_the_full_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refused = run("install-service")
    assert refused.exit_code == 1
    assert "sudo /usr/bin/socialpub install-service" in refused.stderr
    assert run("uninstall-service").exit_code == 1


def test_without_systemd_the_other_ways_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(installer, "_BOOTED", tmp_path / "nothing")
    refused = run("install-service")
    assert refused.exit_code == 1
    assert "container" in refused.stderr
    assert "`socialpub serve`" in refused.stderr


def test_a_python_in_a_home_is_copied_only_where_the_system_has_none_like_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "_base_executable", str(python_in(tmp_path / "ada")))
    # Other users cannot enter the folders of tests.
    visible = lambda path: path.exists() and not path.resolve().is_relative_to(tmp_path / "ada")  # noqa: E731
    monkeypatch.setattr(environment, "is_visible", visible)
    monkeypatch.setattr(environment, "SYSTEM_FOLDERS", ())
    assert environment.choose_interpreter().copied_from == Path(sys.base_prefix).resolve()
    system = python_in(tmp_path / "usr").parent
    monkeypatch.setattr(environment, "SYSTEM_FOLDERS", (tmp_path / "none", system))
    assert environment.choose_interpreter() == ServiceInterpreter(system / environment.PYTHON_NAME)
    (system / environment.PYTHON_NAME).write_text("#!/bin/sh\necho '(3, 8) another'\n")
    assert environment.choose_interpreter().copied_from is not None, (
        "what was compiled for one does not run with the other"
    )


def test_what_the_service_cannot_enter_is_not_visible_to_it(tmp_path: Path) -> None:
    assert environment.is_visible(Path("/bin/sh"))
    assert not environment.is_visible(Path("/bin/nothing-of-this-name"))
    closed = python_in(tmp_path / "closed")
    tmp_path.chmod(0o700)
    assert not environment.is_visible(closed)


def python_in(folder: Path) -> Path:
    """A program that reports to be the Python of this test."""
    program = folder / "bin" / environment.PYTHON_NAME
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for path in (folder, program.parent, program):
        path.chmod(0o755)
    return program


def test_what_socialpub_needs_is_found_without_the_tools_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    names = {package.name.lower() for package in environment.needed_packages()}
    assert {"socialpub", "starlette", "pillow", "av", "uvicorn", "orjson", "cffi"} <= names
    assert not names & {"pytest", "mypy", "ruff", "pip", "setuptools"}


def test_a_user_that_is_missing_is_only_made_by_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installer, "create_user", lambda _: pytest.fail("a package makes no user"))
    install(tmp_path, "--user", "no-such-user")


def test_a_socket_whose_port_is_taken_keeps_no_other_unit_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def run(*arguments: str) -> None:
        told.append(" ".join(arguments))
        if arguments == ("restart", installer.SOCKET):
            raise OperatorError("the port is taken")

    monkeypatch.setattr(installer, "run_systemctl", run)
    with pytest.raises(OperatorError, match="the port is taken"):
        installer.restart_units([installer.SOCKET, installer.WEB, installer.WORKER], [], renew_socket=True)
    assert told[-2:] == [f"start {installer.WEB}", f"start {installer.WORKER}"]


def test_commands_that_call_an_appliance_keep_the_user_of_root(tmp_path: Path) -> None:
    """They need the key and the files of that user."""
    calling = [name for name, (place, _) in COMMANDS.items() if place.startswith("socialpub.cli.client.")]
    assert list(files.CALLING_COMMANDS) == calling
    places = InstallationPlaces(programs=tmp_path)
    places.program.parent.mkdir(parents=True)
    script = tmp_path / "socialpub"
    for path, line in ((places.program, "root"), (tmp_path / "setpriv", "service"), (tmp_path / "id", "0")):
        path.write_text(f"#!/bin/sh\necho {line}\n")
        path.chmod(0o755)
    script.write_text(files.script_text(places))
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    users = [
        subprocess.run(["sh", str(script), name], env=environ, capture_output=True, text=True, check=True).stdout
        for name in ("post", "mcp", "doctor")
    ]
    assert users == ["root\n", "root\n", "service\n"]
