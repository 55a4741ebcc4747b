"""The Python environment of the service.

A new environment is built beside the current one, tested as the service's user, and then linked atomically. An earlier
failure leaves the version in use unchanged. Nothing is downloaded: the service uses the packages of this installation.
"""

import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import socialpub
from socialpub.cli.install.files import InstallationPlaces, is_hidden
from socialpub.core import version
from socialpub.core.errors import OperatorError
from socialpub.ops.backup import rollback

PYTHON_NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
SYSTEM_FOLDERS = (Path("/usr/bin"), Path("/usr/local/bin"))
_ABOUT = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_config_var('SOABI'))"
PACKAGE_NAME = "socialpub"
_LEFT_OUT = ("__pycache__", "site-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "*.a")


@dataclass(frozen=True, slots=True)
class ServiceInterpreter:
    """A Python that the service's user can execute although home folders are hidden."""

    executable: Path
    copied_from: Path | None = None
    """The Python installation to copy into the environment. None: no copy is needed."""


def choose_interpreter() -> ServiceInterpreter:
    """Return the Python of this command if the service sees it, or the system's Python of the same version.

    Otherwise, the Python of this command must be copied, which works if it is relocatable (like uv's).
    """
    own = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    for candidate in (own, *(folder / PYTHON_NAME for folder in SYSTEM_FOLDERS)):
        if is_visible(candidate) and (candidate == own or _is_the_same(candidate)):
            return ServiceInterpreter(candidate.resolve())
    return ServiceInterpreter(own, copied_from=Path(sys.base_prefix).resolve())


def is_visible(executable: Path) -> bool:
    """Return whether an unprivileged user can execute the file in a unit."""
    path = executable.resolve()
    if not path.is_file() or is_hidden(path) or path.stat().st_mode & 0o005 != 0o005:
        return False
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def _is_the_same(executable: Path) -> bool:
    """Return whether compiled packages of this Python also run with that Python."""
    asked = subprocess.run(  # noqa: S603
        [executable, "-I", "-c", _ABOUT], capture_output=True, text=True, check=False, cwd="/"
    )
    return asked.stdout.strip() == f"{tuple(sys.version_info[:2])} {sysconfig.get_config_var('SOABI')}"


# --- packages --------------------------------------------------------------------------------------------------------


def needed_packages() -> list[Distribution]:
    """Return socialpub and all its requirements with their extras, without development tools."""
    found: dict[str, Distribution] = {}
    waiting, seen = [(PACKAGE_NAME, "")], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        try:
            package = found.setdefault(canonicalize_name(name), distribution(name))
        except PackageNotFoundError:
            raise OperatorError(
                f"The Python package {name} is missing.",
                "Install socialpub again. The configuration and the data stay.",
            ) from None
        for line in package.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]
    return list(found.values())


def copy_packages(packages: list[Distribution], site: Path) -> None:
    """Copy the modules of the packages into the folder `site`, readable for all. Raises OperatorError."""
    for package in packages:
        if canonicalize_name(package.name) == PACKAGE_NAME and _is_linked(package):
            _copy_checkout(package, site)
        elif package.files is None:
            raise OperatorError(
                f"The files of the package {package.name} are unknown: it was not installed by pip or uv.",
                "Install socialpub into its own environment: pipx install ./dist/socialpub-*.whl",
            )
        else:
            for file in package.files:
                # Scripts and man pages are outside the module folder.
                if ".." not in file.parts and not file.is_absolute() and "__pycache__" not in file.parts:
                    (site / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(Path(str(package.locate_file(file))), site / file)
    _open_to_all(site)


def _is_linked(package: Distribution) -> bool:
    """Return whether the environment only links to a checkout, as after `make setup`."""
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable")) or package.read_text("RECORD") is None


def _copy_checkout(package: Distribution, site: Path) -> None:
    """Copy the code of the checkout, with its current version in the metadata."""
    shutil.copytree(Path(socialpub.__file__).parent, site / PACKAGE_NAME, ignore=shutil.ignore_patterns("__pycache__"))
    stated = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
    described = site / f"{PACKAGE_NAME}-{version.current()}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        re.sub(r"^Version: .*$", f"Version: {version.current()}", stated, count=1, flags=re.MULTILINE)
    )


def _open_to_all(folder: Path) -> None:
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files, "."):
            entry = Path(path, name)
            if not entry.is_symlink():
                entry.chmod(0o755 if entry.is_dir() or entry.stat().st_mode & 0o100 else 0o644)


# --- the environment -------------------------------------------------------------------------------------------------

_PARTIAL = ".partial"
_PROBE = """
import json, sys
import socialpub.web.http.server, socialpub.worker.process, socialpub.ops.backup.create
import av, magic, PIL.Image, uvloop, httptools, cryptography.hazmat.bindings._rust, argon2
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps([sys.prefix, sys.base_prefix, *sorted(path for path in maps if path.startswith("/"))]))
"""


def is_running(places: InstallationPlaces) -> bool:
    """Return whether this process runs the installed program."""
    return places.destdir is None and _is_ours(places) and places.environment.resolve() == Path(sys.prefix).resolve()


def refuse_checkout(places: InstallationPlaces) -> None:
    """Raise OperatorError if a checkout is in the folder of the environments, as earlier versions required."""
    if (places.real(places.programs) / "pyproject.toml").exists():
        raise OperatorError(
            f"{places.programs} contains a checkout, but this folder is for the installed programs.",
            "Move the checkout, for example to /usr/local/src/socialpub, and install from there.",
        )


def build(places: InstallationPlaces, python: ServiceInterpreter) -> Path:
    """Build an environment with the packages of this installation. Return its path."""
    folder = _free_name(places)
    real = places.real(folder)
    for leftover in real.parent.glob(f"*{_PARTIAL}"):
        shutil.rmtree(leftover)
    building = real.with_name(f"{real.name}{_PARTIAL}")
    site = building / "lib" / PYTHON_NAME / "site-packages"
    site.mkdir(parents=True)
    try:
        _fill(building, folder, python)
        copy_packages(needed_packages(), site)
        _compile(site, folder / site.relative_to(building))
        building.rename(real)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return folder


def check(places: InstallationPlaces, folder: Path, identity: Mapping[str, Any]) -> None:
    """Load all modules as the service's user. If this fails, remove the environment and raise OperatorError."""
    real = places.real(folder)
    asked = subprocess.run(  # noqa: S603
        [real / "bin" / "python", "-I", "-c", _PROBE],
        capture_output=True, text=True, check=False, cwd="/", env={"LANG": "C.UTF-8"}, **identity,
    )  # fmt: skip
    why = asked.stderr.strip().rpartition("\n")[2] if asked.returncode else ""
    if not why:
        loaded = map(Path, json.loads(asked.stdout))
        unseen = [path for path in loaded if is_hidden(path) and not path.is_relative_to(real)]
        why = f"it loads {unseen[0]}, which is hidden from a service" if unseen else ""
    if why:
        shutil.rmtree(real)
        raise OperatorError(
            f"The Python of this socialpub, {Path(sys.base_prefix)}, cannot run the service: {why}.",
            "Install socialpub with a Python outside of home folders: "
            "pipx install --python /usr/bin/python3 ./dist/socialpub-*.whl. In a checkout: "
            "make PYTHON=/usr/bin/python3 clean install",
        )


def put_in_place(places: InstallationPlaces, folder: Path) -> None:
    """Link `.venv` to the environment."""
    link = places.real(places.environment)
    if link.is_dir() and not link.is_symlink():
        link.rename(places.real(places.environments) / "before-install-service")
    fresh = link.with_name(".venv.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.relative_to(places.programs))
    fresh.rename(link)


def remove_others(places: InstallationPlaces, kept: set[str]) -> None:
    """Remove the environments of earlier versions, except `kept` and the environment that `go-back` uses."""
    former = rollback.find_former(places.real(places.environment).resolve())
    if former is not None:
        kept = kept | {former.folder.name}
    for folder in places.real(places.environments).iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder)


def in_use(places: InstallationPlaces) -> str | None:
    """Return the name of the linked environment, or None."""
    return places.real(places.environment).readlink().name if _is_ours(places) else None


def _is_ours(places: InstallationPlaces) -> bool:
    link = places.real(places.environment)
    return link.is_symlink() and link.readlink().parent == places.environments.relative_to(places.programs)


def _free_name(places: InstallationPlaces) -> Path:
    number, name = 1, version.current()
    folder = places.environments / name
    while os.path.lexists(places.real(folder)):
        number += 1
        folder = places.environments / f"{name}-{number}"
    return folder


def _fill(building: Path, folder: Path, python: ServiceInterpreter) -> None:
    """Write the files of a virtual environment (PEP 405), and the command."""
    programs = building / "bin"
    programs.mkdir()
    if python.copied_from is None:
        (programs / "python").symlink_to(python.executable)
        home = python.executable.parent
    else:
        shutil.copytree(python.copied_from, building / "base", symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        _open_to_all(building / "base")
        executable = python.executable.relative_to(python.copied_from)
        (programs / "python").symlink_to(Path("..", "base") / executable)
        home = folder / "base" / executable.parent
    for name in ("python3", PYTHON_NAME):
        (programs / name).symlink_to("python")
    (building / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    # With the environment's own path, a running program keeps its version when the link changes.
    script = programs / "socialpub"
    script.write_text(f"#!{folder}/bin/python\nimport sys\n\nfrom socialpub.cli.main import main\n\nsys.exit(main())\n")
    script.chmod(0o755)


def _compile(site: Path, shown: Path) -> None:
    """Compile all modules, because the service cannot write compiled files here."""
    compileall.compile_dir(site, quiet=2, stripdir=str(site), prependdir=str(shown), workers=0)
