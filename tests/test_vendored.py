"""Vendored files are unchanged, have their license, and are listed."""

import gzip
import re
from typing import Any

import pytest

from socialpub.web.http import static
from tests import vendored
from tests.vendored import Package

PACKAGES = static.vendored_packages()


@pytest.mark.parametrize("package", PACKAGES, ids=[one["package"] for one in PACKAGES])
def test_every_file_is_the_one_that_was_published(package: Package) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    for file in package["files"]:
        assert vendored.checksum(vendored.stored(package, file)) == file["sha256"], file["file"]


@pytest.mark.parametrize("package", PACKAGES, ids=[one["package"] for one in PACKAGES])
def test_each_package_has_its_license(package: Package) -> None:
    (licence,) = (file for file in package["files"] if "LICENSE" in file["file"])
    text = vendored.stored(package, licence).decode()
    assert "WITHOUT WARRANTY" in text or "DISCLAIMS ALL" in text or "Apache License" in text
    assert package["licence"] in ("0BSD", "Apache-2.0", "MIT")


def test_every_vendored_file_is_listed() -> None:
    named = {vendored.path_of(package, file) for package in PACKAGES for file in package["files"]}
    lies = {path for path in vendored.LIST.parent.rglob("*") if path.is_file()}
    assert lies - {vendored.LIST} == named


def test_what_is_stored_compressed_comes_out_the_same_wherever_it_is_made() -> None:
    for path in static.FOLDER.rglob("*.gz"):
        content = path.read_bytes()
        assert content[4:8] == bytes(4), "a time would make every copy another one"
        assert len(content) < len(gzip.decompress(content))


def test_a_page_that_names_a_package_gets_the_vendored_version() -> None:
    for package in PACKAGES:
        for file in package["files"]:
            name = vendored.path_of(package, file).name.removesuffix(".gz")
            if name.endswith((".js", ".css")):
                assert f"-{package['version']}/" in static.vendored_url(package["package"], name)


# --- what scripts contain --------------------------------------------------------------------------------------------

NOTICES = [(package, file) for package in PACKAGES for file in package["files"] if "map" in file]
SECTION = re.compile(r"={80}\n((?:\S+@\S+ \([^\n]+\)\n)+)={80}\n\n(.*?)(?=\n\n={80}\n|\n*\Z)", re.DOTALL)
BANNER = re.compile(r"/\*[*!](?:(?!\*/).)*?(@?[\w./-]*\w) v?(\d+\.\d+\.\d+)(?:(?!\*/).)*\*/", re.DOTALL)
"""A comment that stays in a script that was made small: name and version, mostly with a licence."""


def sections(text: str) -> list[tuple[list[str], str]]:
    """The packages of each licence (`vue@3.5.40`), and its text."""
    return [([line.partition(" ")[0] for line in found[1].splitlines()], found[2]) for found in SECTION.finditer(text)]


@pytest.mark.parametrize(("package", "file"), NOTICES, ids=[package["package"] for package, _ in NOTICES])
def test_every_package_inside_of_a_script_has_its_licence_text(package: Package, file: dict[str, Any]) -> None:
    text = vendored.stored(package, file).decode()
    found = sections(text)
    assert text.count("=" * 80) == 2 * len(found), "every section is read"
    names = [name for of_text, _ in found for name in of_text]
    assert len(names) == len(set(names)) > 100
    assert [these[0] for these, _ in found] == sorted(min(these) for these, _ in found), "always the same file"
    for _, licence in found:
        assert re.search(
            "Permission (to use|is hereby granted)|Licensed under the Apache|Redistribution and use", licence
        )


@pytest.mark.parametrize("package", PACKAGES, ids=[one["package"] for one in PACKAGES])
def test_what_a_script_says_that_it_contains_is_listed(package: Package) -> None:
    listed = {f"{package['package']}@{package['version']}"}
    for file in package["files"]:
        if "map" in file:
            listed |= {name for names, _ in sections(vendored.stored(package, file).decode()) for name in names}
    said = set()
    for file in package["files"]:
        if file["file"].endswith((".js", ".css")):
            banners = BANNER.finditer(vendored.stored(package, file).decode())
            said |= {f"{found[1]}@{found[2]}" for found in banners if "icense" in found[0] or "(c)" in found[0]}
    assert said <= listed
    if package["package"] == "@scalar/api-reference":
        assert {"vue@3.5.40", "tabbable@6.4.0", "tailwindcss@4.3.3"} <= said, "the comments are found"
