"""The house in a few lines: imports point downward, room by room, and four doors stay shut."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "socialpub"

ROOMS = [
    {"core"},
    {"db", "media", "providers"},
    {"runtime"},
    {"accounts"},
    {"publishing"},
    {"ops"},
    {"worker"},
    {"web"},
    {"cli"},
    {"__main__"},
]
"""From the ground up; those that share a floor do not know each other."""

DOORS = {"worker", "web", "cli", "__main__"}
LIBRARIES_OF_DOORS = {"starlette", "uvicorn", "huey", "click", "rich", "jinja2"}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def floor_of(module: str) -> int:
    return next((floor for floor, rooms in enumerate(ROOMS) if room_of(module) in rooms), -1)


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[str]:
    """Names imported anywhere in a file, also inside functions and for the type checker alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


OURS = [(name, path) for name, path in modules() if room_of(name) != "sandbox"]


@pytest.mark.parametrize(("name", "path"), OURS, ids=[name for name, _ in OURS])
def test_imports_point_downward(name: str, path: Path) -> None:
    for other in imports(path):
        if not other.startswith("socialpub.") or room_of(other) in {room_of(name), "sandbox"}:
            continue
        assert floor_of(other) < floor_of(name), f"{name} reaches up to {other}"


def test_nothing_below_the_doors_knows_starlette_huey_or_click() -> None:
    for name, path in OURS:
        if room_of(name) not in DOORS:
            known = {other.split(".")[0] for other in imports(path)} & LIBRARIES_OF_DOORS
            assert not known, f"{name} knows {known}"


def test_the_sandbox_and_the_house_read_the_networks_documents_each_for_itself() -> None:
    for name, path in modules():
        if room_of(name) == "sandbox":
            beyond = [o for o in imports(path) if o.startswith("socialpub.") and room_of(o) != "sandbox"]
            assert not beyond, f"{name} leans on {beyond}"
        elif room_of(name) not in DOORS:
            assert not any(room_of(other) == "sandbox" for other in imports(path)), name


def test_files_stay_small() -> None:
    """Past four hundred lines there are usually two rooms in one."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for _, path in modules()}
    assert not {name: count for name, count in lines.items() if count > 450}
