"""The files of an installed service: their places, the configuration, the command and the units.

Paths are those of the machine that the service runs on. A package is built in another folder (`destdir`), and `real`
returns the path of a file there. Nothing else is written.
"""

import os
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from socialpub.core import commands
from socialpub.core.command_forms import ServiceCommands
from socialpub.core.errors import OperatorError
from socialpub.core.settings import messages, template
from socialpub.core.settings.loader import Settings
from socialpub.ops.doctor import addresses

HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""The folders that ProtectHome= and PrivateTmp= of the units hide from the service."""


@dataclass(frozen=True)
class InstallationPlaces:
    programs: Path = Path("/opt/socialpub")
    configuration: Path = Path("/etc/socialpub")
    data: Path = Path("/var/lib/socialpub")
    commands: Path = Path("/usr/local/bin")
    # /etc/systemd/system is reserved for `systemctl edit --full` and `mask`, which take precedence.
    units: Path = Path("/usr/local/lib/systemd/system")
    user: str = "socialpub"
    destdir: Path | None = None

    def real(self, path: Path) -> Path:
        return path if self.destdir is None else self.destdir / path.relative_to("/")

    @property
    def environments(self) -> Path:
        return self.programs / "environments"

    @property
    def environment(self) -> Path:
        """The link to the environment in use, which is replaced atomically."""
        return self.programs / ".venv"

    @property
    def program(self) -> Path:
        return self.environment / "bin" / "socialpub"

    @property
    def config(self) -> Path:
        return self.configuration / "config.toml"

    @property
    def command(self) -> Path:
        return self.commands / "socialpub"

    def checked(self) -> "InstallationPlaces":
        """Return the same places if a service can use them. Raises OperatorError."""
        for name in ("programs", "configuration", "data", "commands", "units"):
            path: Path = getattr(self, name)
            if not path.is_absolute() or ".." in path.parts or not str(path).isprintable() or " " in str(path):
                raise OperatorError(
                    f"Units cannot refer to the folder {path}.", "Choose an absolute path without spaces, such as /opt."
                )
        for path in (self.programs, self.configuration, self.data):
            if is_hidden(path):
                raise OperatorError(
                    f"The service cannot see {path}: home folders and temporary folders are hidden from services.",
                    "Choose another folder, such as one below /opt, /etc or /var/lib.",
                )
        if self.user == "root":
            raise OperatorError("The service must not run as root.", "Choose another user: --user socialpub")
        return self

    def with_data(self, folder: Path) -> "InstallationPlaces":
        return replace(self, data=folder)


DEFAULT_PLACES = InstallationPlaces()


def is_hidden(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in HIDDEN)


# --- steps ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstallationStep:
    sentence: str
    do: Callable[[], object]


def file_step(
    real: Path, shown: Path, text: str, mode: int, owner: tuple[int, int] | None
) -> Iterator[InstallationStep]:
    """Yield a step that writes this text to a file, unless the file contains the text."""
    if not real.is_symlink() and real.exists() and real.read_text() == text:
        return

    def write() -> None:
        make_folder(real.parent, 0o755, None)
        fresh = real.with_name(f".{real.name}.new")
        fresh.write_text(text)
        set_owner(fresh, mode, owner)
        fresh.rename(real)

    yield InstallationStep(f"{'Renew' if real.exists() else 'Write'} {shown}", write)


def make_folder(real: Path, mode: int, owner: tuple[int, int] | None) -> None:
    missing = [path for path in (real, *real.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        path.chmod(0o755)
    if real in missing:
        set_owner(real, mode, owner)


def set_owner(real: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """Set the mode and the owner (the numbers of a user and a group). None keeps the owner."""
    if owner is not None:
        os.chown(real, *owner)
    real.chmod(mode)


# --- the configuration ------------------------------------------------------------------------------------------------

NEEDED = ("listen", "data_dir")
"""The keys that the units need. Other keys may need credentials that only the services get."""


def read_config(places: InstallationPlaces) -> Settings:
    """Return the settings that the units depend on. Raises OperatorError."""
    file = places.real(places.config)
    written = file.read_text("utf-8-sig") if file.exists() else template.config_for(places.data)
    try:
        values = tomllib.loads(written)
        return Settings.model_validate(
            {name: values[name] for name in NEEDED if name in values}, context={"folder": places.configuration}
        )
    except tomllib.TOMLDecodeError as error:
        mistake, remedy = messages.explain_toml(written, error)
        raise OperatorError(f"{file} {mistake}.", remedy) from None
    except ValidationError as error:
        name = ".".join(map(str, error.errors()[0]["loc"]))
        raise OperatorError(
            f"{file}: {name} cannot be used.",
            f"Correct the value. `{commands.line('config', '--example')}` explains every key.",
        ) from None


def config_refusal(program: Path, config: Path, identity: Mapping[str, Any]) -> str:
    """Return the reason why a version refuses a configuration, or an empty text."""
    return _failure(identity, program, "--config", config, "config")


def make_secret(places: InstallationPlaces, program: Path, identity: Mapping[str, Any]) -> None:
    """Create secret.key as the service's user. Raises OperatorError."""
    if failure := _failure(identity, program, "--config", places.config, "init", "--new-secret"):
        raise OperatorError(f"secret.key could not be created. {failure}")


def _failure(identity: Mapping[str, Any], *words: str | Path) -> str:
    """Run a program as the service's user. Return its error output if it failed."""
    done = subprocess.run(  # noqa: S603
        [*map(str, words)], capture_output=True, text=True, check=False, cwd="/", env={"LANG": "C.UTF-8"}, **identity
    )
    return (done.stderr.strip() or f"The exit code is {done.returncode}.") if done.returncode else ""


# --- the command `socialpub` ------------------------------------------------------------------------------------------

MARK = "# Made by `socialpub install-service`."


CALLING_COMMANDS = ("post", "status", "cancel", "retry", "profiles", "mcp")
"""The commands that call an appliance over HTTP. They need the key and the files of their own user."""


def script_text(places: InstallationPlaces) -> str:
    return f"""\
#!/bin/sh
{MARK} Commands of root run as the user that owns the files. Commands that
# change the installation or call an appliance over HTTP run as root. For other users, commands run unchanged.
program={places.program}
if [ "$(id -u)" != 0 ]; then
    exec "$program" "$@"
fi
case "${{1-}}" in install-service | uninstall-service | go-back | {" | ".join(CALLING_COMMANDS)})
    exec "$program" "$@" ;;
esac
export HOME={places.data}
exec setpriv --reuid={places.user} --regid={places.user} --init-groups --inh-caps=-all -- \\
    "$program" --config {places.config} "$@"
"""


def typed_commands(places: InstallationPlaces) -> ServiceCommands:
    program, config = str(places.program), str(places.config)
    if is_foreign_command(places):
        return ServiceCommands(("sudo", f"--user={places.user}", program, "--config", config), program, places.user)
    return ServiceCommands(path=program, user=places.user)


def is_foreign_command(places: InstallationPlaces) -> bool:
    """Return whether the command belongs to another program, for example after `pipx install --global`."""
    path = places.real(places.command)
    if path.is_symlink():
        return True
    return path.exists() and MARK.encode() not in path.read_bytes()


# --- units ------------------------------------------------------------------------------------------------------------

_FILES = resources.files("socialpub.cli") / "examples"
_KINDS = (".service", ".socket", ".timer")
SOCKET = "socialpub-web.socket"
ADDRESSES = f"{SOCKET}.d/listen.conf"
_STATE = Path("/var/lib")


def installed_units(places: InstallationPlaces) -> list[str]:
    return sorted(path.name for path in places.units.glob("socialpub-*") if path.suffix in _KINDS)


def unit_texts(places: InstallationPlaces, settings: Settings) -> dict[str, str]:
    """Return every file by its name, relative to the folder of the units."""
    found = {
        file.name: _fitted(file.read_text("utf-8"), places)
        for file in sorted(_FILES.iterdir(), key=lambda file: file.name)
        if file.name.startswith("socialpub-") and file.name.endswith(_KINDS)
    }
    if SOCKET in found:
        found[ADDRESSES] = "\n".join([
            "# The value of `listen` in the configuration. install-service writes this file again.",
            "[Socket]",
            "BindIPv6Only=both",
            "ListenStream=",
            *(f"ListenStream={address}" for address in addresses.resolve_listen(settings)),
            "",
        ])  # fmt: skip
    return found


def _fitted(text: str, places: InstallationPlaces) -> str:
    for usual, wanted in (
        (DEFAULT_PLACES.programs, places.programs),
        (DEFAULT_PLACES.configuration, places.configuration),
        (DEFAULT_PLACES.data, places.data),
    ):
        text = text.replace(str(usual), str(wanted))
    for key in ("User", "Group"):
        text = text.replace(f"\n{key}={DEFAULT_PLACES.user}\n", f"\n{key}={places.user}\n")
    if places.data == DEFAULT_PLACES.data:
        return text
    return "\n".join(line for before in text.split("\n") for line in _with_data(before, places.data))


def _with_data(line: str, data: Path) -> list[str]:
    """Adapt a line of a unit to another data folder. systemd creates only folders below /var/lib."""
    below = data.is_relative_to(_STATE)
    if line.startswith("StateDirectory=") and below:
        return [f"StateDirectory={data.relative_to(_STATE)}"]
    return [] if line.startswith("StateDirectory") and not below else [line]
