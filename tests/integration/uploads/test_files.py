"""The media folder: stored files, incoming files, and orphans."""

import asyncio
import os

import pytest

from socialpub.media.files import Files

ARTIFACT = "019aa5c0-0000-7000-8000-0000000000ab"


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "media")


def there(files):
    return sorted(str(path.relative_to(files.root)) for path in files.root.rglob("*") if path.is_file())


def kept(files, data=b"bytes", *, record=True):
    key = files.new_key(ARTIFACT, "image/png")
    with files.receive() as incoming:
        incoming.write(data)
        incoming.keep(key)
        if record:
            incoming.record()
    return key


def test_bytes_exist_under_their_name_only_once_they_are_kept(files):
    key = files.new_key(ARTIFACT, "image/png")
    with files.receive() as incoming:
        incoming.write(b"some ")
        incoming.write(b"bytes")
        assert not files.path(key).exists()
        incoming.keep(key)
        assert files.path(key).read_bytes() == b"some bytes"
        incoming.record()
    assert there(files) == [key]


def test_bytes_are_on_the_disk_before_they_get_their_name(files, monkeypatch):
    calls = []
    fsync, rename = os.fsync, type(files.root).rename
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("flush"), fsync(fd)))
    monkeypatch.setattr(type(files.root), "rename", lambda *names: (calls.append("rename"), rename(*names)))
    kept(files)
    # The first file of a folder has that folder flushed into its parent as well.
    assert calls == ["flush", "flush", "rename", "flush"]
    calls.clear()
    kept(files)
    assert calls == ["flush", "rename", "flush"]


def test_a_file_whose_write_was_canceled_is_left_to_the_removal_of_orphans(files):
    # The write of the row may still happen, so only the removal of orphans decides.
    key = files.new_key(ARTIFACT, "image/png")
    with pytest.raises(asyncio.CancelledError), files.receive() as incoming:
        incoming.write(b"bytes")
        incoming.keep(key)
        raise asyncio.CancelledError
    assert there(files) == [key]
    assert files.remove_orphans(lambda keys: keys) == 0
    assert there(files) == [key]
    assert files.remove_orphans(lambda keys: []) == 1
    assert there(files) == []


def test_a_file_of_a_dead_process_is_an_orphan_and_a_locked_file_is_not(files):
    stray = files.root / "incoming" / "0123456789abcdef01234567.part"
    stray.write_bytes(b"half")
    recorded = kept(files)
    with files.receive() as arriving, files.receive() as waiting:
        arriving.write(b"still coming")
        waiting.write(b"whole, its row not yet written")
        waiting.keep(files.new_key(ARTIFACT, "video/mp4"))
        held = {str(one.path.relative_to(files.root)) for one in (arriving, waiting)}
        assert files.remove_orphans(lambda keys: set(keys) & {recorded}) == 1
        assert set(there(files)) == {recorded} | held


def test_the_row_of_an_orphan_is_checked_again_after_locking(files):
    key = kept(files)
    asked = []

    def recorded(keys):
        asked.append(keys)
        return [] if len(asked) == 1 else keys

    assert files.remove_orphans(recorded) == 0
    assert there(files) == [key]


def test_foreign_files_stay(files):
    foreign = [files.root / "ab" / "holiday.png", files.root / "notes.txt", files.root / "incoming" / "README"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    assert files.remove_orphans(lambda keys: []) == 0
    assert all(path.exists() for path in foreign)
