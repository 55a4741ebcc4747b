"""The version in a checkout, a source distribution and an installed package."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from socialpub.core import version

ROOT = Path(__file__).parents[3]
COUNTER = """
import subprocess
started = []

class Counted(subprocess.Popen):
    def __init__(self, *words, **options):
        started.append(words)
        super().__init__(*words, **options)

subprocess.Popen = Counted
from socialpub.core import version
import socialpub.cli.main
print(len(started))
version.current()
first = len(started)
version.current()
print(first, len(started))
"""

Git = Callable[..., str]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one commit whose next release is 1.1.0."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "pyproject.toml").write_text('[tool.socialpub]\nrelease = "1.1.0"\n')
    return root


@pytest.fixture
def git(checkout: Path) -> Git:
    def run(*arguments: str) -> str:
        who = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
        return subprocess.run(
            ["git", *who, *arguments], cwd=checkout, capture_output=True, text=True, check=True
        ).stdout.strip()

    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "--message", "first")
    return run


def commit(git: Git, count: int = 1) -> str:
    for number in range(count):
        git("commit", "--quiet", "--allow-empty", "--message", f"number {number}")
    return git("rev-parse", "--short=7", "HEAD")


def test_the_commit_with_the_tag_is_the_release(checkout: Path, git: Git) -> None:
    git("tag", "v1.1.0")
    assert version.read_source(checkout) == "1.1.0"


def test_a_commit_after_an_older_release_is_a_development_version_of_the_next(checkout: Path, git: Git) -> None:
    git("tag", "v1.0.0")
    head = commit(git, 12)
    assert version.read_source(checkout) == f"1.1.0.dev12+g{head}"
    assert Version("1.0.0") < Version(version.read_source(checkout)) < Version("1.1.0")


def test_a_commit_after_its_own_release_is_newer_than_it(checkout: Path, git: Git) -> None:
    git("tag", "v1.1.0")
    head = commit(git, 2)
    assert version.read_source(checkout) == f"1.1.1.dev2+g{head}"
    assert Version(version.read_source(checkout)) > Version("1.1.0")


def test_without_any_tag_all_commits_are_counted(checkout: Path, git: Git) -> None:
    head = commit(git, 2)
    assert version.read_source(checkout) == f"1.1.0.dev3+g{head}"


def test_a_release_candidate_that_became_the_release_is_the_release(checkout: Path, git: Git) -> None:
    git("tag", "--annotate", "v1.1.0rc1", "--message", "candidate")
    git("tag", "v1.1.0")
    assert version.read_source(checkout) == "1.1.0"


def test_changed_files_are_no_release(checkout: Path, git: Git) -> None:
    git("tag", "v1.1.0")
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    head = git("rev-parse", "--short=7", "HEAD")
    assert version.read_source(checkout) == f"1.1.1.dev0+g{head}.dirty"


def test_a_repository_in_the_environment_is_ignored(
    checkout: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("tag", "v1.1.0")
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert version.read_source(checkout) == "1.1.0"


def test_git_gets_no_variable_that_may_hold_a_secret(
    checkout: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("tag", "v1.1.0")
    spy = tmp_path / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(f"#!/bin/sh\n/usr/bin/env > {tmp_path}/environment\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:/usr/bin:/bin")
    monkeypatch.setenv("SOCIALPUB_PROVIDERS__X__CLIENT_SECRET", "very-secret")
    version.read_source(checkout)
    assert "GIT_OPTIONAL_LOCKS" in (tmp_path / "environment").read_text()
    assert "very-secret" not in (tmp_path / "environment").read_text()


def test_without_git_a_source_distribution_states_its_version(checkout: Path) -> None:
    assert version.read_source(checkout) == "1.1.0.dev0"
    (checkout / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: socialpub\nVersion: 1.1.0\n\nVersion: 9\n")
    assert version.read_source(checkout) == "1.1.0"


def test_a_checkout_without_the_program_git_is_a_development_version(
    checkout: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("tag", "v1.1.0")
    monkeypatch.setenv("PATH", "")
    assert version.read_source(checkout) == "1.1.0.dev0"


def test_an_installed_package_has_the_version_of_its_metadata(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name in ("socialpub/__init__.py", "socialpub/core/__init__.py", "socialpub/core/version.py"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, site / name)
    ask = [sys.executable, "-c", "from socialpub.core import version; print(version.current())"]
    assert subprocess.run(ask, cwd=site, capture_output=True, text=True, check=True).stdout == "0+unknown\n"
    (site / "socialpub-1.1.0.dist-info").mkdir()
    (site / "socialpub-1.1.0.dist-info/METADATA").write_text("Name: socialpub\nVersion: 1.1.0\n\nText\n")
    assert subprocess.run(ask, cwd=site, capture_output=True, text=True, check=True).stdout == "1.1.0\n"


def test_git_is_started_when_the_version_is_shown_and_then_once() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTER], cwd=ROOT, capture_output=True, text=True, check=True)
    before, first, again = map(int, done.stdout.split())
    assert before == 0
    assert first == again <= 3


def test_the_released_number_is_written_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["socialpub"]["release"] == version.read_release(ROOT)
    assert "version" in project["project"]["dynamic"]
    assert Version(version.current()).is_devrelease or version.current() == version.read_release(ROOT)
