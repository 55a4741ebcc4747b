"""The disk use, from rows where they have the numbers."""

from pathlib import Path

from socialpub.media import files
from socialpub.ops import storage
from socialpub.publishing import retention
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact


def test_media_count_as_long_as_their_bytes_are_here(rt: Runtime, clock: HandClock, tmp_path: Path) -> None:
    assert (storage.read_use(rt).media_files, storage.read_use(rt).media_bytes) == (0, 0)
    for name in ("a", "b"):
        artifact(rt, media.png(tmp_path / f"{name}.png"), "image/png")
    on_the_disk = sum(path.stat().st_size for path in rt.files.root.rglob("*.png"))
    found = storage.read_use(rt)
    assert (found.media_files, found.media_bytes) == (2, on_the_disk)
    clock.forward(40 * 86400)
    assert retention.remove_unused_media(rt) == 2
    assert storage.read_use(rt).media_bytes == 0


def test_renditions_thumbnails_and_avatars_are_measured_every_ten_minutes(rt: Runtime, clock: HandClock) -> None:
    folders = (rt.files.root / files.RENDITIONS / "d1", rt.files.root / files.THUMBNAILS / "ab")
    for size, folder in zip((100, 20, 3), (*folders, rt.settings.avatars_dir), strict=True):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * size)
    assert storage.read_use(rt).renditions_bytes == 123
    (folders[0] / "another").write_bytes(b"x" * 1000)
    assert storage.read_use(rt).renditions_bytes == 123
    clock.forward(storage.REMEMBERED_SECONDS)
    assert storage.read_use(rt).renditions_bytes == 1123


def test_database_and_disk_are_reported(rt: Runtime) -> None:
    found = storage.read_use(rt)
    assert found.database_bytes >= rt.settings.database_file.stat().st_size > 0
    assert found.queue_bytes == 0
    assert found.floor_bytes == int(rt.settings.health.disk_floor_bytes)
    assert found.free_bytes > 0
