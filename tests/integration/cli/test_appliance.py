"""The appliance from the terminal: its keys, its pauses, its password and its messages to the owner."""

import json
import re

import pytest

from socialpub.accounts import api_keys, sign_in
from socialpub.ops.notify import send
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.postbox import Postbox

# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_is_printed_alone_and_works(terminal):
    made = terminal.success("admin", "create-key", "my script")
    assert re.fullmatch(r"spk_\w+_[\w-]{43}\n", made.stdout)
    assert "read and write" in made.stderr
    with terminal.open() as rt:
        caller = api_keys.authenticate(rt, made.stdout.strip())
    assert caller is not None
    assert caller.scope == "write"


def test_a_key_may_be_limited_in_every_way(terminal, rt):
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
    caller = api_keys.authenticate(rt, made.stdout.strip())
    assert caller is not None
    assert (caller.scope, caller.providers, caller.profiles) == ("read", {"x"}, {profile})
    terminal.clock.forward(90 * 86400)
    assert api_keys.authenticate(rt, made.stdout.strip()) is None


def test_keys_are_listed_without_their_secrets(terminal):
    assert terminal("admin", "list-keys").stdout == ""
    key = terminal("admin", "create-key", "[bold]script").stdout.strip()
    table = terminal("admin", "list-keys").stdout
    assert "[bold]script" in table
    assert key.split("_")[1] in table
    listed = terminal("admin", "list-keys", "--json").stdout
    assert [(one["name"], one["scope"]) for one in json.loads(listed)] == [("[bold]script", "write")]
    secret = key.split("_", 2)[2]
    assert secret not in table + listed


def test_the_limit_of_a_key_s_posts_is_printed_and_listed(terminal, rt):
    made = terminal("admin", "create-key", "agent", "--posts-per-day", "10")
    assert "at most 10 posts in 24 hours" in made.stderr
    caller = api_keys.authenticate(rt, made.stdout.strip())
    assert caller is not None
    assert caller.posts_per_day == 10
    assert "10 posts a day" in terminal("admin", "list-keys").stdout
    assert terminal("admin", "create-key", "a", "--posts-per-day", "0").exit_code == 2
    made = terminal("admin", "create-key", "asks", "--approval")
    assert "Each of its posts waits until you approve it. It changes only its own posts, and it" in made.stderr
    caller = api_keys.authenticate(rt, made.stdout.strip())
    assert caller is not None
    assert caller.approval
    assert "with approval" in terminal("admin", "list-keys").stdout
    assert terminal("admin", "create-key", "a", "--approval", "--scope", "read").exit_code == 1
    assert terminal("admin", "create-key", "a", "--posts-per-day", "5", "--scope", "read").exit_code == 1


def test_what_is_no_key_is_reported(terminal):
    unknown = terminal.refusal("admin", "revoke-key", "abc")
    assert unknown.startswith("Error: There is no key abc.")
    assert "Hint:" in unknown
    assert terminal("admin", "create-key", " ").exit_code == 1
    assert terminal("admin", "create-key", "a", "--expires-in", "soon").exit_code == 2
    assert terminal("admin", "create-key", "a", "--scope", "admin").exit_code == 2
    assert terminal("admin", "create-key", "a", "--provider", "myspace").exit_code == 1


# --- pause and resume ------------------------------------------------------------------------------------------------


def test_nothing_starts_between_pause_and_resume(terminal, rt):
    profile = terminal.connect()
    assert "not paused" in terminal.success("admin", "resume").stderr
    assert terminal("admin", "pause").exit_code == 0
    accept(rt, profile)
    drain(rt, terminal.clock)
    assert terminal.world.x.posts == []
    assert "already" in terminal.success("admin", "pause").stderr
    assert terminal("admin", "resume").exit_code == 0
    drain(rt, terminal.clock)
    assert len(terminal.world.x.posts) == 1


def test_resume_says_how_many_posts_are_too_late(terminal, rt):
    profile = terminal.connect()
    terminal("admin", "pause")
    for body in ("one", "two"):
        accept(rt, profile, body=body)
    terminal.clock.forward(25 * 3600)
    accept(rt, profile, body="three")
    resumed = terminal("admin", "resume")
    assert "2 posts are more than 24h late" in resumed.stderr
    drain(rt, terminal.clock)
    assert [post.text for post in terminal.world.x.posts] == ["three"]


# --- the password ----------------------------------------------------------------------------------------------------


def test_a_password_is_set_and_ends_every_session(terminal, rt):
    refused = terminal("admin", "set-password", stdin="too short\n")
    assert (refused.exit_code, sign_in.is_password_set(rt.db)) == (1, False)
    assert "at least 10 characters" in refused.stderr

    rt.write(sign_in.begin_session, "127.0.0.1", "a browser")
    done = terminal("admin", "set-password", stdin="long enough for me\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "The password is set" in done.stderr
    assert "long enough" not in done.stderr
    assert sign_in.is_password(rt, "long enough for me")
    assert not sign_in.is_password(rt, "long enough for you")
    assert sign_in.list_sessions(rt, rt.db) == []


def test_without_a_terminal_it_says_how_a_container_gives_one(terminal, rt):
    refused = terminal("admin", "set-password", stdin="")
    assert (refused.exit_code, sign_in.is_password_set(rt.db)) == (1, False)
    assert "admin set-password` in a terminal (for a container: `podman exec -it`)." in refused.stderr
    refused = terminal("admin", "connect-profile", "x", "--paste", stdin="")
    assert "admin connect-profile x --paste` in a terminal (for a container: " in refused.stderr


# --- messages to the owner -------------------------------------------------------------------------------------------


URLS = '\n[notify]\nurls = ["ntfy://127.0.0.1:1/hidden-topic", "gotify://127.0.0.1:1/HiddenToken1234"]\n'


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    monkeypatch.setattr(send, "find_fault", lambda url: None)
    return box


def test_each_service_is_sent_a_message_and_named_by_scheme_and_host(terminal, postbox):
    terminal.config.write_text(terminal.config.read_text() + URLS)
    postbox.failing["gotify"] = "it does not know the topic, the chat or the token (404)"
    result = terminal("admin", "notify-test")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ntfy://127.0.0.1: sent",
        "gotify://127.0.0.1: not sent, it does not know the topic, the chat or the token (404)",
    ]
    assert "1 service did not accept the message" in result.stderr
    assert "Hidden" not in result.output
    assert "hidden-topic" not in result.output
    assert "This is a test" in postbox.last
    postbox.failing.clear()
    assert terminal("admin", "notify-test").exit_code == 0


def test_without_an_address_it_says_where_one_belongs(terminal):
    assert "notify.urls is empty" in terminal.refusal("admin", "notify-test")


# --- a network beyond the specification ------------------------------------------------------------------------------


def test_a_network_that_is_not_enabled_is_an_unknown_name(terminal):
    for arguments in (("create-key", "sky", "--provider", "bluesky"), ("connect-profile", "bluesky")):
        refused = terminal("admin", *arguments)
        assert refused.exit_code != 0
        assert "x, tiktok, pinterest" in refused.stderr
        assert "enabled" not in refused.stderr


def test_a_new_key_says_which_networks_it_does_not_see(terminal):
    terminal.success("admin", "create-key", "old")
    assert "everything" in terminal("admin", "list-keys").stdout
    with terminal.config.open("a") as config:
        config.write("\n[providers.bluesky]\nenabled = true\n")
    made = terminal.success("admin", "create-key", "three")
    assert "This key does not see Bluesky. A key with --provider bluesky or all sees it." in made.stderr
    made = terminal.success("admin", "create-key", "every", "--provider", "all")
    assert "within profiles of every network" in made.stderr
    assert "does not see" not in made.stderr
    assert "does not see" not in terminal.success("admin", "create-key", "sky", "--provider", "bluesky").stderr
    listed = {line.split()[1]: line for line in terminal("admin", "list-keys").stdout.splitlines()[2:]}
    assert "x, tiktok, pinterest" in listed["old"]
    assert "x, tiktok, pinterest" in listed["three"]
    assert "everything" in listed["every"]
    assert "bluesky" in listed["sky"]
