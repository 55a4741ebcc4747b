"""Backups (contract section 7): complete or refused, of one instant, and restored without leftovers after a failure."""

import errno
import sqlite3
import subprocess
import tarfile
import threading
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core import durable_files
from socialpub.core.errors import OperatorError
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state
from socialpub.db.backup_format import Seal, TarWriter
from socialpub.db.connection import Database
from socialpub.db.tables import artifact_rows
from socialpub.ops.backup import create, restore, verify
from socialpub.publishing import retention
from socialpub.runtime import Runtime, build
from tests.samples import media
from tests.support import copies
from tests.support.appliance import accept, add_profile
from tests.support.copies import copy_of, file_of, put_back
from tests.support.sandbox_http import artifact
from tests.support.select import select_value


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- taking ----------------------------------------------------------------------------------------------------------


def test_what_was_copied_comes_back_as_it_was(rt, image, tmp_path, clock):
    copy = copy_of(rt, tmp_path)
    assert copy.stat().st_mode & 0o777 == 0o600
    settings = put_back(copy, tmp_path / "new" / "deep", clock)
    assert files_in(settings.data_dir) == files_in_an_appliance(file_of(rt, image))
    assert settings.data_dir.stat().st_mode & 0o777 == 0o700
    assert settings.secret_key_file.stat().st_mode & 0o777 == 0o600
    assert settings.secret_key_file.read_bytes() == rt.settings.secret_key_file.read_bytes()
    with closing(build(settings, clock=clock)) as other:
        assert file_of(other, image).read_bytes() == file_of(rt, image).read_bytes()
        assert select_value(other.db, "SELECT count(*) FROM post") == 1


def files_in_an_appliance(image: Path) -> list[str]:
    folder = image.parent.name
    return ["media", f"media/{folder}", f"media/{folder}/{image.name}", "secret.key", "socialpub.db"]


def test_a_backup_made_while_somebody_writes_is_of_one_instant(rt, tmp_path, clock):
    profiles = add_profile(rt), add_profile(rt, account_id="other")
    enough, begun = threading.Event(), threading.Event()

    def write() -> None:
        while not enough.is_set():
            accept(rt, *profiles, body="x" * 2000)
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(30)
        copies = []
        for number in range(5):
            before = select_value(rt.db, "SELECT count(*) FROM post")
            copies.append((tmp_path / f"{number}.copy", before))
            create.write_backup(rt, copies[-1][0], with_secret=True)
    finally:
        enough.set()
        writer.join()
    for number, (copy, before) in enumerate(copies):
        found = verify.verify_backup(copy)
        assert found.posts >= before
        settings = put_back(copy, tmp_path / f"appliance{number}", clock)
        with closing(sqlite3.connect(settings.database_file)) as database:
            assert database.execute("SELECT count(*) FROM delivery").fetchone() == (2 * found.posts,)
            assert database.execute("SELECT count(*) FROM log_entry").fetchone() == (2 * found.posts,)
            assert database.execute("SELECT count(*) FROM post").fetchone() == (found.posts,)


def test_a_backup_of_much_takes_little_memory(rt, image, tmp_path, clock):
    media.pad(file_of(rt, image), 48 << 20)
    tracemalloc.start()
    try:
        copy = copy_of(rt, tmp_path)
        verify.verify_backup(copy)
        put_back(copy, tmp_path / "new", clock)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_media_that_come_and_go_meanwhile_leave_no_loose_end(rt, image, tmp_path, clock, monkeypatch):
    unused = artifact(rt, media.png(tmp_path / "b.png"), "image/png")
    copy_database = create.copy_database

    def meanwhile(rt: Runtime, target: Path) -> None:
        copy_database(rt, target)
        clock.forward(40 * 86400)
        assert retention.remove_unused_media(rt) == 1
        artifact(rt, media.png(tmp_path / "c.png"), "image/png")

    monkeypatch.setattr(create, "copy_database", meanwhile)
    copy = tmp_path / "appliance.copy"
    told = create.write_backup(rt, copy, with_secret=True)
    assert (told.media_files, told.media_missing) == (1, 0)
    assert verify.verify_backup(copy) == told
    with closing(build(put_back(copy, tmp_path / "new", clock), clock=clock)) as other:
        gone = artifact_rows.find(other.db, unused)
        assert gone is not None
        assert (gone.storage_key, gone.removed_at) == (None, told.copied_at)
        assert file_of(other, image).is_file()
        assert select_value(other.db, "SELECT count(*) FROM artifact") == 2


def test_a_file_that_was_lost_before_is_reported_and_stops_no_backup(rt, image, tmp_path):
    file_of(rt, image).unlink()
    told = create.write_backup(rt, tmp_path / "appliance.copy")
    assert (told.media_files, told.media_missing) == (0, 1)
    assert verify.verify_backup(tmp_path / "appliance.copy") == told


def test_secret_key_is_in_a_backup_only_when_it_is_wanted(rt, image, tmp_path):
    assert "secret.key" not in copies.members_of(copy_of(rt, tmp_path, with_secret=False))
    key = rt.settings.secret_key_file.read_bytes()
    assert key not in (tmp_path / "appliance.copy").read_bytes()


def test_nothing_is_overwritten_by_a_backup(rt, tmp_path, monkeypatch):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    loose = tmp_path / "loose"
    loose.symlink_to(tmp_path / "nowhere")
    for target in (taken, loose):
        with pytest.raises(OperatorError, match="already exists"):
            create.write_backup(rt, target)
    late = tmp_path / "late"
    finish = TarWriter.finish

    def meanwhile(self: TarWriter, secrets: Secrets) -> None:
        finish(self, secrets)
        late.write_text("quicker")

    monkeypatch.setattr(TarWriter, "finish", meanwhile)
    with pytest.raises(OperatorError, match="already exists"):
        create.write_backup(rt, late)
    assert (taken.read_text(), late.read_text()) == ("mine", "quicker")
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_full_disk_leaves_nothing_behind(rt, tmp_path, monkeypatch):
    before = files_in(tmp_path)

    def full(self: TarWriter, name: str, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TarWriter, "add_file", full)
    with pytest.raises(OperatorError, match="No space left") as failure:
        create.write_backup(rt, tmp_path / "appliance.copy")
    assert failure.value.hint
    assert files_in(tmp_path) == before


def test_a_backup_on_the_same_disk_leaves_rows_their_room(rt, image, tmp_path, monkeypatch):
    floor = int(rt.settings.health.disk_floor_bytes)
    needed = file_of(rt, image).stat().st_size + rt.settings.database_file.stat().st_size
    free = floor + needed
    monkeypatch.setattr(type(rt.files), "free_bytes", lambda _: free)
    before = files_in(tmp_path)
    with pytest.raises(OperatorError, match="disk_floor_bytes") as refused:
        create.write_backup(rt, tmp_path / "copy")
    assert "another disk" in (refused.value.hint or "")
    assert files_in(tmp_path) == before
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(create, "check_space", lambda *_: None)
        assert create.write_backup(rt, tmp_path / "on another disk").media_files == 1
    free += 100_000_000
    assert create.write_backup(rt, tmp_path / "copy").media_files == 1


# --- whole or not ----------------------------------------------------------------------------------------------------


def places(size: int) -> list[int]:
    """Bytes in the whole file, and every kind of byte at its end."""
    return sorted({*range(0, size, 6007), *range(512), *range(size - 12_000, size, 37), *range(size - 600, size)})


def test_a_backup_cut_short_anywhere_is_refused(rt, image, tmp_path):
    whole = copy_of(rt, tmp_path).read_bytes()
    whole = whole[: whole.rindex(b"SEAL") + 512 + 64]  # the rest is padding
    cut = tmp_path / "cut"
    for length in places(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(verify.InvalidBackup):
            verify.verify_backup(cut, rt.secrets)


def test_a_changed_byte_is_seen_unless_it_is_padding(rt, image, tmp_path):
    copy = copy_of(rt, tmp_path)
    contents, whole, unseen = copies.contents_of(copy), bytearray(copy.read_bytes()), 0
    for place in places(len(whole)):
        whole[place] ^= 1
        copy.write_bytes(whole)
        try:
            verify.verify_backup(copy, rt.secrets)
        except OperatorError:
            pass
        else:
            unseen += 1
            assert copies.contents_of(copy) == contents, f"byte {place}"
        whole[place] ^= 1
    assert unseen < len(places(len(whole))) / 2


def strange(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


KEY = "media/ab/01890000-0000-7000-8000-0000000000ab-0123456789abcdef.png"
STRANGE = [
    strange("media/ab/../../../escaped", size=3),
    strange("/tmp/escaped", size=3),
    strange("config.toml", size=3),
    strange(KEY, tarfile.SYMTYPE, "/etc/passwd"),
    strange(KEY, tarfile.LNKTYPE, "secret.key"),
    strange(KEY, tarfile.FIFOTYPE),
    strange("socialpub.db", size=3),
]


@pytest.mark.parametrize("member", STRANGE, ids=[f"{info.name}-{info.type.decode()}" for info in STRANGE])
def test_members_that_no_backup_holds_are_refused_and_touch_nothing(rt, image, tmp_path, clock, member):
    copy = copies.forged(copy_of(rt, tmp_path), tmp_path / "forged", member, changed={})
    before = files_in(tmp_path)
    with pytest.raises(verify.InvalidBackup, match="is not a backup that socialpub made"):
        verify.verify_backup(copy)
    with pytest.raises(verify.InvalidBackup, match="is not a backup that socialpub made"):
        put_back(copy, tmp_path / "new", clock)
    assert files_in(tmp_path) == before


def test_sha256sum_can_check_what_was_unpacked(rt, image, tmp_path):
    copy = copy_of(rt, tmp_path)
    folder = tmp_path / "unpacked"
    folder.mkdir()
    subprocess.run(["tar", "-xf", copy], cwd=folder, check=True, capture_output=True)
    checked = subprocess.run(
        ["sha256sum", "-c", "SHA256SUMS"], cwd=folder, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}
    )
    assert [line.removesuffix(": OK") for line in checked.stdout.splitlines()] == copies.members_of(copy)
    assert sorted(copies.members_of(copy)) == sorted(
        name for name in files_in(folder) if (folder / name).is_file() and name not in ("SHA256SUMS", "SEAL")
    )


def test_the_sums_come_last_and_list_everything(rt, image, tmp_path):
    copy, other = copy_of(rt, tmp_path), tmp_path / "other"
    sums = copies.sums_of(copy)
    assert verify.verify_backup(copies.rewritten(copy, other, sums)).seal is Seal.NONE
    lines = sums.splitlines(keepends=True)
    for wrong in (b"", b"".join(lines[:-1]), b"".join(lines[1:]), b"".join(reversed(lines)), sums + lines[0], sums * 2):
        with pytest.raises(verify.InvalidBackup, match="damaged or incomplete: its checksum does not match"):
            verify.verify_backup(copies.rewritten(copy, other, wrong))


@pytest.mark.parametrize("lacking", ["socialpub.db", "secret.key"])
def test_a_backup_that_lacks_a_part_is_refused(rt, image, tmp_path, lacking):
    copy = copies.forged(copy_of(rt, tmp_path), tmp_path / "forged", without=lacking, changed={})
    with pytest.raises(verify.InvalidBackup, match="it lacks"):
        verify.verify_backup(copy)


def test_a_file_of_another_kind_is_no_backup(rt, tmp_path):
    for name, content in (("empty", b""), ("zeros", b"\0" * 20480), ("text", b"hello" * 9000)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(verify.InvalidBackup, match="is not a backup"):
            verify.verify_backup(tmp_path / name)
    with tarfile.open(tmp_path / "tar", "w") as tar:
        tar.add(tmp_path / "text", "text")
    with pytest.raises(verify.InvalidBackup, match="is not a backup"):
        verify.verify_backup(tmp_path / "tar")
    with pytest.raises(verify.InvalidBackup, match="is not a backup"):
        verify.verify_backup(tmp_path)
    with pytest.raises(OperatorError, match="cannot be read"):
        verify.verify_backup(tmp_path / "missing")


def test_a_database_damaged_before_it_was_copied_is_found(rt, image, tmp_path):
    copy = copy_of(rt, tmp_path)
    for damaged in (b"no database at all" * 100, b""):
        forged = copies.forged(copy, tmp_path / "forged", changed={"socialpub.db": damaged})
        with pytest.raises(OperatorError, match=r"The database in .* cannot be read|its database differs"):
            verify.verify_backup(forged)
    with tarfile.open(copy) as tar:
        content = tar.extractfile("socialpub.db")
        assert content is not None
        whole = bytearray(content.read())
    for page in range(4096 * 20, len(whole), 4096):
        whole[page : page + 64] = b"\xff" * 64
    forged = copies.forged(copy, tmp_path / "forged", changed={"socialpub.db": bytes(whole)})
    with pytest.raises(OperatorError, match=r"The database in .* (is damaged|cannot be read)"):
        verify.verify_backup(forged)


def test_a_backup_of_a_newer_version_is_refused_saying_so(rt, tmp_path, clock):
    rt.db.write(
        lambda tx: (
            tx.execute_sql(
                "INSERT INTO schema_migration (name, applied) VALUES ('0999_from_the_future', ?)", (tx.stamp,)
            ).rowcount
        )
    )
    copy = copy_of(rt, tmp_path)
    with pytest.raises(OperatorError, match=r"newer socialpub, .*0999_from_the_future"):
        put_back(copy, tmp_path / "new", clock)
    assert not (tmp_path / "new").exists()
    info = b'{"format": 2, "copied_at": "?", "secret_key": "?", "holds_secret": true}'
    with pytest.raises(OperatorError, match="newer socialpub"):
        verify.verify_backup(copies.forged(copy, tmp_path / "forged", changed={"socialpub-backup.json": info}))


# --- putting back ----------------------------------------------------------------------------------------------------


def test_what_is_restored_is_paused_and_knows_since_when_it_may_be_wrong(rt, image, tmp_path, clock):
    rt.db.write(lambda tx: tx.execute_sql("INSERT INTO appliance VALUES ('heartbeat', ?)", (tx.stamp,)).rowcount)
    copied_at = rt.stamp()
    copy = copy_of(rt, tmp_path)
    clock.forward(3600)
    with closing(build(put_back(copy, tmp_path / "new", clock), clock=clock)) as other:
        assert appliance_state.paused_at(other.db) == other.stamp()
        assert appliance_state.restored_from(other.db) == copied_at
        assert select_value(other.db, "SELECT 1 FROM appliance WHERE name = 'heartbeat'") is None
        assert other.instance_id != rt.instance_id, "the original may still run, and is another"
        # A copy of this one, which was never resumed, knows no more than it does.
        clock.forward(3600)
        second = tmp_path / "second.copy"
        create.write_backup(other, second, with_secret=True)
    with closing(build(put_back(second, tmp_path / "newer", clock), clock=clock)) as third:
        assert appliance_state.restored_from(third.db) == copied_at


@pytest.mark.parametrize(
    "there", ["socialpub.db", "socialpub.db-wal", "socialpub.db-journal", "media/ab/file.png", "media/incoming/a.part"]
)
def test_nothing_is_overwritten_by_a_restore(rt, tmp_path, clock, there):
    copy = copy_of(rt, tmp_path)
    path = tmp_path / "new" / "data" / there
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    before = files_in(tmp_path)
    with pytest.raises(OperatorError, match="already exists"):
        put_back(copy, tmp_path / "new", clock)
    assert files_in(tmp_path) == before
    assert path.read_text() == "mine"


def test_a_matching_secret_key_may_lie_there(rt, tmp_path, clock):
    copy = copy_of(rt, tmp_path, with_secret=False)
    with pytest.raises(OperatorError, match=r"does not contain secret\.key") as failure:
        put_back(copy, tmp_path / "new", clock)
    assert str(tmp_path / "new" / "data" / "secret.key") in str(failure.value.message)
    assert not (tmp_path / "new").exists()
    key = tmp_path / "new" / "data" / "secret.key"
    key.parent.mkdir(parents=True)
    key.write_bytes(rt.settings.secret_key_file.read_bytes())
    inode = key.stat().st_ino
    settings = put_back(copy, tmp_path / "new", clock)
    assert key.stat().st_ino == inode
    build(settings, clock=clock).close()


@pytest.mark.parametrize("with_secret", [True, False])
def test_a_backup_of_another_secret_key_is_refused_saying_so(rt, tmp_path, clock, with_secret):
    copy = copy_of(rt, tmp_path, with_secret=with_secret)
    key = tmp_path / "new" / "data" / "secret.key"
    key.parent.mkdir(parents=True)
    key.write_text("b" * 43)
    before = files_in(tmp_path)
    with pytest.raises(OperatorError, match=r"belongs to another secret\.key") as failure:
        put_back(copy, tmp_path / "new", clock)
    assert failure.value.hint
    assert files_in(tmp_path) == before
    assert key.read_text() == "b" * 43


@pytest.mark.parametrize("breaks", ["secret.key", "media", "socialpub.db"])
def test_a_restore_that_fails_half_way_leaves_nothing(rt, image, tmp_path, clock, monkeypatch, breaks):
    copy = copy_of(rt, tmp_path)
    before = files_in(tmp_path)
    move, rename = durable_files.move, Path.rename

    def failing_move(source: Path, target: Path) -> None:
        if target.name == breaks:
            raise OSError(errno.EIO, "Input/output error")
        move(source, target)

    def failing_rename(self: Path, target: Path) -> Path:
        if target.name == breaks:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(durable_files, "move", failing_move)
    monkeypatch.setattr(Path, "rename", failing_rename)
    with pytest.raises(OperatorError, match="Input/output error"):
        put_back(copy, tmp_path / "new", clock)
    assert files_in(tmp_path) == before
    monkeypatch.undo()
    put_back(copy, tmp_path / "new", clock)


def test_an_appliance_that_appears_meanwhile_is_not_overwritten(rt, image, tmp_path, clock, monkeypatch):
    copy = copy_of(rt, tmp_path)
    settings = Settings(data_dir=tmp_path / "new")
    pause = restore._pause

    def meanwhile(tx: Database, copied_at: str) -> None:
        pause(tx, copied_at)
        settings.database_file.write_text("mine")

    monkeypatch.setattr(restore, "_pause", meanwhile)
    with pytest.raises(OperatorError, match=r"socialpub\.db already exists"):
        restore.restore(copy, settings, clock)
    assert files_in(settings.data_dir) == ["socialpub.db"]
    assert settings.database_file.read_text() == "mine"


# --- whose it is -----------------------------------------------------------------------------------------------------

OTHERS = Secrets(b"o" * 32)


def summary_of(copy: Path, ours: Secrets | None = None, **how: bool) -> Seal:
    return verify.verify_backup(copy, ours, **how).seal


def with_our_key(rt: Runtime, folder: Path) -> Settings:
    """A data folder with only the original's secret.key."""
    settings = Settings(data_dir=folder / "data")
    settings.data_dir.mkdir(parents=True)
    settings.secret_key_file.write_bytes(rt.settings.secret_key_file.read_bytes())
    return settings


@pytest.mark.parametrize("with_secret", [True, False])
def test_a_backup_that_somebody_changed_without_the_key_is_refused(rt, image, tmp_path, clock, with_secret):
    copy = copy_of(rt, tmp_path, with_secret=with_secret)
    assert summary_of(copy, rt.secrets) is Seal.FITS
    (name, content), *_ = [one for one in copies.contents_of(copy) if one[0].startswith("media/")]
    changed = {name: content + b"more"}
    forged = copies.forged(copy, tmp_path / "forged", changed=changed, key=OTHERS)
    with pytest.raises(OperatorError, match=r"changed without the secret\.key"):
        verify.verify_backup(forged, rt.secrets)
    settings = with_our_key(rt, tmp_path / "new")
    before = files_in(tmp_path)
    with pytest.raises(OperatorError, match=r"changed without the secret\.key"):
        restore.restore(forged, settings, clock, unsealed=True)
    assert files_in(tmp_path) == before
    restore.restore(copy, settings, clock)


def test_a_seal_that_was_taken_away_is_missed(rt, image, tmp_path, clock):
    copy = copy_of(rt, tmp_path)
    stripped = copies.forged(copy, tmp_path / "stripped", changed={})
    settings = with_our_key(rt, tmp_path / "new")
    for refuse in (
        lambda: verify.verify_backup(stripped, rt.secrets),
        lambda: restore.restore(stripped, settings, clock),
    ):
        with pytest.raises(OperatorError, match="is not signed") as failure:
            refuse()
        assert "--unsealed" in str(failure.value.hint)
    assert summary_of(stripped, rt.secrets, unsealed=True) is Seal.NONE
    assert summary_of(stripped) is Seal.NONE
    assert restore.restore(stripped, settings, clock, unsealed=True).summary.seal is Seal.NONE


def test_what_cannot_be_checked_is_reported(rt, image, tmp_path, clock):
    bare = copy_of(rt, tmp_path, with_secret=False)
    assert summary_of(bare) is Seal.UNCHECKED
    assert summary_of(bare, OTHERS) is Seal.UNCHECKED
    (tmp_path / "more").mkdir()
    holding = copy_of(rt, tmp_path / "more")
    assert summary_of(holding) is Seal.UNCHECKED
    assert summary_of(holding, OTHERS) is Seal.UNCHECKED
    assert restore.restore(holding, Settings(data_dir=tmp_path / "new"), clock).summary.seal is Seal.UNCHECKED
