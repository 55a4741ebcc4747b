"""The source layout in a few lines: imports point downward, package by package."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from socialpub.cli.main import main
from socialpub.web.dashboard.browser.visit import Visit
from socialpub.web.routes import API, DASHBOARD, PAGES

pytestmark = pytest.mark.source

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


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """The modules imported anywhere in a file, also inside functions and for the type checker alone."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


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


def test_the_sandbox_and_the_product_share_no_code() -> None:
    for name, path in modules():
        if room_of(name) == "sandbox":
            beyond = [o for o in imports(path) if o.startswith("socialpub.") and room_of(o) != "sandbox"]
            assert not beyond, f"{name} leans on {beyond}"
        elif room_of(name) not in DOORS:
            assert not any(room_of(other) == "sandbox" for other in imports(path)), name


def test_no_two_files_import_each_other() -> None:
    """Neither directly nor around a corner: what a file needs can be read without reading what needs it."""
    known = dict(modules())
    graph = {name: set(imports(path)) & known.keys() - {name} for name, path in known.items()}
    assert circles(graph) == []


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules of which each can be reached from each other."""

    def reached(start: str) -> set[str]:
        seen, waiting = set[str](), [start]
        while waiting:
            for other in graph[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    reachable = {name: reached(name) for name in graph}
    found = {
        tuple(sorted(other for other in graph if name in reachable[other] and other in reachable[name]))
        for name in graph
    }
    return sorted(list(circle) for circle in found if circle)


# --- tables ----------------------------------------------------------------------------------------------------------

HOMES = {
    "alert": "db.tables.notifications",
    "api_key": "db.tables.access_rows",
    "appliance": "db.appliance_state",
    "artifact": "db.tables.artifact_rows",
    "attempt": "db.tables.log_entries",
    "audience": "db.tables.audience_rows",
    "audience_member": "db.tables.audience_rows",
    "consent": "db.tables.access_rows",
    "delivery": "db.tables.delivery_rows",
    "delivery_count": "db.tables.counters",
    "event_count": "db.tables.counters",
    "former_text": "db.tables.post_rows",
    "idempotency": "db.tables.post_rows",
    "log_entry": "db.tables.log_entries",
    "media": "db.tables.post_rows",
    "stored_wait": "db.tables.waits",
    "notification": "db.tables.notifications",
    "notification_service": "db.tables.notifications",
    "post": "db.tables.post_rows",
    "profile": "db.tables.profile_rows",
    "schema_migration": "db.upgrade",
    "sending_delay": "db.tables.counters",
    "session": "db.tables.access_rows",
    "sign_in_link": "db.tables.access_rows",
    "stored_media": "db.tables.artifact_rows",
    "trail": "db.tables.audit_log",
    "usage": "db.tables.counters",
    "webhook": "db.tables.webhooks",
}
"""Where the statements about a table stand."""

READERS = {
    "socialpub.db.queries.calendar",
    "socialpub.db.queries.log_list",
    "socialpub.db.queries.api_json",
    "socialpub.db.queries.post_content",
    "socialpub.db.queries.post_list",
    "socialpub.db.queries.profile_queue",
    "socialpub.db.queries.text_search",
}
"""Joined views: they read several tables and change nothing."""

_ABOUT = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:copied\.)?([a-z_]+)")


def statements(path: Path) -> Iterator[str]:
    """The tables that the SQL of a file is about: each statement's first."""
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)\b", text):
            found = _ABOUT.search(text)
            if found:
                yield found[1]


def test_what_only_reads_changes_nothing() -> None:
    for name, path in OURS:
        if name in READERS:
            assert not re.search(r"\b(INSERT|UPDATE|DELETE|REPLACE) ", path.read_text()), name


def test_the_trail_is_only_added_to_and_forgotten_by_age() -> None:
    source = (ROOT / "db" / "tables" / "audit_log.py").read_text()
    assert not re.search(r"\b(UPDATE|REPLACE)\b|\b(update|replace|change)\(", source)
    assert re.findall(r"tx\.delete.*", source) == ["tx.delete(TrailRow, TrailRow.id <= last)"]


OWN_FILES = {
    "socialpub.worker.queues": "Huey's queue",
}
"""Modules with statements about a file of their own, which is not the database."""


def test_no_sql_is_outside_of_db() -> None:
    found = {name for name, path in OURS if room_of(name) != "db" and list(statements(path))}
    assert found <= OWN_FILES.keys()


def test_the_sql_of_a_table_is_in_one_file() -> None:
    for name, path in OURS:
        if name in READERS or name.startswith("socialpub.db.migrations"):
            continue
        for table in statements(path):
            if table in HOMES:
                assert name.removeprefix("socialpub.") in HOMES[table].split(), f"{name} has a statement about {table}"


_NO_QUERY = re.compile(r"f?['\"](PRAGMA|SAVEPOINT|ROLLBACK|RELEASE|BEGIN|COMMIT)\b")


def sql_functions(path: Path) -> Iterator[str]:
    """The functions that run SQL text."""
    for function in nodes(path):
        if isinstance(function, ast.FunctionDef):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args):
                runs = isinstance(call.func, ast.Attribute) and call.func.attr == "execute_sql"
                if runs and not _NO_QUERY.match(ast.unparse(call.args[0])):
                    yield function.name
                    break


SQL_TEXT = {
    "queries.api_json": "_log_page attempts post_with_audience",
    "queries.post_content": "load",
    "queries.post_list": "_show load_page",
    "queries.profile_queue": "due_per_profile find_overdue next_run_at oldest_due",
    "tables.audience_rows": "sees",
    "tables.counters": "_add",
    "tables.delivery_rows": "list_outcomes list_running wake_equal wake_replies",
    "tables.log_entries": "record",
    "tables.waits": "any_hold list_current list_of_post",
}
"""The functions with SQL text, at most twenty, each with its measured reason beside it. Everything else is a peewee
query or a helper of `Database`."""


def test_sql_text_is_in_few_functions() -> None:
    skipped = ("socialpub.db.migrations", "socialpub.db.connection")
    found = {name: sorted(set(sql_functions(path))) for name, path in OURS if not name.startswith(skipped)}
    found = {name.removeprefix("socialpub.db."): names for name, names in found.items() if names and ".db." in name}
    assert found == {name: sorted(names.split()) for name, names in SQL_TEXT.items()}


# A write that fails undoes its rows, and nothing else.

CHANGES_A_FILE = {"unlink", "write_text", "write_bytes", "rename", "mkdir", "touch"}
CHANGES_AN_OBJECT = {
    "add",
    "append",
    "clear",
    "discard",
    "notify",
    "pop",
    "put",
    "remove",
    "set",
    "setdefault",
    "update",
}


def write_functions(path: Path) -> Iterator[ast.AST]:
    """The functions with a parameter `tx`, the database during a write, and the classes with such a field."""
    for node in nodes(path):
        fields: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            fields = [field.arg for field in (*node.args.args, *node.args.kwonlyargs)]
        elif isinstance(node, ast.ClassDef):
            fields = [ast.unparse(field.target) for field in node.body if isinstance(field, ast.AnnAssign)]
        if "tx" in fields:
            yield node


def effects_outside(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            changed = node.targets
        elif isinstance(node, ast.AugAssign):
            changed = [node.target]
        yield from (text for text in map(ast.unparse, changed) if re.match(r"(self\.)?_?rt\.", text))
        if isinstance(node, ast.Global):
            yield "global"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            call = ast.unparse(node.func)
            of_process = re.match(r"(self\.)?_?rt\.", call) and node.func.attr in CHANGES_AN_OBJECT
            if of_process or call.startswith("log.") or node.func.attr in CHANGES_A_FILE:
                yield call


def test_no_write_has_an_effect_outside_of_its_transaction() -> None:
    """`call_after_commit` is the way to such an effect."""
    found = [(name, function) for name, path in OURS for function in write_functions(path)]
    assert len(found) > 200
    assert [(name, effect) for name, function in found for effect in effects_outside(function)] == []


SCHEMA = ROOT / "db" / "models.py"
"""A list of columns, which is one thought however many there are."""


def test_files_stay_small() -> None:
    lines = sorted(
        (len(path.read_text().splitlines()), str(path.relative_to(ROOT))) for _, path in modules() if path != SCHEMA
    )
    assert lines[-1][0] <= 510, "there are usually two rooms in one"
    assert lines[len(lines) // 2][0] <= 300


def test_every_room_says_in_a_line_what_it_is_for() -> None:
    for rooms in ROOMS:
        for room in rooms - {"runtime", "__main__"}:
            docstring = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
            assert docstring, room
            assert "\n" not in docstring, room


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for name, path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and node.name != "Meta":  # peewee's options of a model
                homes.setdefault(node.name, []).append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


# --- Starlette -------------------------------------------------------------------------------------------------------

ASGI = {
    "socialpub.web.http.app": "the id, the count and the log line of every response",
    "socialpub.web.http.limits": "the limits of a body while it arrives",
    "socialpub.web.http.static": "Starlette's refusals of a file become problems",
}
"""Modules that read or send raw messages of ASGI. All others use Starlette's Request and its responses."""


def test_a_handler_takes_a_request_and_returns_a_response() -> None:
    handlers = [route.endpoint for route in (*API, *PAGES, *DASHBOARD)]
    for handler in handlers:
        declared = inspect.signature(inspect.unwrap(handler))
        taken = {parameter.annotation for parameter in declared.parameters.values()}
        assert taken & {Request, Visit}, handler
        assert declared.return_annotation is Response, handler


def test_only_middleware_knows_messages_of_asgi() -> None:
    found = {name for name, path in OURS if room_of(name) == "web" and "http.response." in path.read_text()}
    assert found == ASGI.keys()


def test_starlette_compresses_routes_and_reads_ranges() -> None:
    """Only its own classes do, and `web` declares no request or response of its own kind."""
    for name, path in OURS:
        if room_of(name) != "web":
            continue
        assert not {"zlib", "gzip"} & set(imports(path)) or name == "socialpub.web.http.static", name
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and re.search(r"(Request|Response|Router|StaticFiles)$", node.name):
                bases = {ast.unparse(base) for base in node.bases}
                assert any(base.startswith("starlette.") or base in SHAPES for base in bases), f"{name}.{node.name}"


SHAPES = {"Shape"}
"""The JSON of a request."""


def test_the_guard_of_connections_is_one_short_file_for_one_minor_release_of_uvicorn() -> None:
    users = {name for name, path in OURS if any(other.startswith("uvicorn.protocols") for other in imports(path))}
    assert users == {"socialpub.web.http.connections"}
    assert len((ROOT / "web" / "http" / "connections.py").read_text().splitlines()) <= 350
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    (uvicorn,) = (one for one in project["dependencies"] if one.startswith("uvicorn"))
    assert re.fullmatch(r"uvicorn~=\d+\.\d+\.\d+", uvicorn), "the next minor release may change its protocol"


# --- commands --------------------------------------------------------------------------------------------------------

COMMAND_MODULES = ("socialpub.core.commands",)
DOCUMENTS = {
    "socialpub.core.settings.template": "the configuration file, which goes from machine to machine",
    "socialpub.web.openapi.operations": "read by callers, who are at another machine",
    "socialpub.web.openapi.document": "read by callers, who are at another machine",
    "socialpub.web.pages.pages": "read by callers, who are at another machine",
    "socialpub.providers.pinterest.options": "the OpenAPI document, read by callers",
}
"""Modules whose texts name commands for people who are not at this machine."""


def written_commands(path: Path) -> Iterator[str]:
    """The commands of socialpub that the file's own strings spell out, apart from docstrings and help texts."""
    skipped = set[int]()
    for node in nodes(path):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.keyword) and node.arg in ("help", "short_help"):
            skipped |= {id(inner) for inner in ast.walk(node.value)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield from spelled_out(node.value)


def spelled_out(text: str) -> list[str]:
    names = "|".join(main.commands)
    return re.findall(rf"\bsocialpub (?:{names})\b|\bsystemctl (?:re)?(?:start|stop)\b[^\"]*", text)


def test_only_one_place_spells_out_a_command() -> None:
    """`core/commands.py` knows how a command is typed on this machine."""
    found = {
        name: commands
        for name, path in modules()
        if name not in (*COMMAND_MODULES, *DOCUMENTS) and (commands := list(written_commands(path)))
    }
    assert found == {}


def test_no_page_spells_out_a_command() -> None:
    found = {str(page.relative_to(ROOT)): spelled_out(page.read_text()) for page in ROOT.rglob("*.html")}
    assert {page: commands for page, commands in found.items() if commands} == {}


def test_every_document_that_may_name_commands_does() -> None:
    known = dict(modules())
    assert [name for name in DOCUMENTS if not list(written_commands(known[name]))] == []


def test_only_one_file_calls_flock() -> None:
    assert [name for name, path in OURS if "fcntl" in imports(path)] == ["socialpub.core.locks"]
