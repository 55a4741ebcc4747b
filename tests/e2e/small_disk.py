"""A disk of a few megabytes for an installation's data, mounted where only its own processes see it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.installation import Installation

MOUNT = 'mount -t tmpfs -o size="$0" tmpfs "$1" && echo mounted && exec sleep infinity'
READ = (
    "import json, sqlite3, sys\n"
    "with sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True) as database:\n"
    "    print(json.dumps(database.execute(sys.argv[2]).fetchall()))"
)


class SmallDisk:
    """Everything that the installation starts from now on has its data folder there; others reach it by `path`."""

    def __init__(self, installation: Installation, size_bytes: int = 8 * 1024 * 1024) -> None:
        """With the present files of the data folder. Skips the test where nothing can be mounted."""
        installation.data.mkdir(exist_ok=True)
        self._keeper = subprocess.Popen(
            ["unshare", "-rm", "sh", "-c", MOUNT, str(size_bytes), str(installation.data)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != b"mounted\n":
            self.close()
            pytest.skip("a small disk cannot be mounted here (unshare -rm mount)")
        self.path = Path(f"/proc/{self._keeper.pid}/root{installation.data}")
        shutil.copytree(installation.data, self.path, dirs_exist_ok=True)
        (self.path / "run").mkdir(exist_ok=True, mode=0o700)
        self.path.chmod(0o700)
        self._filler = self.path / "filler"
        self._database = installation.data / "socialpub.db"
        installation.within = self._within = (
            "nsenter",
            "-t",
            str(self._keeper.pid),
            "-U",
            "-m",
            "--preserve-credentials",
        )

    def fill(self, *, but: int = 0) -> None:
        """Leave this number of bytes."""
        filled = False
        while not filled:
            self.empty()
            with (
                self._filler.open("wb", buffering=0) as file,
                contextlib.suppress(OSError),
            ):  # a process wrote meanwhile
                free = os.statvfs(file.fileno())
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - but))
                filled = True

    def empty(self) -> None:
        self._filler.unlink(missing_ok=True)

    def rows(self, statement: str) -> list[list[Any]]:
        """Return the rows of a query. It runs inside the mount, where SQLite resolves `path` to the small disk."""
        done = subprocess.run(
            [*self._within, sys.executable, "-c", READ, str(self._database), statement], capture_output=True, check=True
        )
        return list(json.loads(done.stdout))

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.wait()
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()
