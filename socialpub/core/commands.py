"""Commands as a person types them: they begin with the words by which this program was started.

Only restart and stop differ between a service, a container and a terminal.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path

NAME = USER = "socialpub"
CONFIG_VARIABLE = "SOCIALPUB_CONFIG"
URL_VARIABLE, KEY_VARIABLE = "SOCIALPUB_URL", "SOCIALPUB_KEY"  # of the commands that call an appliance: no settings
USUAL_FILES = (Path("config.toml"), Path("/etc/socialpub/config.toml"))
"""The places of the configuration if neither `--config` nor the variable contains a file name."""
PREFIX = Path("/opt/socialpub/.venv")  # the environment of `make install` and of the image
SYSTEMD, CONTAINER = "systemctl", "appliance"
UNITS = ("socialpub-web.socket", *(SERVICES := ("socialpub-web", "socialpub-worker")))

_config: Path | None = None  # a property of the process: the value of its `--config`
_in_public: ContextVar[bool] = ContextVar("in_public", default=False)
_in_dashboard: ContextVar[bool] = ContextVar("in_dashboard", default=False)


def repeat_config(config: Path | None) -> None:
    """Repeat this value of `--config` in every command."""
    global _config
    _config = config


def line(*words: str) -> str:
    """Return a command of socialpub: `line("admin", "list-keys")`."""
    reads_none = words[0] in ("config", "demo", "init", "manual", "sandbox") and words[-1] != "--new-secret"
    option = () if _config is None or _in_public.get() or is_service() or reads_none else ("--config", str(_config))
    return shlex.join([*started_with(), *option, *words])


def started_with() -> tuple[str, ...]:
    """Return `socialpub` if PATH finds this program, else its path. The service adds `sudo`."""
    if is_service():
        return "sudo", NAME
    on_path, script = shutil.which(NAME), Path(sys.executable).with_name(NAME)
    # In the environment of `make install`, PATH finds the wrapper of this program.
    is_on_path = on_path is not None and (Path(sys.prefix) == PREFIX or Path(on_path).resolve() == script.resolve())
    return (NAME if is_on_path or _in_public.get() else str(script),)


def this_line_as(user: str, config: Path | None) -> str:
    """Return this process's command for root, with the user that owns the files."""
    words = sys.argv[3:] if sys.argv[1:2] == ["--config"] else sys.argv[1:]
    if is_service():
        return line(*words)
    program = str(Path(sys.executable).with_name(NAME))  # sudo has another PATH, and removes SOCIALPUB_CONFIG
    return shlex.join(["sudo", "-u", user, program, *(["--config", str(config)] if config else []), *words])


def system_line(*words: str, root: bool = False) -> str:
    """Return a system command for the appliance's files. `root`: only root may run it."""
    return shlex.join(["sudo", *words] if root or is_service() else words)


def manager() -> str:
    """Return the program that restarts the appliance: systemctl, podman or docker. Empty: a person in a terminal."""
    if Path(sys.prefix) != PREFIX:
        return ""
    named = _config or os.environ.get(CONFIG_VARIABLE) or (USUAL_FILES[0] if USUAL_FILES[0].exists() else None)
    if Path(named or USUAL_FILES[1]) == USUAL_FILES[1] and Path("/run/systemd/system").exists():
        return SYSTEMD
    is_podman = os.environ.get("container") == "podman" or Path("/run/.containerenv").exists()  # noqa: SIM112
    return "podman" if is_podman else "docker" if Path("/.dockerenv").exists() else ""


def is_service() -> bool:
    return manager() == SYSTEMD


def restart(*services: str) -> str:
    """Return the instruction to restart the appliance or these services, without a period at the end."""
    return _manage("restart", services or SERVICES) or f"Stop `{line('serve')}` and start it again"


def stop() -> str:
    return _manage("stop", UNITS) or f"Stop `{line('serve')}`"


def start(*services: str) -> str:
    return _manage("start", services or UNITS) or f"Start `{line('serve')}`"


def _manage(verb: str, units: tuple[str, ...]) -> str:
    words = ["sudo", SYSTEMD, verb, *units] if is_service() else [manager(), verb, CONTAINER]
    return f"Run `{shlex.join(words)}`" if manager() else ""


def log(*services: str) -> str:
    """Return the place of the log, as the object of "Read"."""
    units = " ".join(f"--unit={service}" for service in services or SERVICES)
    logs = {SYSTEMD: f"`sudo journalctl {units} --lines=50`", "": f"the output of `{line('serve')}`"}
    return logs.get(manager(), f"`{manager()} logs {CONTAINER}`")


@contextmanager
def _shown_to(reader: ContextVar[bool]) -> Iterator[None]:
    token = reader.set(True)
    try:
        yield
    finally:
        reader.reset(token)


in_public = partial(_shown_to, _in_public)
"""Leave the machine's paths out of commands, for people without a session or a key."""
in_dashboard = partial(_shown_to, _in_dashboard)
"""Leave out commands for which the dashboard has a button (`or_run`)."""


def or_run(*words: str) -> str:
    """Return the end of a sentence about a button: ", or run `…`". Return an empty text in the dashboard."""
    return "" if _in_dashboard.get() else f", or run `{line(*words)}`"
