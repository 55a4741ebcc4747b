"""The environment that the service runs from: built beside the one in use, tried as the service's user, then put in its
place in one moment. Whatever fails before, the former version goes on unchanged.
"""

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from socialpub.cli.installation import interpreter, packages
from socialpub.cli.installation.interpreter import ServiceInterpreter
from socialpub.cli.installation.places import InstallationPlaces, is_hidden
from socialpub.core import version
from socialpub.core.errors import OperatorError
from socialpub.ops import former_version

_PARTIAL = ".partial"
_PROBE = """
import json, sys
import socialpub.cli.serve, socialpub.worker.process, socialpub.ops.copies.backup
import av, magic, PIL.Image, uvloop, httptools, cryptography.hazmat.bindings._rust, argon2
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps([sys.prefix, sys.base_prefix, *sorted(path for path in maps if path.startswith("/"))]))
"""


def is_running(places: InstallationPlaces) -> bool:
    """Whether this very program is the installed one."""
    return places.destdir is None and _is_ours(places) and places.environment.resolve() == Path(sys.prefix).resolve()


def refuse_checkout(places: InstallationPlaces) -> None:
    """Raises OperatorError where the place of the environments is a checkout's, as former versions told it."""
    if (places.real(places.programs) / "pyproject.toml").exists():
        raise OperatorError(
            f"{places.programs} holds a checkout, and the installed programs belong there.",
            "Move the checkout elsewhere, such as /usr/local/src/socialpub, and install from there.",
        )


def build(places: InstallationPlaces, python: ServiceInterpreter) -> Path:
    """A new environment with socialpub as it is installed here; its path. It is not in use yet."""
    folder = _free_name(places)
    real = places.real(folder)
    for leftover in real.parent.glob(f"*{_PARTIAL}"):
        shutil.rmtree(leftover)
    building = real.with_name(f"{real.name}{_PARTIAL}")
    site = building / "lib" / interpreter.NAME / "site-packages"
    site.mkdir(parents=True)
    try:
        _fill(building, folder, python)
        packages.copy(packages.needed(), site)
        _compile(site, folder / site.relative_to(building))
        building.rename(real)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return folder


def check(places: InstallationPlaces, folder: Path, identity: Mapping[str, Any]) -> None:
    """Have it load all that it consists of, as the service's user. Raises OperatorError, and removes it."""
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
            f"{Path(sys.base_prefix)}, the Python that socialpub runs with here, cannot run it as a service: {why}.",
            "Install socialpub with a Python that is not in a home folder, such as the system's: "
            "pipx install --python /usr/bin/python3 ./dist/socialpub-*.whl, or in a checkout: "
            "make PYTHON=/usr/bin/python3 clean install",
        )


def put_in_place(places: InstallationPlaces, folder: Path) -> None:
    """Have `.venv` lead to it."""
    link = places.real(places.environment)
    if link.is_dir() and not link.is_symlink():
        link.rename(places.real(places.environments) / "before-install-service")
    fresh = link.with_name(".venv.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.relative_to(places.programs))
    fresh.rename(link)


def remove_others(places: InstallationPlaces, kept: set[str]) -> None:
    """Remove the environments of former versions but for those named, and for the one that `go-back` uses."""
    former = former_version.find(places.real(places.environment).resolve())
    if former is not None:
        kept = kept | {former.folder.name}
    for folder in places.real(places.environments).iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder)


def in_use(places: InstallationPlaces) -> str | None:
    """The name of the environment that `.venv` leads to."""
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
    """What makes a folder an environment (PEP 405), and the command."""
    programs = building / "bin"
    programs.mkdir()
    if python.copied_from is None:
        (programs / "python").symlink_to(python.executable)
        home = python.executable.parent
    else:
        executable = interpreter.copy(python, building / "base")
        (programs / "python").symlink_to(Path("..", "base") / executable)
        home = folder / "base" / executable.parent
    for name in ("python3", interpreter.NAME):
        (programs / name).symlink_to("python")
    (building / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    # By the environment's own path, not the link's: what runs keeps its version while another takes the link.
    script = programs / "socialpub"
    script.write_text(f"#!{folder}/bin/python\nimport sys\n\nfrom socialpub.cli import main\n\nsys.exit(main())\n")
    script.chmod(0o755)


def _compile(site: Path, told: Path) -> None:
    """The service may not write here, and would compile everything at each start."""
    compileall.compile_dir(site, quiet=2, stripdir=str(site), prependdir=str(told), workers=0)
