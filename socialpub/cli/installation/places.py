"""Where everything of an installed service lies.

Paths are those of the machine that the service runs on: they are what files say. A package is put together in another
folder (`destdir`), and `real` tells where a file lies meanwhile; nothing is ever written elsewhere.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from socialpub.core.errors import OperatorError

HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""What the units' ProtectHome= and PrivateTmp= take out of the service's sight."""


@dataclass(frozen=True)
class InstallationPlaces:
    programs: Path = Path("/opt/socialpub")
    configuration: Path = Path("/etc/socialpub")
    data: Path = Path("/var/lib/socialpub")
    commands: Path = Path("/usr/local/bin")
    # Not /etc/systemd/system: that stays its owner's, for `systemctl edit --full` and `mask`, which win over these.
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
        """A link to the environment in use: one version takes the place of another in one moment."""
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
        """The same, if a service can work there. Raises OperatorError."""
        for name in ("programs", "configuration", "data", "commands", "units"):
            path: Path = getattr(self, name)
            if not path.is_absolute() or ".." in path.parts or not str(path).isprintable() or " " in str(path):
                raise OperatorError(
                    f"{path} is no folder that units can name.", "Give an absolute path without spaces, such as /opt."
                )
        for path in (self.programs, self.configuration, self.data):
            if is_hidden(path):
                raise OperatorError(
                    f"The service may not see {path}: home folders and those for temporary files are hidden from it.",
                    "Choose a folder elsewhere, such as one below /opt, /etc or /var/lib.",
                )
        if self.user == "root":
            raise OperatorError("The service does not run as root.", "Give it a user of its own: --user socialpub")
        return self

    def with_data(self, folder: Path) -> "InstallationPlaces":
        return replace(self, data=folder)


USUAL = InstallationPlaces()


def is_hidden(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in HIDDEN)
