"""Tries socialpub with every supported Python of this machine: `python -m tests.pythons`.

Each Python gets a fresh clone of the current commit and its own environment. It runs the demo, the unit tests and the
decoder tests.
"""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
SUPPORTED = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DECODER_TESTS = [f"tests/integration/uploads/test_decoder_{name}.py" for name in ("process", "faults", "confinement")]
TRIED_TESTS = ("tests/unit", *DECODER_TESTS)


def find(version: str) -> Path | None:
    """Return a working Python of this version, from the PATH or from pyenv's folder."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep)]
    folders += map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    for folder in folders:
        python = Path(folder, f"python{version}")
        if python.is_file() and _runs(python):
            return python
    return None


def _runs(python: Path) -> bool:
    """Return whether this is a Python that can create environments. A shim of pyenv may lead to nothing."""
    command = [python, "-c", "import ensurepip, sqlite3, venv"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def try_python(python: Path, folder: Path) -> None:
    """Raise CalledProcessError."""

    def run(*command: str | Path) -> None:
        subprocess.run(command, cwd=folder, env=env, check=True)

    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS")}
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, folder)
    run("make", "--silent", "setup", f"PYTHON={python}")
    run(".venv/bin/socialpub", "demo", "--once", "--folder", folder / "build/demo")
    run("make", "--silent", ".venv/.dev-ready", f"PYTHON={python}")
    chosen = ("-m", "not endurance and not source", "-n", "3", "--dist", "worksteal")
    run(".venv/bin/python", "-m", "pytest", *chosen, *TRIED_TESTS)


def main() -> None:
    failed = []
    for version in VERSIONS:
        python = find(version)
        if python is None:
            print(f"Python {version} is not on the PATH or under ~/.pyenv/versions", flush=True)
            continue
        if f"{version}.0" not in SUPPORTED:
            print(f"Python {version} is not tried: requires-python is {SUPPORTED}", flush=True)
            continue
        began = time.monotonic()
        print(f"Trying Python {version}: {python}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"python{version}-") as folder:
            try:
                try_python(python, Path(folder))
            except subprocess.CalledProcessError as error:
                failed.append(f"Python {version}: {error}")
        print(f"Python {version} took {time.monotonic() - began:.0f} seconds", flush=True)
    sys.exit("\n".join(failed) or 0)  # `sys.exit("")` is a failure


if __name__ == "__main__":
    main()
