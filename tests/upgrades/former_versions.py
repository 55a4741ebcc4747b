"""The versions of the past that the history of migrations names: the last commit of each schema."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, socialpub
for module in pkgutil.walk_packages(socialpub.__path__, "socialpub."):
    if not module.name.endswith("__main__") and ".migrations" not in module.name:
        importlib.import_module(module.name)
"""


@dataclass(frozen=True, slots=True)
class FormerVersion:
    """`schema` is the migration that landed last; they did not land in the order of their numbers."""

    schema: str
    commit: str


def find() -> list[FormerVersion]:
    """Oldest first; the last one is the checkout's own commit."""
    log = _git("log", "--first-parent", "--reverse", "-M", "--diff-filter=A", "--format=:%H", "--name-only", "--")
    landed: list[tuple[str, str]] = []
    commit = ""
    for line in filter(None, log.splitlines()):
        if line.startswith(":"):
            commit = line[1:]
        else:
            landed.append((Path(line).stem, commit))
    ends = [f"{commit}^" for _, commit in landed[1:]] + ["HEAD"]
    return [
        FormerVersion(schema, _git("rev-parse", end).strip())
        for (schema, began), end, following in zip(landed, ends, [*(c for _, c in landed[1:]), ""], strict=True)
        if began != following  # two that landed together were never apart
    ]


@contextmanager
def checked_out(version: FormerVersion, folder: Path) -> Iterator[Path]:
    """The version's files, in this folder while it is needed. Of commits that do not run by themselves, the one before
    is taken."""
    _git("worktree", "add", "--detach", str(folder), version.commit)
    try:
        while subprocess.run([sys.executable, "-c", IMPORT_ALL], cwd=folder, capture_output=True).returncode:
            subprocess.run(["git", "checkout", "--quiet", "HEAD^"], cwd=folder, check=True)
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _git(command: str, *arguments: str) -> str:
    paths = ("socialpub/*/migrations/0*.py",) if command == "log" else ()
    done = subprocess.run(
        ["git", command, *arguments, *paths], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return done.stdout
