"""The wheel, built from a copy of the checkout: a build writes beside its source."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_THE_WHEEL = ("pyproject.toml", "README.md", "LICENSE", "config.example.toml", "systemd", "socialpub")


def build_wheel(folder: Path) -> Path:
    source = folder / "source"
    source.mkdir()
    for name in OF_THE_WHEEL:
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, source / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
         "--wheel-dir", str(folder), str(source)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built
