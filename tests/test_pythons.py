"""Every supported Python of this machine compiles every file."""

import subprocess
from pathlib import Path

import pytest

from tests import pythons

ROOT = Path(__file__).parents[1]
COMPILE = """
import sys, warnings
warnings.simplefilter("error")
for path in sys.stdin.read().splitlines():
    with open(path, encoding="utf-8") as file:
        try:
            compile(file.read(), path, "exec")
        except (SyntaxError, ValueError, Warning) as error:
            print(f"{path}: {error!r}")
"""


@pytest.mark.source
@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_every_file_compiles_without_a_warning(version: str) -> None:
    python = pythons.find(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    paths = [path for folder in ("socialpub", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 500
    source = "\n".join(map(str, paths))
    done = subprocess.run([python, "-c", COMPILE], input=source, capture_output=True, text=True, check=True)
    assert done.stdout == ""
