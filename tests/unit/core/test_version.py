"""The version is a constant, which a package's metadata repeat."""

import tomllib
from pathlib import Path

from packaging.version import Version
from setuptools.config.expand import read_attr

from socialpub.core import version
from tests import release

ROOT = Path(__file__).parents[3]


def test_the_version_is_a_release_or_the_development_of_the_next_one():
    assert version.VERSION in (release.next_release(), f"{release.next_release()}.dev0")
    assert Version(version.VERSION).release == Version(release.next_release()).release


def test_a_package_reads_the_version_without_an_import():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    attribute = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert read_attr(attribute, {"": str(ROOT)}, ROOT) == version.VERSION
