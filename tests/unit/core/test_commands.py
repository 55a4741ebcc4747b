"""The commands for a service, a container and a checkout."""

import os
import pwd
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from socialpub.cli.install import files
from socialpub.cli.install.files import InstallationPlaces
from socialpub.core import commands
from socialpub.core.command_forms import ContainerCommands, ServiceCommands, TerminalCommands
from socialpub.core.commands import Process

REAL_DISCOVER = commands.discover
CONTAINER_ID = "3f9a1c2b4d5e"
MOUNTS = "540 530 0:40 /containers/storage/volumes/posts/_data /data rw,nosuid - ext4 /dev/sda1 rw\n"


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """A process of a checkout in its folder."""
    script = tmp_path / "checkout/.venv/bin/socialpub"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    return Process(None, {"PATH": "/nowhere"}, script.with_name("python3"), tmp_path / "checkout", tmp_path)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def add_service(process: Process, *, own_command: bool = True) -> Process:
    """Install the units, and return a process that uses their configuration."""
    config = put(process.root / "etc/socialpub/config.toml", "")
    unit = f"[Service]\nUser=publisher\nExecStart=/opt/socialpub/.venv/bin/socialpub --config {config} web\n"
    put(process.root / "usr/local/lib/systemd/system/socialpub-web.service", unit)
    if own_command:
        put(process.root / "usr/local/bin/socialpub", files.script_text(InstallationPlaces()))
    return replace(process, config=config)


def add_container(process: Process, *started: str, host: str = CONTAINER_ID, mounts: str = MOUNTS) -> Process:
    put(process.root / "proc/1/cmdline", "\0".join(started))
    put(process.root / "proc/self/mountinfo", mounts)
    return replace(process, environ={**process.environ, "container": "podman"}, host=host)


def test_a_checkout_has_a_relative_path_of_its_program(process: Process) -> None:
    assert TerminalCommands() == TerminalCommands(("socialpub",))
    assert REAL_DISCOVER(process).line("admin", "list-keys") == ".venv/bin/socialpub admin list-keys"


def test_a_program_outside_this_folder_has_an_absolute_quoted_path(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "my checkout"
    process.folder.rename(folder)
    elsewhere = replace(process, folder=tmp_path / "elsewhere", executable=folder / ".venv/bin/python3")
    assert REAL_DISCOVER(elsewhere).line("doctor") == f"'{folder}/.venv/bin/socialpub' doctor"
    inside = replace(elsewhere, folder=folder / ".venv/bin")
    assert REAL_DISCOVER(inside).line("doctor") == "./socialpub doctor"


def test_a_program_on_the_path_needs_only_its_name(process: Process, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/socialpub").symlink_to(process.executable.with_name("socialpub"))
    found = replace(process, environ={"PATH": str(tmp_path / "bin")})
    assert REAL_DISCOVER(found).line("doctor") == "socialpub doctor"
    # sudo has another PATH.
    script = process.executable.with_name("socialpub")
    assert REAL_DISCOVER(found).line("install-service") == f"sudo {script} install-service"


def test_another_program_with_the_same_name_on_the_path_does_not_count(process: Process, tmp_path: Path) -> None:
    put(tmp_path / "bin/socialpub", "#!/bin/sh\n")
    found = replace(process, environ={"PATH": str(tmp_path / "bin")})
    assert REAL_DISCOVER(found).line("doctor") == ".venv/bin/socialpub doctor"


def test_python_runs_the_module_without_a_script(process: Process) -> None:
    process.executable.with_name("socialpub").unlink()
    assert REAL_DISCOVER(process).line("doctor") == ".venv/bin/python3 -m socialpub doctor"


def test_config_is_named_where_a_command_without_it_finds_another_file(process: Process) -> None:
    config = put(process.folder / "home/config.toml", "")
    given = replace(process, config=config)
    assert REAL_DISCOVER(given).line("doctor") == f".venv/bin/socialpub --config {config} doctor"
    assert REAL_DISCOVER(given).line("config", "--example") == ".venv/bin/socialpub config --example"
    assert REAL_DISCOVER(given).line("init", "DIR") == ".venv/bin/socialpub init DIR"
    assert "--config" in REAL_DISCOVER(given).line("init", "--new-secret")

    named = replace(given, environ={"PATH": "", "SOCIALPUB_CONFIG": str(config)})
    inside = replace(given, folder=config.parent)
    gone = replace(given, config=process.folder / "gone.toml")
    for one in (named, inside, gone):
        assert "--config" not in REAL_DISCOVER(one).line("doctor")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_command_in_an_inaccessible_folder_names_the_configuration(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    process = Process(Path("/etc/passwd"), {"PATH": ""}, Path("/opt/python3"), tmp_path)
    os.seteuid(next(entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0))
    try:
        assert "--config /etc/passwd doctor" in REAL_DISCOVER(process).line("doctor")
        hidden = replace(process, config=tmp_path / "config.toml")
        assert "--config" not in REAL_DISCOVER(hidden).line("doctor")
    finally:
        os.seteuid(0)


def test_a_service_is_named_by_the_command_of_the_machine(process: Process) -> None:
    place = REAL_DISCOVER(add_service(process))
    assert place.line("admin", "resume") == "sudo socialpub admin resume"
    assert place.line("install-service") == "sudo socialpub install-service"
    assert place.restart() == "Run `sudo systemctl restart socialpub-web socialpub-worker`"
    assert place.restart("socialpub-worker") == "Run `sudo systemctl restart socialpub-worker`"
    assert place.while_stopped("admin", "rotate-secret") == (
        "Run `sudo systemctl stop socialpub-web.socket socialpub-web socialpub-worker`, then "
        "`sudo socialpub admin rotate-secret`, then "
        "`sudo systemctl start socialpub-web.socket socialpub-web socialpub-worker`"
    )
    assert place.system_line("chmod", "600", "/x", root=False) == "sudo chmod 600 /x"


def test_a_service_without_its_own_command_has_an_absolute_path(process: Process) -> None:
    service = add_service(process, own_command=False)
    program = "/opt/socialpub/.venv/bin/socialpub"
    place = REAL_DISCOVER(service)
    assert place.line("doctor") == f"sudo --user=publisher {program} --config {service.config} doctor"
    assert place.line("install-service") == f"sudo {program} install-service"


def test_an_appliance_next_to_the_service_is_not_the_service(process: Process) -> None:
    add_service(process)
    config = put(process.folder / "config.toml", "")
    assert isinstance(REAL_DISCOVER(replace(process, config=config)), TerminalCommands)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_access_to_the_configuration_gets_the_services_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        closed = add_service(Process(None, {"PATH": ""}, Path(root, "python3"), Path(root), Path(root))).config
        assert closed is not None
        closed.parent.chmod(0o700)
        monkeypatch.setattr(commands, "USUAL_FILES", (Path("config.toml"), closed))
        os.seteuid(next(entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0))
        try:
            place = REAL_DISCOVER(Process(None, {"PATH": ""}, Path(root, "python3"), Path(root), Path(root)))
        finally:
            os.seteuid(0)
        assert place.line("doctor") == "sudo socialpub doctor"


def test_a_container_has_its_id_and_a_terminal_for_interactive_commands(process: Process) -> None:
    place = REAL_DISCOVER(add_container(process, "python3", "/opt/socialpub/.venv/bin/socialpub", "serve", "--init"))
    assert place == ContainerCommands("podman", CONTAINER_ID, "posts")
    assert place.line("doctor") == f"podman exec {CONTAINER_ID} socialpub doctor"
    assert place.line("admin", "set-password") == f"podman exec -it {CONTAINER_ID} socialpub admin set-password"
    assert "exec -it " in place.line("admin", "connect-profile", "x", "--paste")
    assert "exec -i " in place.line("admin", "import-profile", "x", "--credentials", "-")
    assert place.restart() == f"Run `podman restart {CONTAINER_ID}`"


@pytest.mark.parametrize("words", [("restore", "FILE"), ("init", "--new-secret"), ("admin", "rotate-secret")])
def test_a_command_for_a_stopped_appliance_runs_in_a_new_container(process: Process, words: tuple[str, ...]) -> None:
    place = REAL_DISCOVER(add_container(process, "/usr/bin/socialpub", "serve"))
    line = f"podman run --rm --volume posts:/data socialpub {' '.join(words)}"
    assert place.line(*words) == line
    assert place.while_stopped(*words) == (
        f"Run `podman stop {CONTAINER_ID}`, then `{line}`, then `podman start {CONTAINER_ID}`"
    )


def test_a_container_for_one_command_names_the_lasting_container(process: Process) -> None:
    place = REAL_DISCOVER(add_container(process, "/usr/bin/socialpub", "admin", "rotate-secret"))
    assert place.line("doctor") == "podman exec appliance socialpub doctor"


def test_a_folder_instead_of_a_volume_is_a_placeholder(process: Process) -> None:
    mounts = "540 530 0:40 /srv/posts /data rw - ext4 /dev/sda1 rw\n"
    place = REAL_DISCOVER(add_container(process, "/usr/bin/socialpub", "serve", mounts=mounts))
    assert place.line("restore", "FILE") == "podman run --rm --volume FOLDER:/data socialpub restore FILE"


def test_a_container_with_its_own_name_is_called_as_in_the_manual(process: Process) -> None:
    place = REAL_DISCOVER(add_container(process, "/usr/bin/socialpub", "serve", host="box"))
    assert place.line("doctor") == "podman exec appliance socialpub doctor"


def test_docker_is_detected_by_its_file(process: Process) -> None:
    container = replace(add_container(process, "/sbin/docker-init", "--", "socialpub", "serve"), environ={})
    put(process.root / ".dockerenv", "")
    assert REAL_DISCOVER(container).line("doctor") == f"docker exec {CONTAINER_ID} socialpub doctor"


def test_a_checkout_in_a_container_for_something_else_is_a_terminal(process: Process) -> None:
    assert isinstance(REAL_DISCOVER(add_container(process, "/bin/bash")), TerminalCommands)


def test_root_changes_owners_of_files(process: Process) -> None:
    chown = ("chown", "-R", "10001:10001", "/data/data")
    assert TerminalCommands().system_line(*chown, root=True) == "sudo chown -R 10001:10001 /data/data"
    assert ServiceCommands().system_line(*chown, root=True) == "sudo chown -R 10001:10001 /data/data"
    assert ContainerCommands().system_line(*chown, root=True) == (
        "podman run --rm --user root --entrypoint chown --volume socialpub:/data socialpub -R 10001:10001 /data/data"
    )
    assert ContainerCommands().system_line("chmod", "600", "/x", root=False) == "podman exec appliance chmod 600 /x"


def test_a_process_detects_its_environment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert commands.line("serve") == "socialpub serve"
    assert commands.here().restart() == "Stop `socialpub serve` and start it again"
    monkeypatch.setattr(commands, "discover", lambda _: ServiceCommands())
    commands.detect(None)
    assert commands.line("doctor") == "sudo socialpub doctor"
    assert commands.here().start() == "Run `sudo systemctl start socialpub-web.socket socialpub-web socialpub-worker`"
