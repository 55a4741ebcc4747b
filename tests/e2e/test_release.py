"""A release from its tag: what is refused, and that each package is whole in an empty environment."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core import version
from tests.e2e.test_wheel import Trial
from tests.support.released import ROOT, Clone

NO_GIT = not (ROOT / ".git").exists()

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(NO_GIT, reason="a release is built from a checkout")]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """The release from its tag. Obstacles are refused first."""
    clone = Clone(tmp_path_factory.mktemp("release") / "clone")
    if clone.release != version.VERSION:
        assert "Set the version of the release in socialpub/core/version.py" in clone.build().stderr
    clone.set_version()
    refused = clone.build()
    assert refused.returncode == 1
    assert f"Tag the commit of the release: git tag v{clone.release}" in refused.stderr

    clone.git("tag", f"v{clone.release}")
    (clone.folder / "README.md").write_text("changed")
    assert "Files differ from the commit" in clone.build().stderr
    clone.git("checkout", "README.md")

    changelog = clone.folder / "socialpub/manual/changelog.md"
    if "Not released yet." in changelog.read_text():
        assert (
            f"{changelog.relative_to(clone.folder)} says of {clone.release}: Not released yet." in clone.build().stderr
        )
    assert not clone.dist.exists()

    clone.write_date()
    clone.git("tag", "--force", f"v{clone.release}")
    done = clone.build()
    assert done.returncode == 0, done.stderr
    assert "the image is left out" in done.stderr
    return clone


def test_the_checksums_cover_every_file_and_the_notes_are_the_changelogs_section(released: Clone) -> None:
    name = f"socialpub-{released.release}"
    files = {f"{name}-py3-none-any.whl", f"{name}.tar.gz", f"{name}-notes.md"}
    assert {path.name for path in released.dist.iterdir()} == {*files, "SHA256SUMS"}
    sums = dict(reversed(line.split("  ")) for line in (released.dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {file: hashlib.sha256((released.dist / file).read_bytes()).hexdigest() for file in files}
    notes = (released.dist / f"{name}-notes.md").read_text()
    assert notes.startswith(f"## {released.release}\n")
    assert "## 1.0.0" not in notes
    assert notes.strip() in (released.folder / "socialpub/manual/changelog.md").read_text()


@pytest.fixture(params=["*.whl", "*.tar.gz"], ids=["wheel", "source"])
def trial(request: pytest.FixtureRequest, released: Clone, tmp_path: Path) -> Iterator[Trial]:
    """The package in an empty environment, with a surrounding that knows no checkout."""
    (package,) = released.dist.glob(request.param)
    trial = Trial(tmp_path / "trial")
    trial.install(package)
    yield trial
    for process in trial.processes:
        process.end()


def test_each_package_is_whole_and_knows_its_version(trial: Trial, released: Clone) -> None:
    assert trial.run("--version") == f"socialpub {released.release}"
    (installed,) = (trial.folder / "venv/lib").glob("python*/site-packages/socialpub")
    assert files_below(installed) == files_below(released.folder / "socialpub"), (
        "migrations, pages, styles, examples and the changelog"
    )
    assert "manual/changelog.md" in files_below(installed)
    if trial.package.suffix != ".whl":  # the wheel is played in test_wheel.py
        demo = trial.begin("demo", "--once")
        assert demo.wait(120) == 0, demo.output
        assert "published" in demo.output


def files_below(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
