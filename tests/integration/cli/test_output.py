"""Tables have a line for each row, and the terminal shows what others wrote and obeys none of it."""

import ast
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from socialpub import cli
from socialpub.cli.output import print_table
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept
from tests.support.drain import drain

# --- tables ----------------------------------------------------------------------------------------------------------


ID = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"
COLUMNS = ("ID", "Name", "Network", "Account", "Status", "Expires", "Notes")
ROW = (
    ID,
    "a name of quite some length",
    "pinterest",
    "@somebody",
    "reauthRequired",
    "2026-12-01 10:00:00 UTC",
    "Its tokens are refused: " + "connect it again, " * 8 + "and look here: https://example.com/a/longer/address",
)


def shown(*rows: tuple[str, ...]) -> list[str]:
    @click.command()
    def command() -> None:
        print_table(COLUMNS, rows, "")

    return CliRunner().invoke(command, catch_exceptions=False).stdout.splitlines()


def test_a_row_is_a_line_with_every_cell_whole():
    lines = shown(ROW, ROW)
    assert lines[0].split() == list(COLUMNS)
    assert len(lines) == 4
    for line in lines[2:]:
        assert all(cell in line for cell in ROW)


def test_the_columns_of_wide_characters_are_aligned():
    header, _, *lines = shown(ROW, (ROW[0], "日本語の名前", *ROW[2:]))
    starts = [cell_len(line.partition("pinterest")[0]) for line in lines]
    assert starts == [header.index("Network")] * 2


# --- words of others -------------------------------------------------------------------------------------------------


HOSTILE = "evil\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egpj.exe\u2066\u200b\u2028x\r[red]loud[/red]"
SEEN = "evil\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\x7f\\u202egpj.exe\\u2066\\u200b\\u2028x\\r[red]loud[/red]"


def obeyed(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}


def check(done: Result) -> Result:
    assert not obeyed(done.stdout)
    assert not obeyed(done.stderr)
    return done


@pytest.fixture
def profile(terminal: Terminal, rt: Runtime) -> str:
    """An account with a hostile label, handle, options and reason."""
    profile = terminal.connect()
    options = json.dumps({"note": HOSTILE})
    rt.db.write(
        lambda tx: tx.execute_sql(
            "UPDATE profile SET name = ?, username = ?, options = ?, picture_url = ?, reason = ?",
            (HOSTILE, HOSTILE, options, HOSTILE, HOSTILE),
        )
    )
    return profile


def test_posts_and_what_a_network_said_of_them(terminal, rt, profile):
    terminal.world.x.next("create_post").fails_with(403, {"detail": HOSTILE, "status": 403})
    post = accept(rt, profile, body=f"first\nsecond {HOSTILE}", options={"x": {"replySettings": HOSTILE}})
    drain(rt, terminal.clock)
    shown = check(terminal("admin", "show-post", post))
    assert SEEN in shown.stdout
    told = json.loads(check(terminal("admin", "show-post", post, "--json")).stdout)
    assert told["post"]["body"] == f"first\nsecond {HOSTILE}"
    check(terminal("admin", "stop-post", post))


def test_profiles(terminal, profile):
    assert SEEN in check(terminal("admin", "list-profiles")).stdout
    assert json.loads(check(terminal("admin", "list-profiles", "--json")).stdout)[0]["name"] == HOSTILE
    assert SEEN in check(terminal("admin", "refresh-profile", profile)).stderr
    check(terminal("admin", "import-profile", "x", stdin=terminal.grant()))
    check(terminal("admin", "set-options", profile, f"madeWithAi={HOSTILE}"))
    check(terminal("admin", "rename-profile", profile, HOSTILE))
    check(terminal("admin", "disconnect-profile", profile))
    assert SEEN in check(terminal("admin", "refresh-profile", profile)).stderr


def test_configuration_and_files(terminal):
    named = terminal.folder / "a\x1b[2Jb.copy"
    assert "a\\x1b[2Jb.copy" in check(terminal("backup", str(named))).stdout
    assert "a\\x1b[2Jb.copy" in check(terminal("verify-backup", str(named))).stdout
    check(terminal("verify-backup", str(named) + "\x9b"))
    check(terminal("init", str(terminal.folder / "in\x1b[2Jit")))
    check(terminal("doctor"))
    written = json.dumps(HOSTILE)  # TOML has the same escapes
    terminal.config.write_text(f"listen = {written}\n{written} = 1\n[logging]\nlevel = {written}\n")
    wrong = check(terminal("admin", "list-keys"))
    assert "\\x1b" in wrong.stderr or "\\u001b" in wrong.stderr
    check(terminal("doctor"))
    check(terminal("doctor", "--json"))


def test_no_message_can_pretend_to_be_our_hint(terminal, rt, profile):
    done = terminal("admin", "show-post", "x\nHint: run rm -rf ~")
    assert "\nHint: run" not in done.stderr
    rt.db.write(lambda tx: tx.execute_sql("UPDATE profile SET status = 'reauthRequired', reason = 'x\nHint: run evil'"))
    done = terminal("admin", "refresh-profile", profile)
    assert "run evil" in done.stderr
    assert "\nHint: run evil" not in done.stderr


# --- one place for output ---------------------------------------------------------------------------------------------

COMMANDS = Path(cli.__file__).parent
SPEAKS = {"echo", "secho", "echo_via_pager", "style", "prompt", "confirm", "print", "input"}


def spoken(tree: ast.AST) -> Iterator[str]:
    """Yield all calls that write to a terminal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
            yield f"from {node.module}"
        elif isinstance(node, ast.Import):
            yield from (f"import {alias.name}" for alias in node.names if alias.name.split(".")[0] == "rich")
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            whose = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
            if (name in SPEAKS and whose in ("", "click", "console")) or whose in ("sys.stdout", "sys.stderr"):
                yield ast.unparse(called)


@pytest.mark.parametrize("path", sorted(COMMANDS.rglob("*.py")), ids=lambda path: str(path.relative_to(COMMANDS)))
def test_everything_shown_goes_through_one_place(path):
    found = list(spoken(ast.parse(path.read_text())))
    if path == COMMANDS / "output.py":
        assert found
    else:
        assert found == [], "use cli/output.py"
