"""Uploads in progress never fill the disk, and rows always have space (contract 5.4)."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from socialpub.core.errors import Conflict, Unavailable
from socialpub.media import reservations
from socialpub.media.files import Files
from socialpub.providers.base import ImageLimits, MediaFile
from socialpub.publishing.media import renditions
from tests.integration.uploads.caller import Gone
from tests.integration.uploads.test_multipart import file, form, headers, payload, text
from tests.samples import media

ROOM = 10_000
"""What is free above the floor."""


@dataclass
class Disk:
    """A disk with a given size. The test sets the bytes of other programs."""

    files: Files
    floor_bytes: int
    others_bytes: int = 0
    room_bytes: int = ROOM
    measured: list[int] = field(default_factory=list)

    def free_bytes(self) -> int:
        stored = sum(path.stat().st_size for path in self.files.root.rglob("*") if path.suffix in (".part", ".png"))
        self.measured.append(self.floor_bytes + self.room_bytes - stored - self.others_bytes)
        return self.measured[-1]


@pytest.fixture
def disk(rt, monkeypatch) -> Disk:
    disk = Disk(rt.files, int(rt.settings.health.disk_floor_bytes))
    monkeypatch.setattr(Files, "free_bytes", lambda _: disk.free_bytes())

    async def at_once(work, *arguments):
        return work(*arguments)

    # A file that another thread renames meanwhile would be counted twice, or not at all.
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    return disk


@pytest.fixture
def another_process(rt) -> Files:
    return Files(rt.files.root, int(rt.settings.health.disk_floor_bytes))


def nothing_arrived(rt):
    return not any(path.is_file() for path in rt.settings.media_dir.rglob("*"))


def unavailable(reply, words="disk"):
    assert (reply.status, reply.json()["code"]) == (503, "unavailable"), reply.body
    assert words in reply.json()["detail"]
    assert int(reply.headers["retry-after"]) > 0
    return True


def half_sent(caller, reservation, size, meanwhile, **more):
    """Send a PUT, and call `meanwhile` after half of the bytes."""
    half = b"a" * (size // 2)
    fields = reservation["requiredHeaders"]
    return caller.asking("PUT", reservation["uploadUrl"], [half, half], fields, before_last=meanwhile, **more)


# --- two at a time ---------------------------------------------------------------------------------------------------


def test_a_third_put_of_one_reservation_is_a_409(rt, caller):
    reservation, other = caller.reserve(1000), caller.reserve(1000)
    seen = []

    async def third():
        seen.append(await caller.putting(reservation, b"c" * 1000))
        seen.append(await caller.putting(other, b"d" * 1000))

    async def second():
        assert (await half_sent(caller, reservation, 1000, third)).status == 200

    assert caller.run(half_sent(caller, reservation, 1000, second)).status == 200
    assert [reply.status for reply in seen] == [409, 200]
    assert seen[0].json()["code"] == "conflict"
    assert "PUT requests" in seen[0].json()["detail"]
    assert caller.put(reservation, b"e" * 1000).status == 200, "they have ended"


def test_puts_through_another_process_count_as_well_until_it_dies(rt, caller, another_process):
    reservation = caller.reserve(4)
    artifact_id = reservation["artifactId"]
    code = (
        "import sys; from pathlib import Path; from socialpub.media.files import Files\n"
        "files = Files(Path(sys.argv[1])); held = [files.receive(sys.argv[2]) for _ in range(2)]\n"
        "print('has them', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(rt.files.root), artifact_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"has them\n"
        assert caller.put(reservation, b"1234").status == 409
        with pytest.raises(Conflict):
            another_process.receive(artifact_id)
        other.kill()
        other.wait()
    assert caller.put(reservation, b"1234").status == 200
    assert len([path for path in rt.files.root.rglob("*") if path.is_file()]) == 1, "what it left is removed"


# --- reserved --------------------------------------------------------------------------------------------------------


def test_the_remaining_bytes_of_a_transfer_are_reserved(rt, caller, disk):
    first, second, small = caller.reserve(6000), caller.reserve(6000), caller.reserve(4000)
    seen = []

    async def meanwhile():
        seen.append(await caller.putting(second, b"b" * 6000))
        seen.append(await caller.putting(small, b"c" * 4000))

    assert caller.run(half_sent(caller, first, 6000, meanwhile)).status == 200
    assert unavailable(seen[0])
    assert seen[1].status == 200, "there is room for this one beside the first"
    assert min(disk.measured) >= disk.floor_bytes


def test_a_broken_transfer_releases_its_space_at_once(rt, caller, disk):
    first, second = caller.reserve(6000), caller.reserve(6000)
    with pytest.raises(Gone):
        fields = first["requiredHeaders"]
        caller.run(caller.asking("PUT", first["uploadUrl"], [b"a" * 3000], fields, goes_away=True))
    assert caller.put(second, b"b" * 6000).status == 200


def test_a_file_that_needs_the_floor_is_rejected_before_it_is_sent(rt, caller, disk):
    reply = caller.put(caller.reserve(ROOM + 1), [b"x"] * 1000)
    assert unavailable(reply, "disk")
    assert caller.taken <= 1000
    assert nothing_arrived(rt)
    assert caller.put(caller.reserve(ROOM), b"x" * ROOM).status == 200


def test_a_transfer_ends_if_other_programs_fill_the_disk(rt, caller, disk, monkeypatch):
    monkeypatch.setattr(reservations, "_ANNOUNCE_BYTES", 1)

    async def fill():
        disk.others_bytes = 8000

    assert unavailable(caller.run(half_sent(caller, caller.reserve(6000), 6000, fill)), "disk")
    assert nothing_arrived(rt)


def test_many_at_once_never_reach_into_the_floor(rt, caller, disk):
    reservations = [caller.reserve(1000) for _ in range(30)]

    async def story():
        async def sent(reservation):
            pieces = [b"x" * 100] * 10
            return (await caller.asking("PUT", reservation["uploadUrl"], pieces, reservation["requiredHeaders"])).status

        return await asyncio.gather(*map(sent, reservations))

    statuses = caller.run(story())
    assert statuses.count(200) == 10
    assert statuses.count(503) == 20
    assert disk.free_bytes() == disk.floor_bytes


# --- slow ------------------------------------------------------------------------------------------------------------


def test_a_slow_transfer_loses_its_space_to_another_transfer(rt, clock, caller, disk):
    slow, other = caller.reserve(ROOM), caller.reserve(900)
    seen = []

    async def meanwhile():
        seen.append((await caller.putting(other, b"b" * 900)).status)
        clock.forward(reservations.SLOW_SECONDS)
        seen.append((await caller.putting(other, b"b" * 900)).status)

    pieces = [b"a" * 100, b"a" * (ROOM - 100)]
    fields = slow["requiredHeaders"]
    reply = caller.run(caller.asking("PUT", slow["uploadUrl"], pieces, fields, before_last=meanwhile))
    assert seen == [503, 200], "no transfer is slow at once"
    assert unavailable(reply, "KiB per second")


def test_a_long_transfer_with_enough_speed_is_not_slow(rt, clock, caller, disk):
    pace = reservations.SLOW_BYTES_PER_SECOND
    disk.room_bytes = 100 * 60 * pace
    with rt.files.reservations.reserve(disk.room_bytes) as space:
        for _ in range(99):
            clock.forward(60)
            space.spend(60 * pace)
            disk.others_bytes += 60 * pace
        with pytest.raises(Unavailable), rt.files.reservations.reserve(1):
            pass


# --- forms -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def picture(tmp_path) -> bytes:
    return media.png(tmp_path / "a.png", 40, 40, noise=True).read_bytes()


def test_a_form_is_counted_like_a_put(rt, caller, profile, disk, picture):
    disk.room_bytes = 2_000_000
    parts = form(payload(profile, {"fileField": "one"}), file("one", picture + b"\0" * 1_500_000))
    with rt.files.reservations.reserve(disk.room_bytes - len(parts) + 1):
        assert unavailable(caller.ask("POST", "/api/v1/posts", parts, headers(caller)))
        assert caller.taken <= len(parts)
    assert caller.ask("POST", "/api/v1/posts", parts, headers(caller)).status == 201


@pytest.mark.parametrize("chunked", [True, False])
def test_the_parts_of_a_form_of_unknown_length_are_bounded_by_their_limits(rt, caller, profile, disk, picture, chunked):
    body = form(payload(profile, {"fileField": "one"}), file("one", picture))
    pieces = [body[:300], body[300:]] if chunked else body
    disk.room_bytes = (rt.settings.uploads.max_image_bytes if chunked else len(body)) - 1
    assert unavailable(caller.ask("POST", "/api/v1/posts", pieces, headers(caller)))
    assert nothing_arrived(rt)
    disk.room_bytes += 1
    assert caller.ask("POST", "/api/v1/posts", pieces, headers(caller)).status == 201


def test_posts_without_files_are_taken_below_the_floor(rt, caller, profile, disk):
    disk.others_bytes = ROOM + 1
    assert caller.post("/posts", {"post": {"body": "Hello"}, "profiles": [profile]}).status == 201
    body = form(text("payload", b'{"post": {"body": "Hello"}, "profiles": ["%s"]}' % profile.encode()))
    assert caller.ask("POST", "/api/v1/posts", body, headers(caller)).status == 201
    assert caller.post("/uploads", {"fileName": "a", "mimeType": "image/png", "fileSize": 1}).status == 201


# --- fitting ---------------------------------------------------------------------------------------------------------


def test_a_version_for_an_accepted_post_may_use_half_of_the_floor(rt, tmp_path, disk):
    path = media.jpeg(tmp_path / "a.jpg", 400, 300, noise=True)
    photo = MediaFile(0, "image", "image/jpeg", path.stat().st_size, path, "a.jpg")
    limits = ImageLimits(("image/jpeg",), 30_000)
    disk.others_bytes = ROOM + disk.floor_bytes // 2
    with pytest.raises(Unavailable, match="disk"):
        renditions.fit_media(rt, "d1", photo, limits)
    disk.others_bytes -= limits.max_bytes
    assert renditions.fit_media(rt, "d1", photo, limits).size_bytes <= 30_000


def test_a_disk_without_space_for_a_reservation_file_is_full(rt, caller, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert unavailable(caller.put(caller.reserve(4), b"1234"), "disk is full")
    monkeypatch.undo()
    assert nothing_arrived(rt)
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(rt.files.reservations.reserve(1))
    assert nothing_arrived(rt)
