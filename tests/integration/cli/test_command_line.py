"""What holds for every command: where output goes, how failures look, what is loaded."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from socialpub.cli import admin
from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
from socialpub.cli.output import as_command_error
from socialpub.ops import file_faults
from socialpub.providers.registry import LABELS, SPECIFIED
from tests.support.appliance import settings_in
from tests.support.readme import topic


def test_init_makes_what_every_command_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOCIALPUB_CONFIG", raising=False)
    made = CliRunner().invoke(main, ["init"])
    assert made.exit_code == 0
    assert (tmp_path / "data" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert {Path(line).name for line in made.stdout.splitlines()} == {"config.toml", "data", "secret.key"}
    again = CliRunner().invoke(main, ["init"])
    assert again.exit_code == 1
    assert "does not overwrite files" in again.stderr


def test_a_wrong_configuration_is_one_message_with_every_mistake_and_no_secret(terminal):
    terminal.config.write_text('listen = "nowhere"\nbase_ur = "x"\n[providers.x]\nclient_secret = 12345678\n')
    done = terminal.refusal("admin", "list-keys")
    assert "3 mistakes" in done
    assert "base_url" in done
    assert "12345678" not in done


def test_a_database_with_unreadable_text_is_no_stack_trace(terminal):
    assert terminal("admin", "list-keys").exit_code == 0
    path = terminal.folder / "data" / "socialpub.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    # In the schema, whose words SQLite then repeats in an error that is no text.
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xba\xff\xfeLE"))
    for command in (("admin", "list-keys"), ("doctor",), ("serve",), ("backup", str(terminal.folder / "copy.tar"))):
        done = terminal(*command)
        assert done.exit_code == 1
        assert "damaged" in done.output and "Traceback" not in done.output


@pytest.mark.parametrize("name", ["run", "media", "queue.db"])
def test_something_else_at_a_place_of_ours_is_no_stack_trace(terminal, name):
    assert terminal("admin", "list-keys").exit_code == 0
    place = terminal.folder / "data" / name
    if place.is_dir():
        shutil.rmtree(place)
        place.touch()
    else:
        place.mkdir()
    refused = terminal.refusal("worker")
    assert f"{place}" in refused and "Move or rename the file or folder with this name" in refused


def test_the_same_words_do_not_stand_twice_in_a_message(terminal):
    profile = terminal.connect()
    said = terminal("admin", "set-options", profile, "one=1", "two=2").stderr
    assert said.count("one is not known") == said.count("two is not known") == 1
    said = terminal("admin", "import-profile", "x", stdin='{"accessToken": "nobody"}').stderr
    assert said.startswith("Error: The account of these tokens could not be determined: X ")


def test_credentials_that_are_no_text_are_reported(terminal):
    file = terminal.folder / "credentials.json"
    file.write_bytes(b"\xff\xfe{")
    assert "not UTF-8 text" in terminal.refusal("admin", "import-profile", "x", "--credentials", str(file))


def test_a_missing_configuration_names_the_remedy(tmp_path):
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "none.toml"), "admin", "list-keys"])
    assert done.exit_code == 1
    assert "socialpub init" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["admin", "--help"], ["serve", "--help"], ["--version"]])
def test_help_and_version_need_no_configuration(arguments):
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0
    assert shown.stdout
    assert "end-with-parent" not in shown.stdout


def test_unknown_commands_are_wrong_usage():
    assert CliRunner().invoke(main, ["publish"]).exit_code == 2
    assert CliRunner().invoke(main, ["admin", "publish"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["serve", "--config", "F"], "socialpub --config FILE serve"),
        (["admin", "list-keys", "--config=F"], "socialpub --config FILE admin list-keys"),
        (["admin", "--config", "F", "list-keys"], "socialpub --config FILE admin"),
    ],
)
def test_config_behind_a_command_is_led_to_its_place(arguments, right):
    refused = CliRunner().invoke(main, arguments, prog_name="socialpub")
    assert refused.exit_code == 2
    assert f"Write --config before the command: {right}\n" in refused.stderr
    assert "Did you mean" not in refused.stderr


def loaded_by(module: str) -> set[str]:
    listing = f"import json, sys, {module}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


HEAVY = {
    "PIL", "anyio", "asyncio", "av", "cryptography", "email", "httpcore2", "httpx2", "huey", "importlib.metadata",
    "jinja2", "logging", "orjson", "peewee", "pydantic", "rich", "sqlite3", "ssl", "starlette", "tomllib", "traceback",
    "uvicorn",
}  # fmt: skip
SLOW_TO_START = {*HEAVY, "subprocess"}


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("--version", SLOW_TO_START),
        ("--help", {*SLOW_TO_START, "json", "socialpub.cli.output"}),
        ("post --help", SLOW_TO_START),
        ("post --to x", SLOW_TO_START),
        ("status --help", SLOW_TO_START),
        ("admin --help", {"httpx2", "rich", "starlette", "uvicorn", "PIL", "av"}),
    ],
)
def test_a_command_that_only_explains_loads_nothing_heavy(line, heavy):
    program = """import atexit, sys
atexit.register(lambda: print("Modules:", *sys.modules, file=sys.stderr))
from socialpub.cli import admin
from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
main()"""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SOCIALPUB")}
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == (2 if line == "post --to x" else 0), done.stderr
    loaded = set(done.stderr.partition("Modules:")[2].split())
    assert "click" in loaded and not loaded & heavy


NETWORKS = {f"socialpub.providers.{name}" for name in LABELS}


def test_a_command_loads_no_network_that_it_does_not_use(terminal):
    """Half of the time and a sixth of the memory of a short command were adapters and the HTTP client."""
    program = """import atexit, sys
atexit.register(lambda: print("Modules:", *sys.modules, file=sys.stderr))
from socialpub.cli import admin
from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
main()"""
    words = ["--config", str(terminal.config), "admin", "list-keys"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.partition("Modules:")[2].split())
    assert "socialpub.runtime" in loaded
    assert not loaded & {*NETWORKS, "httpx2", "anyio", "rich.console", "socialpub.publishing.delivery.engine"}


def test_a_process_of_the_appliance_loads_every_network_at_its_start(terminal):
    """The first post does not wait for imports."""
    with CommandContext(terminal.config).start("worker") as rt:
        assert rt.opened_http is not None
        assert {*rt.providers._made} == {*rt.providers} == {*SPECIFIED}


def test_help_has_the_headings_of_the_manual():
    shown = CliRunner().invoke(main, ["--help"]).stdout
    headings = re.findall(r"^([A-Z][a-z]+):$", shown, re.MULTILINE)[1:]  # after the options
    assert headings == re.findall(r"^## (.+)$", topic("commands").read_text(), re.MULTILINE)
    assert headings == ["Run", "Publish", "Accounts", "Keys", "Backups"]
    names = {name for commands in admin.SECTIONS.values() for name in commands}
    assert {f"admin {name}" for name in names} | set(main.commands) <= {
        line.strip().partition("  ")[0] for line in shown.splitlines()
    }


def test_the_worker_loads_no_web_server():
    assert not loaded_by("socialpub.worker.process") & {"starlette", "uvicorn", "jinja2", "rich", "click"}


def test_the_web_server_loads_no_decoder():
    assert not loaded_by("socialpub.web.http.server") & {"PIL", "av", "twitter_text", "rich", "jinja2"}


def test_a_sandbox_that_cannot_listen_says_so(terminal):
    assert terminal("sandbox", "--listen", "127.0.0.1").exit_code == 2
    assert terminal("sandbox", "--listen", "127.0.0.1:99999").exit_code == 2
    assert "Hint:" in terminal.refusal("sandbox", "--listen", "192.0.2.1:8100")


def test_a_full_disk_is_reported_for_every_wording(tmp_path):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.execute("PRAGMA max_page_count = 1")
        try:
            try:
                database.execute("CREATE TABLE more_than_one_page (id)")
            finally:
                database.execute("ROLLBACK")
        except sqlite3.Error as error:
            shown = as_command_error(error, partial(file_faults.find_fault, settings=settings_in(tmp_path)))
    assert shown is not None
    assert shown.message.endswith(" is full: the database cannot be written.")
    assert shown.hint is not None and "Free some space" in shown.hint
