"""The trail: what the owner did at the terminal is written down with it, and nothing of it is secret."""

from datetime import timedelta

from socialpub.accounts import api_keys
from socialpub.core import actor
from socialpub.db.tables import audit_log
from socialpub.db.tables.audit_log import AuditAction, AuditEntry
from socialpub.ops import audit_text
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.integration.cli.conftest import Terminal
from tests.support.select import select_all


def told(rt: Runtime, *kinds: str) -> list[tuple[str, str]]:
    """Return actor and sentence of every entry, the oldest first."""
    entries = audit_log.load_page(rt.db, kinds).entries
    return [(entry.actor, audit_text.describe(entry)) for entry in reversed(entries)]


def test_what_the_owner_does_at_the_terminal_is_listed_in_order(terminal: Terminal, rt: Runtime) -> None:
    key = terminal("admin", "create-key", "my script", "--scope", "read").stdout.strip()
    profile = terminal.connect()
    terminal("admin", "rename-profile", profile, "Bakery")
    terminal("admin", "set-options", profile, "madeWithAi=true")
    terminal("admin", "refresh-profile", profile)
    terminal("admin", "pause")
    terminal("admin", "pause")
    terminal("admin", "resume")
    terminal("admin", "disconnect-profile", profile)
    terminal("admin", "disconnect-profile", profile)
    terminal("admin", "revoke-key", key)
    terminal("admin", "revoke-key", key)
    entries = told(rt)
    assert {who for who, _ in entries} == {"command"}
    former = entries[2][1].split("formerly ")[1]
    assert [sentence for _, sentence in entries] == [
        "Created the API key “my script” (read only).",
        f"Imported tokens for the X profile {former[:-1]}.",
        f"Renamed the X profile “Bakery”, formerly {former}",
        "Set default options of the X profile “Bakery”: madeWithAi.",
        "Renewed the tokens of the X profile “Bakery”.",
        "Paused publishing.",
        "Resumed publishing.",
        "Disconnected the X profile “Bakery”.",
        "Revoked the API key “my script”.",
    ]
    stored = str([tuple(row) for row in select_all(rt.db, "SELECT * FROM trail")])
    assert key.split("_", 2)[2] not in stored


def test_what_a_key_posts_is_no_news_and_what_it_disconnects_is(terminal: Terminal, rt: Runtime) -> None:
    profile = terminal.connect()
    key = rt.write(api_keys.create, "my script")
    before = audit_log.load_page(rt.db).total
    with Client(create_app(rt), key) as client:
        at = (rt.now() + timedelta(hours=1)).isoformat()
        post = client.send("POST", "/posts", {"post": {"body": "a", "scheduledAt": at}, "profiles": [profile]}).data
        assert client.send("POST", f"/posts/{post['id']}/cancel").status == 200
        assert audit_log.load_page(rt.db).total == before
        assert client.send("POST", f"/profiles/{profile}/disconnect").status == 204
    newest = audit_log.load_page(rt.db).entries[0]
    assert newest.action == AuditAction.PROFILE_DISCONNECTED
    assert newest.actor == f"key {key.split('_')[1]} my script"
    assert audit_text.describe_actor(newest.actor) == f"API key “my script” ({key.split('_')[1]})"


def test_every_action_has_a_sentence() -> None:
    for action in AuditAction:
        entry = AuditEntry(1, "2026-10-12T09:00:00.000Z", actor.COMMAND, action, "id", "a label", {"provider": "x"})
        assert audit_text.describe(entry) != f"{action}.", action
    assert audit_text.describe(AuditEntry(1, "", "", "moon.landed", None, None, {})) == "moon.landed."
