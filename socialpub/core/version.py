"""The version of socialpub.

`[tool.socialpub] release` in pyproject.toml is the number of the next release. The commit with the tag `v<release>` is
that release. Every other commit is a development version (PEP 440): `1.1.0.dev12+g202258f` is twelve commits after the
previous tag. The metadata of an installed package contain its version. setuptools loads only this file, so this file
imports nothing of socialpub.
"""

import os
import re
import shutil
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The top folder of a checkout or a source distribution, or the folder of the installed packages."""
UNKNOWN = "0+unknown"
GIT_SECONDS = 5.0

_RELEASE = re.compile(r'^release = "([^"]+)"$', re.MULTILINE)
"""The line with the release. A TOML parser would take longer than everything else here."""
_DESCRIBED = re.compile(r"(?:(?P<tag>.+)-(?P<commits>\d+)-g)?(?P<commit>[0-9a-f]{7,})(?P<dirty>-dirty)?")


@cache
def current() -> str:
    """Return the version of the running code. In a checkout, start git once per process."""
    if (ROOT / "pyproject.toml").is_file():
        return read_source(ROOT)
    return next(filter(None, map(_stated, sorted(ROOT.glob("socialpub-*.dist-info/METADATA")))), UNKNOWN)


def for_build() -> str:
    """Return the version for a package built from this source. setuptools calls this function."""
    return read_source(ROOT)


def read_source(root: Path) -> str:
    """Return the version of a source tree: from git, from a source distribution, or from the next release."""
    release = read_release(root)
    if (root / ".git").exists() and (version := _describe_checkout(root, release)) is not None:
        return version
    return _stated(root / "PKG-INFO") or f"{release}.dev0"


def read_release(root: Path) -> str:
    """Return the number of the next release."""
    found = _RELEASE.search((root / "pyproject.toml").read_text("utf-8"))
    assert found is not None, "pyproject.toml does not contain a release"
    return found[1]


def _describe_checkout(root: Path, release: str) -> str | None:
    """Return None if git is missing or refuses to read this checkout."""
    found = _DESCRIBED.fullmatch(
        _git(root, "describe", "--tags", "--long", "--dirty", "--always", "--match", "v[0-9]*") or ""
    )
    if found is None:
        return None
    tag, commits = found["tag"], found["commits"] or _git(root, "rev-list", "--count", "HEAD")
    if commits == "0" and tag != f"v{release}":  # the commit may also have the tag of a release candidate
        tag = _git(root, "tag", "--points-at", "HEAD", "--list", f"v{release}") or tag
    is_later = tag == f"v{release}"
    if is_later and commits == "0" and not found["dirty"]:
        return release
    local = f"+g{found['commit']}{'.dirty' if found['dirty'] else ''}"
    if is_later:  # what follows a release is newer than the release: raise its last number
        release = re.sub(r"\d+(?=\D*$)", lambda last: str(int(last[0]) + 1), release)
    return f"{release}.dev{commits}{local}"


def _git(root: Path, *arguments: str) -> str | None:
    import subprocess

    program = shutil.which("git")
    if program is None:
        return None
    # Variables of socialpub may contain secrets. GIT_DIR and others, which hooks set, refer to another repository.
    # Without optional locks, git does not disturb the owner's work.
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603
            [program, "-C", str(root), *arguments], env=clean | {"GIT_OPTIONAL_LOCKS": "0"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=GIT_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _stated(metadata: Path) -> str | None:
    """Return the version that a package's metadata states, or None."""
    try:
        with metadata.open(encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if not name.strip():
                    return None
                if name.lower() == "version":
                    return value.strip()
    except OSError:
        pass
    return None
