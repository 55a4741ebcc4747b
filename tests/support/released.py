"""A release of this checkout's commit, built by `make release`'s own program in a clone that has the tag."""

import os
import subprocess
import sys
from pathlib import Path

from socialpub.core import version
from tests import release

ROOT = Path(__file__).parents[2]
WHO = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")


class Clone:
    """A clone of the commit that is checked out here. `build` does what `make release` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.release = release.next_release()
        self.dist = folder / "dist"
        subprocess.run(["git", "clone", "--quiet", "--no-tags", ROOT, folder], check=True)

    def git(self, *words: str) -> None:
        subprocess.run(["git", *WHO, *words], cwd=self.folder, check=True, capture_output=True)

    def set_version(self) -> None:
        constants = self.folder / "socialpub/core/version.py"
        constants.write_text(constants.read_text().replace(version.VERSION, self.release))
        self.git("commit", "--quiet", "--all", "--allow-empty", "--message", "The version of the release")

    def write_date(self) -> None:
        """Have the changelog say when it was released."""
        changelog = self.folder / "socialpub/manual/changelog.md"
        changelog.write_text(changelog.read_text().replace("Not released yet.", "Released on 2026-12-01."))
        self.git("commit", "--quiet", "--all", "--allow-empty", "--message", "The release")

    def build(self, **environ: str) -> "subprocess.CompletedProcess[str]":
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"BUILDER": ""} | environ
        return subprocess.run(
            [sys.executable, "-m", "tests.release"],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
