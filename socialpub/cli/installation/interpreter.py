"""Which Python runs the service: one that its user can execute, though home folders are hidden from it.

The one that this command runs with, if the service sees it; else the system's own of the same version; else a copy of
the first, which is only possible where it can be moved (uv's can).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from socialpub.cli.installation.places import is_hidden

NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
SYSTEM_FOLDERS = (Path("/usr/bin"), Path("/usr/local/bin"))
_ABOUT = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_config_var('SOABI'))"
_LEFT_OUT = ("__pycache__", "site-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "*.a")


@dataclass(frozen=True, slots=True)
class ServiceInterpreter:
    """`copied_from` is the folder of an installation of Python that has to come along; None: it is used as it lies."""

    executable: Path
    copied_from: Path | None = None


def choose() -> ServiceInterpreter:
    own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    for candidate in (own, *(folder / NAME for folder in SYSTEM_FOLDERS)):
        if is_visible(candidate) and (candidate == own or _is_the_same(candidate)):
            return ServiceInterpreter(candidate.resolve())
    return ServiceInterpreter(own, copied_from=Path(sys.base_prefix).resolve())


def is_visible(executable: Path) -> bool:
    """Whether a user without any rights can execute it in the surroundings of a unit."""
    path = executable.resolve()
    if not path.is_file() or is_hidden(path) or path.stat().st_mode & 0o005 != 0o005:
        return False
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def copy(interpreter: ServiceInterpreter, folder: Path) -> Path:
    """Bring the installation of Python into `folder`; the program there, relative to it."""
    assert interpreter.copied_from is not None
    shutil.copytree(
        interpreter.copied_from, folder, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True
    )
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            entry = Path(path, name)
            if not entry.is_symlink():
                executable = entry.is_dir() or entry.stat().st_mode & 0o100
                entry.chmod(0o755 if executable else 0o644)
    return interpreter.executable.relative_to(interpreter.copied_from)


def _is_the_same(executable: Path) -> bool:
    """Whether what was compiled for this Python runs with that one."""
    asked = subprocess.run(  # noqa: S603
        [executable, "-I", "-c", _ABOUT], capture_output=True, text=True, check=False, cwd="/"
    )
    return asked.stdout.strip() == f"{tuple(sys.version_info[:2])} {sysconfig.get_config_var('SOABI')}"
