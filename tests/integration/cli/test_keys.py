"""Keys from the terminal: the key alone on stdout, news on stderr."""

import json
import re

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal


def test_a_key_is_printed_alone_and_works(terminal: Terminal) -> None:
    made = terminal("admin", "create-key", "my script")
    assert made.exit_code == 0
    assert re.fullmatch(r"spk_\w+_[\w-]{43}\n", made.stdout)
    assert "read and write" in made.stderr
    with terminal.open() as rt:
        caller = api_keys.authenticate(rt.reader, made.stdout.strip(), rt.now())
    assert caller is not None
    assert caller.scope == "write"


def test_a_key_may_be_limited_in_every_way(terminal: Terminal, rt: Runtime) -> None:
    profile = terminal.connect()
    made = terminal(
        "admin",
        "create-key",
        "narrow",
        "--scope",
        "read",
        "--provider",
        "x",
        "--profile",
        profile,
        "--expires-in",
        "90d",
    )
    assert "only read" in made.stderr
    assert "2027-01-10" in made.stderr
    caller = api_keys.authenticate(rt.reader, made.stdout.strip(), rt.now())
    assert caller is not None
    assert (caller.scope, caller.providers, caller.profiles) == ("read", {"x"}, {profile})
    terminal.clock.forward(90 * 86400)
    assert api_keys.authenticate(rt.reader, made.stdout.strip(), rt.now()) is None


def test_keys_are_listed_without_their_secrets(terminal: Terminal) -> None:
    assert terminal("admin", "list-keys").stdout == ""
    key = terminal("admin", "create-key", "[bold]script").stdout.strip()
    table = terminal("admin", "list-keys").stdout
    assert "[bold]script" in table
    assert key.split("_")[1] in table
    listed = terminal("admin", "list-keys", "--json").stdout
    assert [(one["name"], one["scope"]) for one in json.loads(listed)] == [("[bold]script", "write")]
    secret = key.split("_", 2)[2]
    assert secret not in table + listed


def test_a_revoked_key_is_refused_at_once(terminal: Terminal, rt: Runtime) -> None:
    key = terminal("admin", "create-key", "old").stdout.strip()
    assert api_keys.authenticate(rt.reader, key, rt.now()) is not None
    assert terminal("admin", "revoke-key", key).exit_code == 0, "the whole key is understood, too"
    assert api_keys.authenticate(rt.reader, key, rt.now()) is None
    assert "revoked" in terminal("admin", "list-keys").stdout


def test_what_is_no_key_is_told(terminal: Terminal) -> None:
    unknown = terminal("admin", "revoke-key", "abc")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("Error: There is no key abc.")
    assert "Hint:" in unknown.stderr
    assert terminal("admin", "create-key", " ").exit_code == 1
    assert terminal("admin", "create-key", "a", "--expires-in", "soon").exit_code == 2
    assert terminal("admin", "create-key", "a", "--scope", "admin").exit_code == 2
    assert terminal("admin", "create-key", "a", "--provider", "myspace").exit_code == 1
