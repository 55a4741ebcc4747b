"""The forms that a command has: in a person's shell, for a service of systemd, in a container.

Each class returns what a person types, quoted for a shell. None of them looks at the machine.
"""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

NAME = "socialpub"
MANUAL_NAME = "appliance"
"""The container's name in the manual."""
MOUNT = "/data"
"""Where the image has its volume."""

OF_THE_MACHINE = {"install-service", "uninstall-service", "go-back"}
"""Commands that change the machine. Only root may run them."""
WITHOUT_CONFIGURATION = {*OF_THE_MACHINE, "config", "demo", "manual", "sandbox"}
WHILE_STOPPED = (("restore",), ("init", "--new-secret"), ("admin", "rotate-secret"), ("admin", "compact"))
"""Commands that refuse to work while the appliance runs, each by its first words."""

UNITS = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")
SERVICES = UNITS[1:]
IMAGE = "socialpub"


FILE_LIMIT = 4096
"""More files than any process of the appliance opens for its work, connections of callers aside."""
DISK_ERRORS = "sudo dmesg --level=err,warn"


class Commands(Protocol):
    """Where the appliance runs. A method that returns an instruction leaves out its period."""

    def in_public(self) -> "Commands":
        """Return these commands for people without a session or a key."""
        return self

    def line(self, *words: str) -> str: ...

    def line_as(self, user: str, *words: str, config: Path | None) -> str: ...

    def system_line(self, *words: str, root: bool = False, stopped: bool = False) -> str:
        """Return a command of the system that works on the appliance's files: `system_line("chmod", "600", path)`.

        `stopped`: it must work while the appliance is stopped.
        """

    def make_folder(self, folder: Path) -> str:
        """Return the command that makes a folder which only the appliance's user can enter."""

    def mount_writable(self, point: Path) -> str:
        """Return what to do about a mount that takes no write."""

    def raise_file_limit(self) -> str: ...

    def restart(self, *services: str) -> str:
        """Return the instruction to restart the appliance, or only some of its services."""

    def stop(self) -> str: ...

    def start(self, *services: str) -> str: ...

    def move_socket(self) -> str:
        """Return the instruction after which the web server listens where the configuration says."""
        return self.restart()

    def log(self, *services: str) -> str:
        """Return where the processes log, as the object of "Read"."""

    def while_stopped(self, *words: str) -> str:
        """Return the instruction to stop the appliance, run a command and start the appliance again."""
        return f"{self.stop()}, then `{self.line(*words)}`, then {self.start().removeprefix('Run ')}"


@dataclass(frozen=True, slots=True)
class TerminalCommands(Commands):
    """A person's own shell. The appliance is a `serve` that this person started.

    `path` finds the program from every folder, and with sudo. `config` is what `--config` must name.
    """

    program: tuple[str, ...] = (NAME,)
    path: tuple[str, ...] = (NAME,)
    config: Path | None = None

    def in_public(self) -> Commands:
        return TerminalCommands() if self.program[0].startswith("/") else replace(self, config=None)

    def line(self, *words: str) -> str:
        if words[0] in OF_THE_MACHINE:
            return shlex.join(["sudo", *self.path, *words])
        return shlex.join([*self.program, *_option(self.config, words), *words])

    def line_as(self, user: str, *words: str, config: Path | None) -> str:
        # sudo passes no SOCIALPUB_CONFIG on.
        return shlex.join(["sudo", "-u", user, *self.path, *_option(config, words), *words])

    def system_line(self, *words: str, root: bool = False, stopped: bool = False) -> str:  # noqa: ARG002
        return shlex.join([*(["sudo"] if root else []), *words])

    def make_folder(self, folder: Path) -> str:
        return self.system_line("mkdir", "-m", "700", str(folder))

    def mount_writable(self, point: Path) -> str:
        return remount(point)

    def raise_file_limit(self) -> str:
        return f"Run `ulimit -n {FILE_LIMIT}` in this shell"

    def restart(self, *services: str) -> str:  # one process runs both
        return f"Stop `{self.line('serve')}` and start it again"

    def stop(self) -> str:
        return f"Stop `{self.line('serve')}`"

    def start(self, *services: str) -> str:
        return f"Start `{self.line('serve')}`"

    def log(self, *services: str) -> str:
        return f"the output of `{self.line('serve')}`"

    def while_stopped(self, *words: str) -> str:
        return f"{self.stop()}, run `{self.line(*words)}`, and start it again"


@dataclass(frozen=True, slots=True)
class ServiceCommands(Commands):
    """Units of systemd. `program` is what root types for it, `path` the installed program itself.

    `confined`: this process is one of the units, which may write in few places.
    """

    program: tuple[str, ...] = ("sudo", NAME)
    path: str = "/opt/socialpub/.venv/bin/socialpub"
    user: str = NAME
    confined: bool = False

    def line(self, *words: str) -> str:
        if words[0] in OF_THE_MACHINE and self.program[1] != NAME:
            return shlex.join(["sudo", self.path, *words])
        return shlex.join([*self.program, *words])

    def line_as(self, user: str, *words: str, config: Path | None) -> str:  # noqa: ARG002  # the line knows them
        if words[:1] == ("--config",):
            words = words[2:]
        return shlex.join([*self.program, *words])

    def system_line(self, *words: str, root: bool = False, stopped: bool = False) -> str:  # noqa: ARG002
        return shlex.join(["sudo", *words])

    def make_folder(self, folder: Path) -> str:
        owner = (f"--owner={self.user}", f"--group={self.user}")
        return shlex.join(["sudo", "install", "--directory", "--mode=700", *owner, str(folder)])

    def mount_writable(self, point: Path) -> str:
        if self.confined:
            return f"The unit forbids to write there. Run `{self.line('install-service')}`. It adapts the units."
        return remount(point)

    def raise_file_limit(self) -> str:
        edit = f"sudo systemctl edit {' '.join(SERVICES)}"
        return f"In a shell, run `ulimit -n {FILE_LIMIT}`. For the services, set LimitNOFILE={FILE_LIMIT}: `{edit}`"

    def restart(self, *services: str) -> str:
        return f"Run `sudo systemctl restart {' '.join(services or SERVICES)}`"

    def stop(self) -> str:
        return f"Run `sudo systemctl stop {' '.join(UNITS)}`"

    def start(self, *services: str) -> str:
        return f"Run `sudo systemctl start {' '.join(services or UNITS)}`"

    def move_socket(self) -> str:
        return f"Run `{self.line('install-service')}`"

    def log(self, *services: str) -> str:
        units = " ".join(f"--unit={service}" for service in services or SERVICES)
        return f"`sudo journalctl {units} --lines=50`"


@dataclass(frozen=True, slots=True)
class ContainerCommands(Commands):
    """The image, run by podman or docker. Its volume outlives it, so a stopped appliance is another container."""

    engine: str = "podman"
    name: str = MANUAL_NAME
    volume: str = IMAGE
    config: Path | None = None

    def line(self, *words: str) -> str:
        option = _option(self.config, words)
        if any(words[: len(first)] == first for first in WHILE_STOPPED):
            return self._run([], (*option, *words))
        asks = words[:2] == ("admin", "set-password") or "--paste" in words
        terminal = ["-it"] if asks else ["-i"] if "-" in words else []
        return shlex.join([self.engine, "exec", *terminal, self.name, NAME, *option, *words])

    def line_as(self, user: str, *words: str, config: Path | None) -> str:  # noqa: ARG002  # its variable names it
        return shlex.join([self.engine, "exec", "--user", user, self.name, NAME, *words])

    def system_line(self, *words: str, root: bool = False, stopped: bool = False) -> str:
        if root or stopped:
            # A container that gave its rights away cannot change owners, not even as root.
            return self._run([*(["--user", "root"] if root else []), "--entrypoint", words[0]], words[1:])
        return shlex.join([self.engine, "exec", self.name, *words])

    def make_folder(self, folder: Path) -> str:
        return self._run(["--entrypoint", "mkdir"], ("-m", "700", str(folder)))

    def mount_writable(self, point: Path) -> str:
        return (
            f"Mount {point} without “:ro”, and put data_dir into the volume. On the host, "
            f"`{DISK_ERRORS}` shows errors of the disk."
        )

    def raise_file_limit(self) -> str:
        return f"Start the container with “--ulimit nofile={FILE_LIMIT}:{FILE_LIMIT}”"

    def restart(self, *services: str) -> str:  # one container runs both
        return f"Run `{self.engine} restart {self.name}`"

    def stop(self) -> str:
        return f"Run `{self.engine} stop {self.name}`"

    def start(self, *services: str) -> str:
        return f"Run `{self.engine} start {self.name}`"

    def log(self, *services: str) -> str:
        return f"`{self.engine} logs {self.name}`"

    def _run(self, options: list[str], words: tuple[str, ...]) -> str:
        return shlex.join([self.engine, "run", "--rm", *options, "--volume", f"{self.volume}:{MOUNT}", IMAGE, *words])


def remount(point: Path) -> str:
    line = shlex.join(["sudo", "mount", "-o", "remount,rw", str(point)])
    return f"See why: `{DISK_ERRORS}`. After errors of a disk, the kernel makes it read-only. Then run `{line}`."


def _option(config: Path | None, words: tuple[str, ...]) -> list[str]:
    """`--config FILE`, if there is such a file to name and the command reads one."""
    makes_one = words[:1] == ("init",) and "--new-secret" not in words
    named = config is None or "--config" in words or {*words[:1]} & WITHOUT_CONFIGURATION or makes_one
    return [] if named else ["--config", str(config)]
