"""The locked requirements: the runtime needs no tools, and both files have the same versions."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEPENDENCIES = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["notify"]


def pins(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", (ROOT / file).read_text(), re.MULTILINE))


def names(requirements: list[object]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", one) for one in requirements if isinstance(one, str))
    return {match[0].lower() for match in found if match}


RUNNING, DEVELOPING = pins("requirements.lock"), pins("tests/requirements.lock")


def test_running_needs_no_tool_of_tests_and_checks() -> None:
    tools = names(PROJECT["dependency-groups"]["dev"])
    assert len(tools) > 5
    assert not tools & set(RUNNING)
    assert tools <= set(DEVELOPING)


def test_every_dependency_is_locked() -> None:
    needed = names(DEPENDENCIES) | names(PROJECT["dependency-groups"]["build"])
    assert needed <= set(RUNNING)


def test_a_package_in_both_files_has_one_version() -> None:
    shared = set(RUNNING) & set(DEVELOPING)
    assert {name: RUNNING[name] for name in shared} == {name: DEVELOPING[name] for name in shared}


def test_every_python_gets_the_same_versions() -> None:
    """Markers of other systems than Linux have no effect."""
    for file in ("requirements.lock", "tests/requirements.lock"):
        pinned = re.findall(r"^([a-z0-9._-]+)==\S+(?: ; (.+?))? \\$", (ROOT / file).read_text(), re.MULTILINE)
        assert len(pinned) == len({name for name, _ in pinned}) > 40
        assert [one for one in pinned if re.search(r"\bpython_", one[1]) and "emscripten" not in one[1]] == []


INTERNALS = {"uvicorn", "httptools", "peewee", "huey", "apprise"}
"""Libraries whose classes we override, or whose attributes without documentation we use."""


def test_the_wheel_installs_compatible_releases_of_what_was_tested() -> None:
    for line in DEPENDENCIES:
        requirement = Requirement(line)
        (bound,) = requirement.specifier
        parts, locked = bound.version.split("."), Version(RUNNING[requirement.name])
        assert bound.operator == "~=", line
        assert requirement.specifier.contains(locked), line
        # Two numbers allow newer minor releases, and three only newer patches.
        small = requirement.name in INTERNALS or locked.major == 0
        assert len(parts) == (3 if small else 2), line
        assert Version(bound.version).release[:2] == locked.release[:2], f"{line}: {locked} was tested"


TOOLS = ["tests/sandbox/pinterest_sdk.lock", "tests/clients/generator.lock"]
"""Each in an environment of its own."""


@pytest.mark.parametrize("file", ["requirements.lock", "tests/requirements.lock", *TOOLS])
def test_every_locked_package_has_a_hash(file: str) -> None:
    blocks = re.split(r"^(?=[a-z0-9._-]+==)", (ROOT / file).read_text(), flags=re.MULTILINE)[1:]
    assert [block.split(" ")[0] for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("target", ["test", "test-fast", "check", "format", "bench", "chaos", "simulate"])
def test_jobs_install_their_own_tools(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert f"\n{target}: dev\n" in makefile
    assert "\nrun: setup\n" in makefile


@pytest.mark.parametrize(("folder", "kind"), [("clients", "devDependencies"), ("bluesky/server", "dependencies")])
def test_the_packages_of_node_are_locked_with_hashes_and_name_no_host(folder: str, kind: str) -> None:
    locked = json.loads((ROOT / "tests" / folder / "package-lock.json").read_text())["packages"]
    wanted = json.loads((ROOT / "tests" / folder / "package.json").read_text())[kind]
    assert locked.pop("")[kind] == wanted
    assert {f"node_modules/{name}" for name in wanted} <= set(locked)
    for name, package in locked.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name
