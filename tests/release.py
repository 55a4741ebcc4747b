"""A release of the commit that is checked out: wheel, source distribution, container image, checksums and notes.

    make release

The commit has the version of the release in `core/version.py` and its tag (`v1.1.0`), and no file differs from it.
`ANYWAY=1` builds any other commit. Everything is built from what git has, in a folder of its own. The wheel is built
from the source distribution, so both have the same content. Without podman, docker or buildah there is no image.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from socialpub.core import version

ROOT = Path.cwd()
DIST = ROOT / "dist"
CHANGELOG = Path("socialpub", "manual", "changelog.md")
UNRELEASED = "Not released yet."
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


class Refused(Exception):
    """This commit is no release."""


def main() -> None:
    anyway, builder = bool(os.environ.get("ANYWAY")), shlex.split(os.environ.get("BUILDER", ""))
    built = version.VERSION
    try:
        notes = section(ROOT / CHANGELOG, next_release())
        if not anyway:
            refuse_unreleased(built, notes)
    except Refused as refused:
        sys.exit(f"{refused}\nTo build it anyway, as {built}: make release ANYWAY=1")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        archive = run("git", "archive", "HEAD")
        subprocess.run(["tar", "-x", "-C", name], input=archive, check=True)
        build_packages(source)
        if builder:
            build_image(source, builder, built)
        else:
            print("There is no podman, docker or buildah here: the image is left out.", file=sys.stderr)
    (DIST / f"socialpub-{built}-notes.md").write_text(notes)
    sums = [f"{digest(path)}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    for path in sorted(DIST.iterdir()):
        print(path.relative_to(ROOT))


def next_release() -> str:
    return version.VERSION.removesuffix(".dev0")


def refuse_unreleased(built: str, notes: str) -> None:
    """Raise Refused for a commit without the tag, a tree with changes, and a changelog that knows no release."""
    if run("git", "status", "--porcelain"):
        raise Refused("Files differ from the commit: commit them, or remove them.")
    if built != next_release():
        raise Refused(f"The commit is {built}. Set the version of the release in socialpub/core/version.py.")
    if f"v{built}" not in run("git", "tag", "--points-at", "HEAD").decode().split():
        raise Refused(f"The commit has no tag. Tag the commit of the release: git tag v{built}")
    if UNRELEASED in notes:
        raise Refused(f"{CHANGELOG} says of {built}: {UNRELEASED} Write when it was released.")


def section(changelog: Path, release: str) -> str:
    """Return what the changelog says of a release, with its heading. Raise Refused if it says nothing."""
    found = re.search(
        rf"^## {re.escape(release)}\b.*?(?=^## |\Z)", changelog.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise Refused(f"{CHANGELOG} has no section for {release}.")
    return found[0].strip() + "\n"


def build_packages(source: Path) -> None:
    # Files in both have the time of the commit, so that two builds of it are equal.
    env = os.environ | {"SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").decode().strip()}
    subprocess.run(
        [sys.executable, "-c", BUILD_SDIST, DIST], cwd=source, env=env, stdout=subprocess.DEVNULL, check=True
    )
    (sdist,) = DIST.glob("*.tar.gz")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--wheel-dir", DIST, sdist],
        env=env, check=True,
    )  # fmt: skip


def build_image(source: Path, builder: list[str], built: str) -> None:
    kind, tag = Path(builder[0]).name, f"socialpub:{built.replace('+', '-')}"
    base = os.environ.get("BASE")
    options = [*(["--format=docker"] if kind != "docker" else []), *([f"--build-arg=BASE={base}"] if base else [])]
    recipe = "--file=systemd/container/Containerfile"
    subprocess.run(
        [*builder, "build", *options, recipe, f"--tag={tag}", "."],
        cwd=source,
        check=True,
    )
    saved = DIST / f"socialpub-{built}-image.tar"  # not compressed: podman 4 loads no other one
    save = {
        "docker": ["save", "--output", saved, tag],
        "podman": ["save", "--format=docker-archive", "--output", saved, tag],
        "buildah": ["push", tag, f"docker-archive:{saved}:{tag}"],
    }
    subprocess.run([*builder, *save[kind]], check=True)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*words: str) -> bytes:
    return subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
