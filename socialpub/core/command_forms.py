"""The forms of a command: in a person's shell, for a service of systemd, in a container.

Each class returns the text that a person types, quoted for a shell. No class examines the machine.
"""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

NAME = "socialpub"
MANUAL_NAME = "appliance"
"""The name of the container in the manual."""
MOUNT = "/data"
"""The folder of the volume in the image."""

ROOT_COMMANDS = {"install-service", "uninstall-service", "go-back"}
"""Commands that change the machine. Only root may run them."""
WITHOUT_CONFIGURATION = {*ROOT_COMMANDS, "config", "demo", "manual", "sandbox"}
WHILE_STOPPED = (("restore",), ("init", "--new-secret"), ("admin", "rotate-secret"))
"""The first words of commands that do not work while the appliance is running."""

UNITS = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")
SERVICES = UNITS[1:]
IMAGE = "socialpub"

FILE_LIMIT = 4096
"""A number of open files that is enough for every process, without the connections of callers."""
DISK_ERRORS = "sudo dmesg --level=err,warn"


class Commands(Protocol):
    """The commands for one environment. Instructions have no period at the end."""

    def in_public(self) -> "Commands":
        """Return the commands for people without a session or a key."""
        return self

    def line(self, *words: str) -> str: ...

    def line_as(self, user: str, *words: str, config: Path | None) -> str: ...

    def system_line(self, *words: str, root: bool = False, stopped: bool = False) -> str:
        """Return a system command for the appliance's files: `system_line("chmod", "600", path)`.

        `stopped`: the command must work while the appliance is stopped.
        """

    def make_folder(self, folder: Path) -> str:
        """Return the command that makes a folder that only the appliance's user can enter."""

    def mount_writable(self, point: Path) -> str:
        """Return the instruction for a read-only mount, with its period."""

    def raise_file_limit(self) -> str: ...

    def restart(self, *services: str) -> str:
        """Return the instruction to restart the appliance or these services."""

    def stop(self) -> str: ...

    def start(self, *services: str) -> str: ...

    def move_socket(self) -> str:
        """Return the instruction that applies a changed `listen`."""
        return self.restart()

    def log(self, *services: str) -> str:
        """Return the place of the log, as the object of "Read"."""

    def while_stopped(self, *words: str) -> str:
        """Return the instruction to stop the appliance, run a command and start the appliance again."""
        return f"{self.stop()}, then `{self.line(*words)}`, then {self.start().removeprefix('Run ')}"


@dataclass(frozen=True, slots=True)
class TerminalCommands(Commands):
    """A person's shell, in which the appliance is a `serve` process of that person.

    `path` works in every folder and with sudo. `config` is the value for `--config`.
    """

    program: tuple[str, ...] = (NAME,)
    path: tuple[str, ...] = (NAME,)
    config: Path | None = None

    def in_public(self) -> Commands:
        return TerminalCommands() if self.program[0].startswith("/") else replace(self, config=None)

    def line(self, *words: str) -> str:
        if words[0] in ROOT_COMMANDS:
            return shlex.join(["sudo", *self.path, *words])
        return shlex.join([*self.program, *_option(self.config, words), *words])

    def line_as(self, user: str, *words: str, config: Path | None) -> str:
        # sudo does not pass on SOCIALPUB_CONFIG.
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
    """Units of systemd. `program` is the command that root types, and `path` is the installed program.

    `confined`: this process is one of the units, which can write in few folders.
    """

    program: tuple[str, ...] = ("sudo", NAME)
    path: str = "/opt/socialpub/.venv/bin/socialpub"
    user: str = NAME
    confined: bool = False

    def line(self, *words: str) -> str:
        if words[0] in ROOT_COMMANDS and self.program[1] != NAME:
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
            return f"The unit does not allow writes there. Run `{self.line('install-service')}` to update the units."
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
    """The image in podman or docker. Its volume outlives the container, so a stopped appliance is another container."""

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
            # A container without capabilities cannot change owners, even as root.
            return self._run([*(["--user", "root"] if root else []), "--entrypoint", words[0]], words[1:])
        return shlex.join([self.engine, "exec", self.name, *words])

    def make_folder(self, folder: Path) -> str:
        return self._run(["--entrypoint", "mkdir"], ("-m", "700", str(folder)))

    def mount_writable(self, point: Path) -> str:
        return (
            f"Mount {point} without “:ro”, and put data_dir into the volume. "
            f"To see disk errors, run `{DISK_ERRORS}` on the host."
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
    return (
        f"Run `{DISK_ERRORS}` to find the reason: after disk errors, the kernel makes a disk read-only. "
        f"Then run `{line}`."
    )


def _option(config: Path | None, words: tuple[str, ...]) -> list[str]:
    """Return `--config FILE`, or nothing if the command does not need the option."""
    creates_file = words[:1] == ("init",) and "--new-secret" not in words
    if config is None or creates_file or "--config" in words or {*words[:1]} & WITHOUT_CONFIGURATION:
        return []
    return ["--config", str(config)]
