"""A restore brings back API keys that were revoked since the backup: the owner sees them until they are settled."""

from collections import Counter

import pytest

from socialpub.accounts import api_keys
from socialpub.db.tables import audit_log
from socialpub.ops import audit_text
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal


def key_id(key: str) -> str:
    return key.split("_")[1]


def created(terminal: Terminal, name: str, *options: str) -> str:
    return terminal("admin", "create-key", name, *options).stdout.strip()


def works(terminal: Terminal, key: str) -> bool:
    with terminal.open() as rt:
        return api_keys.authenticate(rt, key) is not None


def used(rt: Runtime, key: str) -> None:
    rt.write(api_keys._record_uses, {key_id(key): rt.now()}, Counter())


def note(text: str) -> str:
    return " ".join(text.split())


def history(terminal: Terminal) -> list[str]:
    with terminal.open() as rt:
        entries = audit_log.load_page(rt.db, ["key"]).entries
    return [f"{audit_text.describe_actor(one.actor)}: {audit_text.describe(one)}" for one in entries]


@pytest.fixture
def leaked(terminal: Terminal) -> str:
    """A key that was revoked after the backup."""
    return created(terminal, "leaked")


@pytest.fixture
def restored(terminal: Terminal, leaked: str) -> Terminal:
    """A restored backup with the keys `leaked` and `backups`."""
    with terminal.open() as rt:
        used(rt, leaked)
    created(terminal, "backups", "--scope", "read")
    terminal("admin", "revoke-key", key_id(created(terminal, "revoked before")))
    created(terminal, "expired", "--expires-in", "1m")
    terminal.clock.forward(120)
    backup = str(terminal.folder / "appliance.copy")
    terminal("backup", backup, "--with-secret")
    terminal("admin", "revoke-key", key_id(leaked))
    other = terminal.elsewhere()
    said = other.success("restore", backup)
    assert said.stdout == f"{other.folder / 'data'}\n"
    assert "2 API keys came with the restored backup and are valid." in said.stderr
    assert f"“leaked” ({key_id(leaked)}, write), last used at 2026-10-12T09:00:00.000Z" in said.stderr
    assert "“backups”" in said.stderr
    assert "read), never used" in said.stderr
    assert "revoked before" not in said.stderr
    assert "expired" not in said.stderr
    return other


def test_the_keys_of_the_backup_are_reported_until_they_are_revoked_and_a_newer_key_stays(restored, leaked):
    fresh = created(restored, "fresh")
    assert works(restored, leaked), "without a decision it stays valid"
    report = note(restored("doctor", "--problems").stdout)
    assert "2 API keys came with the restored backup and are valid." in report
    assert "“leaked”" in report
    assert "fresh" not in report
    assert "admin resume --revoke-keys" in report
    resumed = restored.success("admin", "resume")
    assert resumed.stdout == "", "standard output lists posts alone"
    assert "“leaked”" in resumed.stderr
    assert "fresh" not in resumed.stderr
    assert "“leaked”" in restored("admin", "resume").stderr, "nothing was decided"

    assert "Revoked 2 API keys of the restored backup:" in restored.success("admin", "resume", "--revoke-keys").stderr
    assert (works(restored, leaked), works(restored, fresh)) == (False, True)
    assert "restored backup" not in restored("doctor").stdout
    assert "“leaked”" not in restored("admin", "resume").stderr
    assert set(history(restored)[:2]) == {
        "owner, at the terminal: Revoked the API key “backups”.",
        "owner, at the terminal: Revoked the API key “leaked”.",
    }
    assert (
        "There are no API keys of a restored backup to keep or revoke"
        in restored.success("admin", "resume", "--revoke-keys").stderr
    )
    assert works(restored, fresh)


def test_kept_keys_stay_valid_and_are_reported_no_longer(restored, leaked):
    kept = restored.success("admin", "resume", "--keep-keys")
    assert "Kept 2 API keys of the restored backup:" in kept.stderr
    assert "Publishing continues" in kept.stderr
    assert works(restored, leaked)
    assert "restored backup" not in restored("doctor").stdout
    assert "owner, at the terminal: Kept the API key “leaked” of a restored backup." in history(restored)


def test_keeping_and_revoking_exclude_each_other(restored, leaked):
    refused = restored("admin", "resume", "--keep-keys", "--revoke-keys")
    assert refused.exit_code == 2
    assert "cannot be combined" in refused.stderr
    assert "restored backup" in restored("doctor").stdout
