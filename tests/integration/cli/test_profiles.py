"""Profiles from the terminal."""

import json

NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"


def test_an_account_is_connected_and_its_id_printed_alone(terminal, tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(terminal.grant("studio"))
    done = terminal.success("admin", "import-profile", "x", "--name", "Studio news", "--credentials", str(tokens))
    (shown,) = json.loads(terminal("admin", "list-profiles", "--json").stdout)
    assert shown["id"] == done.stdout.strip()
    assert (shown["name"], shown["username"], shown["status"]) == ("Studio news", "studio", "active")
    assert "expiresAt" not in shown, "with a refresh token without an expiry from X"
    assert "@studio" in done.stderr


def test_a_profile_is_renamed(terminal):
    profile = terminal.connect()
    assert terminal("admin", "rename-profile", profile.upper(), "Evening news").exit_code == 0
    assert "Evening news" in terminal("admin", "list-profiles").stdout
    assert terminal("admin", "rename-profile", profile, "").exit_code == 1
    assert terminal("admin", "rename-profile", NOBODY, "Unknown").exit_code == 1
    assert terminal("admin", "rename-profile", "7", "Unknown").exit_code == 2


def test_a_profile_is_disconnected(terminal):
    profile = terminal.connect()
    for _ in range(2):
        assert terminal("admin", "disconnect-profile", profile).exit_code == 0
    assert "disconnected" in terminal("admin", "list-profiles").stdout
    assert terminal("admin", "disconnect-profile", NOBODY).exit_code == 1


def test_options_are_stored_shown_and_taken_away(terminal):
    profile = terminal.connect()
    done = terminal("admin", "set-options", profile, "reply_settings=following", "madeWithAi=true")
    assert json.loads(done.stdout) == {"replySettings": "following", "madeWithAi": True}
    assert "replySettings" in terminal("admin", "list-profiles").stdout
    before = terminal("admin", "list-profiles", "--json").stdout
    assert terminal("admin", "set-options", profile).stdout == done.stdout, "alone it shows what is stored"
    assert terminal("admin", "list-profiles", "--json").stdout == before
    done = terminal("admin", "set-options", profile, "replySettings=")
    assert json.loads(done.stdout) == {"madeWithAi": True}
