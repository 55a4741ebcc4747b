"""The house in a few lines: imports point downward, and four doors stay shut."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "socialpub"

GROUND = {
    "clock", "crypto", "durations", "errors", "ids", "logs", "mistakes", "origins", "redaction", "sections", "settings",
    "signing",
}  # fmt: skip
DOORS = {"api", "app", "web", "cli", "worker", "doorbell", "__main__"}
LIBRARIES_OF_DOORS = {"starlette", "uvicorn", "huey", "click", "rich", "jinja2"}


def floor_of(module: str) -> int:
    """0 ground, 1 store and providers, 2 the runtime, 3 the domain, 4 the doors."""
    room = module.split(".")[1] if "." in module else module
    if room in GROUND or module == "socialpub":
        return 0
    if room in {"store", "providers"}:
        return 1
    if room == "runtime":
        return 2
    return 4 if room in DOORS else 3


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[str]:
    """Names imported anywhere in a file, also inside functions; not what only a type checker reads."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


OURS = [(name, path) for name, path in modules() if not name.startswith("socialpub.sandbox")]


@pytest.mark.parametrize(("name", "path"), OURS, ids=[name for name, _ in OURS])
def test_imports_point_downward(name: str, path: Path) -> None:
    above = [
        other for other in imports(path) if other.startswith("socialpub.") and floor_of(other) > floor_of(name)
    ]  # fmt: skip
    assert not above, f"{name} reaches up to {above}"


def test_store_and_providers_do_not_know_each_other() -> None:
    for name, path in modules():
        for room, other in (("store", "providers"), ("providers", "store")):
            if name.startswith(f"socialpub.{room}"):
                assert not any(known.startswith(f"socialpub.{other}") for known in imports(path)), name


def test_nothing_below_the_doors_knows_starlette_huey_or_click() -> None:
    for name, path in OURS:
        if floor_of(name) < 4:
            known = {other.split(".")[0] for other in imports(path)} & LIBRARIES_OF_DOORS
            assert not known, f"{name} knows {known}"


def test_the_sandbox_and_the_house_read_the_networks_documents_each_for_itself() -> None:
    for name, path in modules():
        if name.startswith("socialpub.sandbox"):
            beyond = [o for o in imports(path) if o.startswith("socialpub.") and not o.startswith("socialpub.sandbox")]
            assert not beyond, f"{name} leans on {beyond}"
        elif floor_of(name) < 4:
            assert not any(other.startswith("socialpub.sandbox") for other in imports(path)), name


def test_files_stay_small() -> None:
    """Past four hundred lines there are usually two rooms in one."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for _, path in modules()}
    assert not {name: count for name, count in lines.items() if count > 450}
