"""`backup`, `verify-backup`, `restore`, and the `resume` that follows."""

from datetime import timedelta
from pathlib import Path

import pytest

from socialpub.core.locks import FileLock
from socialpub.core.settings.loader import load as load_settings
from socialpub.publishing.delivery.read_back import NOT_SENT_AFTER_RESTORE
from tests.integration.cli.conftest import Terminal
from tests.support import copies
from tests.support.appliance import accept, message_of
from tests.support.drain import drain
from tests.support.select import select_value


def test_a_backup_is_written_read_and_restored(terminal):
    profile = terminal.connect()
    with terminal.open() as rt:
        accept(rt, profile)
    copy = str(terminal.folder / "appliance.copy")
    written = terminal("backup", copy)
    assert (written.exit_code, written.stdout) == (0, f"{copy}\n")
    assert "1 post, 0 media files." in written.stderr
    assert "does not contain secret.key" in written.stderr
    again = terminal.refusal("backup", copy)
    assert "already exists" in again
    assert "Hint: " in again
    verified = terminal("verify-backup", copy)
    assert (verified.exit_code, verified.stdout) == (0, f"{copy} is complete and unchanged.\n")

    other = terminal.elsewhere()
    assert "does not contain secret.key" in other.refusal("restore", copy)
    key = (terminal.folder / "data" / "secret.key").read_bytes()
    (other.folder / "data" / "secret.key").write_bytes(key)
    restored = other("restore", copy)
    assert (restored.exit_code, restored.stdout) == (0, f"{other.folder / 'data'}\n"), restored.output
    assert "paused" in restored.stderr
    assert "admin resume --nothing-was-sent" in restored.stderr
    assert "API key" not in restored.stderr + other("doctor").stdout, "without keys there is nothing to decide"
    assert "already exists" in other("restore", copy).stderr


def test_verifying_needs_no_configuration(terminal):
    copy = str(terminal.folder / "appliance.copy")
    assert terminal("backup", copy, "--with-secret").exit_code == 0
    terminal.config.unlink()
    assert terminal("verify-backup", copy).exit_code == 0
    with (terminal.folder / "appliance.copy").open("r+b") as file:
        file.seek(9000)
        file.write(b"!")
    damaged = terminal("verify-backup", copy)
    assert damaged.exit_code == 1
    assert "damaged or incomplete" in damaged.stderr


@pytest.fixture
def restored(terminal: Terminal) -> Terminal:
    """A restored backup with two posts that have come due since, and one for next week."""
    profile, copy = terminal.connect(), str(terminal.folder / "appliance.copy")
    with terminal.open() as rt:
        for body, minutes in (("one", 1), ("two", 2), ("Launch!", 7 * 24 * 60)):
            accept(rt, profile, body=body, at=terminal.clock.now() + timedelta(minutes=minutes))
    assert "secret.key." in terminal("backup", copy, "--with-secret").stderr
    other = terminal.elsewhere()
    other.success("restore", copy)
    terminal.clock.forward(600)
    return other


def test_after_a_restore_resume_says_what_becomes_of_what_was_due_and_lists_what_is_scheduled(restored):
    resumed = restored("admin", "resume")
    said = "2 deliveries were due since the backup. socialpub reads the accounts back"
    assert said in resumed.stderr
    assert "Cancel the posts that must not be published" in " ".join(resumed.stderr.split())
    (line,) = [line for line in resumed.stdout.splitlines() if "Launch!" in line]
    assert "2026-10-19 09:00:00 UTC" in line
    with restored.open() as rt:
        drain(rt, restored.clock, within=6 * 3600)
        assert select_value(rt.db, "SELECT id FROM post WHERE body = 'Launch!'") in line
        assert message_of(rt, select_value(rt.db, "SELECT id FROM post WHERE body = 'two'")) == NOT_SENT_AFTER_RESTORE
    assert restored.world.x.posts == []
    restored("admin", "pause")
    assert restored("admin", "resume").stdout == "", "an ordinary resume lists nothing"


def test_the_owners_word_sends_it(restored):
    assert "reads the accounts back" not in restored.success("admin", "resume", "--nothing-was-sent").stderr
    with restored.open() as rt:
        drain(rt, restored.clock, within=6 * 3600)
    restored("admin", "pause")
    assert "has no effect" in restored("admin", "resume", "--nothing-was-sent").stderr
    assert [post.text for post in restored.world.x.posts] == ["one", "two"]


def test_a_data_dir_that_does_not_exist_yet_is_made(terminal):
    copy = str(terminal.folder / "appliance.copy")
    terminal("backup", copy, "--with-secret")
    other = terminal.elsewhere()
    other.config.write_text(other.config.read_text().replace('data_dir = "data"', 'data_dir = "far/away"'))
    other.success("restore", copy)
    assert load_settings(other.config, {}).secret_key_file.is_file()
    assert other("doctor").exit_code == 1, "no worker has run there"


def test_a_folder_that_does_not_exist_is_reported_with_the_command_that_creates_it(terminal):
    target = terminal.folder / "my copies" / "today" / "copy.tar"
    refused = terminal.refusal("backup", str(target))
    assert f"The folder {target.parent} does not exist." in refused
    assert f"mkdir -p '{target.parent}'" in refused


def test_what_is_known_of_a_copys_maker_is_said(terminal):
    copy, bare = str(terminal.folder / "with.copy"), str(terminal.folder / "without.copy")
    terminal("backup", copy, "--with-secret")
    terminal("backup", bare)
    assert "was not changed without that key" in terminal("verify-backup", bare).stderr
    assert "could have signed it again" in terminal("verify-backup", copy).stderr
    key = terminal.folder / "data" / "secret.key"
    kept = key.read_text()
    key.write_text("A" * 43)
    assert "The signature was not checked" in terminal("verify-backup", bare).stderr
    key.unlink()
    assert "The signature was not checked" in terminal("verify-backup", bare).stderr
    assert "put your own secret.key" in terminal("verify-backup", copy).stderr
    key.write_text(kept)
    stripped = str(copies.forged(Path(bare), terminal.folder / "stripped.copy", changed={}))
    refused = terminal.refusal("verify-backup", stripped)
    assert "is not signed" in refused
    assert "--unsealed" in refused
    assert "not signed" in terminal.success("verify-backup", stripped, "--unsealed").stderr
    for name in ("socialpub.db", "socialpub.db-wal", "socialpub.db-shm"):
        (terminal.folder / "data" / name).unlink(missing_ok=True)
    assert "is not signed" in terminal("restore", stripped).stderr
    assert terminal("restore", stripped, "--unsealed").exit_code == 0


def test_without_a_file_backups_gather_in_a_folder_and_any_of_them_is_restored(terminal):
    profile = terminal.connect()
    with terminal.open() as rt:
        accept(rt, profile)
    made = terminal("backup", "--with-secret")
    folder = terminal.folder / "data" / "backups" / "2026-10-12T09-00-00Z"
    assert (made.exit_code, made.stdout) == (0, f"{folder}\n")
    assert "1 post, 0 media files, secret.key." in made.stderr
    assert "are new" in made.stderr
    for _ in range(14):
        terminal.clock.forward(3600)
        later = terminal("backup", "--with-secret")
    assert "1 older backup was removed" in later.stderr
    copy = Path(later.stdout.strip())
    assert len(list(folder.parent.iterdir())) == 14
    assert terminal("verify-backup", str(copy)).stdout == f"{copy} is complete and unchanged.\n"
    parent = terminal("verify-backup", str(copy.parent))
    assert (parent.exit_code, str(copy) in parent.stderr) == (1, True)
    other = terminal.elsewhere()
    assert other("restore", str(copy)).exit_code == 0
    assert "paused" in other("admin", "list-posts").stderr


def test_what_must_be_kept_apart_includes_the_password_of_the_program_that_takes_backups_elsewhere(terminal):
    said = "Also keep the password of true elsewhere"
    assert said not in terminal("backup").stderr
    terminal.config.write_text(f'{terminal.config.read_text()}\n[backup]\nafter = ["/bin/true", "{{backup}}"]\n')
    terminal.clock.forward(60)
    assert said in terminal("backup").stderr
    assert said in terminal("backup", "--with-secret").stderr
    assert said not in terminal("backup", str(terminal.folder / "one.copy")).stderr, "that one stays here"


def test_the_second_of_two_backups_reports_the_first_and_does_not_fail(terminal):
    with terminal.open() as rt, FileLock(rt.settings.run_dir / "backup.lock"):
        second = terminal("backup")
    assert (second.exit_code, second.stdout) == (0, "")
    assert "is already being made" in second.stderr


def test_a_backup_whose_command_fails_ends_with_1_and_the_doctor_knows(terminal):
    text = terminal.config.read_text()
    terminal.config.write_text(f'{text}\n[backup]\nafter = ["/nowhere/restic", "backup", "{{backup}}"]\n')
    assert "'/nowhere/restic' cannot be run: No such file or directory" in terminal.refusal("backup")
    found = terminal("doctor", "--problems").stdout
    assert "backup: " in found
    assert "'/nowhere/restic' cannot be run" in found


def test_who_expects_something_to_be_published_hears_that_it_is_not(terminal):
    profile = terminal.connect()
    with terminal.open() as rt:
        post = accept(rt, profile)
    for arguments in (("list-posts",), ("show-post", post)):
        assert "paused" not in terminal("admin", *arguments).stderr
    with terminal.open() as rt:
        copies.become_restored(rt)
    for arguments in (("list-posts",), ("show-post", post)):
        told = terminal("admin", *arguments).stderr
        assert "was restored from a backup of" in told
        assert "admin resume" in told
