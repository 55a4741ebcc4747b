"""What was written by others lies here as it was published, with its licence, and nothing else lies beside it."""

import gzip
import re

import pytest

from socialpub.web import static_files
from tests import vendored
from tests.vendored import Package

PACKAGES = static_files.vendored_packages()


@pytest.mark.parametrize("package", PACKAGES, ids=[one["package"] for one in PACKAGES])
def test_every_file_is_the_one_that_was_published(package: Package) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    for file in package["files"]:
        assert vendored.checksum(vendored.stored(package, file)) == file["sha256"], file["file"]


@pytest.mark.parametrize("package", PACKAGES, ids=[one["package"] for one in PACKAGES])
def test_its_licence_lies_beside_it(package: Package) -> None:
    (licence,) = (file for file in package["files"] if "LICENSE" in file["file"])
    text = vendored.stored(package, licence).decode()
    assert "WITHOUT WARRANTY" in text or "DISCLAIMS ALL" in text or "Apache License" in text
    assert package["licence"] in ("0BSD", "Apache-2.0", "MIT")


def test_nothing_lies_there_that_the_list_does_not_name() -> None:
    named = {vendored.path_of(package, file) for package in PACKAGES for file in package["files"]}
    lies = {path for path in vendored.LIST.parent.rglob("*") if path.is_file()}
    assert lies - {vendored.LIST} == named


def test_what_is_stored_compressed_comes_out_the_same_wherever_it_is_made() -> None:
    for path in static_files.FOLDER.rglob("*.gz"):
        content = path.read_bytes()
        assert content[4:8] == bytes(4), "a time would make every copy another one"
        assert len(content) < len(gzip.decompress(content))


def test_a_page_names_a_package_and_gets_the_version_that_lies_here() -> None:
    for package in PACKAGES:
        for file in package["files"]:
            name = vendored.path_of(package, file).name.removesuffix(".gz")
            if name.endswith((".js", ".css")):
                assert f"-{package['version']}/" in static_files.vendored_url(package["package"], name)
