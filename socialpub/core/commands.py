"""Commands as a person must type them on this machine.

A service, a container and a checkout need different lines for the same command. A process detects its environment once,
at its start. Every message with a command takes the line from this module.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from socialpub.core.command_forms import (
    MANUAL_NAME,
    NAME,
    Commands,
    ContainerCommands,
    ServiceCommands,
    TerminalCommands,
)

_VOLUME = re.compile(r" \S*/volumes/([^/ ]+)/_data /data ")
"""The volume of the image in the kernel's table of mounts."""
CONFIG_VARIABLE = "SOCIALPUB_CONFIG"
URL_VARIABLE, KEY_VARIABLE = "SOCIALPUB_URL", "SOCIALPUB_KEY"
"""The appliance and the key of the commands that call it (contract 10.5.2). They are not settings."""
USUAL_FILES = (Path("config.toml"), Path("/etc/socialpub/config.toml"))
"""The places of the configuration if neither `--config` nor the variable contains a file name."""
_UNIT_FOLDERS = ("etc", "run", "usr/local/lib", "usr/lib", "lib")


@dataclass(frozen=True, slots=True)
class Process:
    """The properties of a process that show its environment. `config` is the value of its `--config`."""

    config: Path | None
    environ: Mapping[str, str]
    executable: Path
    folder: Path
    root: Path = Path("/")
    host: str = ""

    def config_in_use(self) -> Path | None:
        """Return the file that this process reads, even if the process's user cannot see the file."""
        named = self.config or (Path(self.environ[CONFIG_VARIABLE]) if self.environ.get(CONFIG_VARIABLE) else None)
        files = (self.folder / file for file in ((named,) if named else USUAL_FILES))
        return next((file for file in files if _may_exist(file)), None)

    def config_to_name(self) -> Path | None:
        """Return the value for `--config`, or None if a command finds the same file without the option."""
        if self.config is None or not _is_there(self.folder / self.config):
            return None
        found = replace(self, config=None).config_in_use()
        same = found is not None and _is_there(found) and found.samefile(self.folder / self.config)
        return None if same else self.config


def this_process(config: Path | None) -> Process:
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # another process removed the folder
        folder = Path("/")
    return Process(config, dict(os.environ), Path(sys.executable), folder, host=os.uname().nodename)


def discover(process: Process) -> Commands:
    return _service(process) or _container(process) or _terminal(process)


def _service(process: Process) -> ServiceCommands | None:
    """Return the service whose configuration this process uses."""
    units = (process.root / folder / "systemd/system/socialpub-web.service" for folder in _UNIT_FOLDERS)
    unit = next(filter(_is_there, units), None)
    config = process.config_in_use()
    if unit is None or config is None:
        return None
    values = dict(line.split("=", 1) for line in unit.read_text("utf-8", "replace").splitlines() if "=" in line)
    program, *words = shlex.split(values.get("ExecStart", "")) or [""]
    if words[:2] != ["--config", str(config)]:
        return None
    user, confined = values.get("User", NAME), "INVOCATION_ID" in process.environ
    if any(_runs(process.root / folder / NAME, program) for folder in ("usr/local/bin", "usr/bin")):
        return ServiceCommands(path=program, user=user, confined=confined)
    return ServiceCommands(("sudo", f"--user={user}", program, *words[:2]), program, user, confined)


def _container(process: Process) -> ContainerCommands | None:
    """Return the container whose main process is socialpub. A shell in another container is a terminal."""
    if process.environ.get("container") == "podman" or _is_there(process.root / "run/.containerenv"):
        engine = "podman"
    elif _is_there(process.root / ".dockerenv"):
        engine = "docker"
    else:
        return None
    try:
        started = (process.root / "proc/1/cmdline").read_text("utf-8", "replace").split("\0")
        mounts = (process.root / "proc/self/mountinfo").read_text("utf-8", "replace")
    except OSError:
        return None
    if NAME not in {Path(word).name for word in started}:
        return None
    # The id of a container that runs only one command is not valid afterwards.
    stays = bool({"serve", "web", "worker", "demo"} & set(started))
    name = process.host if stays and re.fullmatch(r"[0-9a-f]{12}", process.host) else MANUAL_NAME
    volume = _VOLUME.search(mounts)
    return ContainerCommands(engine, name, volume[1] if volume else "FOLDER", process.config_to_name())


def _terminal(process: Process) -> TerminalCommands:
    script = process.executable.with_name(NAME)
    program, more = (script, []) if _is_there(script) else (process.executable, ["-m", NAME])
    found = shutil.which(NAME, path=process.environ.get("PATH"))
    if found and (Path(found).resolve() == script.resolve() or _runs(Path(found), str(script))):
        typed = [NAME]
    elif program.is_relative_to(process.folder):
        near = str(program.relative_to(process.folder))
        typed = [near if "/" in near else f"./{near}", *more]
    else:
        typed = [str(program), *more]
    return TerminalCommands(tuple(typed), (str(program), *more), process.config_to_name())


def _runs(script: Path, program: str) -> bool:
    """Return whether `install-service` made this script for the program."""
    try:
        return f"\nprogram={program}\n".encode() in script.read_bytes()
    except OSError:
        return False


def _is_there(file: Path) -> bool:
    return os.path.exists(file)  # noqa: PTH110  # `Path.exists` raises in folders that this user cannot read


def _may_exist(file: Path) -> bool:
    try:
        file.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


_here: Commands = TerminalCommands()
_in_public: ContextVar[bool] = ContextVar("in_public", default=False)
_in_dashboard: ContextVar[bool] = ContextVar("in_dashboard", default=False)


def detect(config: Path | None) -> None:
    """Detect the environment of this process. `config` is the value of its `--config`."""
    global _here  # a property of the process
    _here = discover(this_process(config))


@contextmanager
def in_public() -> Iterator[None]:
    """Leave the machine's paths out of commands, for people without a session or a key."""
    token = _in_public.set(True)
    try:
        yield
    finally:
        _in_public.reset(token)


@contextmanager
def in_dashboard() -> Iterator[None]:
    """Leave out commands for which the dashboard has a button (`or_run`)."""
    token = _in_dashboard.set(True)
    try:
        yield
    finally:
        _in_dashboard.reset(token)


def or_run(*words: str) -> str:
    """Return the end of a sentence about a button: ", or run `…`". Return an empty text in the dashboard."""
    return "" if _in_dashboard.get() else f", or run `{line(*words)}`"


def without_or_run(text: str) -> str:
    return re.sub(", or run `[^`]*`", "", text)


def here() -> Commands:
    """Return the commands for this process's environment."""
    return _here.in_public() if _in_public.get() else _here


def line(*words: str) -> str:
    """Return a command of socialpub for this environment: `line("admin", "list-keys")`."""
    return here().line(*words)


def this_line_as(user: str, config: Path | None) -> str:
    """Return this process's command for root, with the user that owns the files."""
    return here().line_as(user, *sys.argv[1:], config=config)


def is_container() -> bool:
    return isinstance(_here, ContainerCommands)


def is_service() -> bool:
    """Return whether systemd starts the appliance, so its output is in the journal."""
    return isinstance(_here, ServiceCommands)


def service_user() -> str | None:
    """Return the user of the service that this process belongs to, or None."""
    return _here.user if isinstance(_here, ServiceCommands) else None
