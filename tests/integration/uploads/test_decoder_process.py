"""The decoder process: its answers, its end, and its isolation from the parent process."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvloop
from PIL import Image

from socialpub.media.decoder import client, memory, process, resize
from socialpub.media.decoder.memory import ORDINARY_BYTES, MemoryBudget
from socialpub.media.types import FitLimits, MediaLimits, MediaRejected
from tests.samples import hostile, media
from tests.support.decoding import child, child_that

LITTLE = 512 * 1024 * 1024
"""Memory enough for a photo, and not for what a bomb unpacks to."""

REFUSES_MEMORY = "resource.setrlimit(resource.RLIMIT_DATA, (90 * 2**20, 90 * 2**20))"
"""Simulates a machine without more memory: the kernel's answer to the child is the same."""


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_canceled_inspection_leaves_no_child(tmp_path, new_loop):
    bomb = hostile.gif_bomb(tmp_path / "a.gif", frames=18)

    async def story() -> None:
        asking = asyncio.ensure_future(client.inspect_file_async(bomb, "image/gif", MediaLimits()))
        while not _children():
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not _children()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (hostile.png_bomb, "image/png"),
        (hostile.png_text_bomb, "image/png"),
        (hostile.gif_bomb, "image/gif"),
        (hostile.webp_bomb, "image/webp"),
    ],
)
def test_a_bomb_is_rejected_with_little_memory_and_little_time(tmp_path, make, mime_type):
    path = make(tmp_path / "bomb")  # type: ignore[operator]
    with pytest.raises(MediaRejected) as caught:
        client.inspect_file(path, mime_type, MediaLimits(), seconds=5, memory_bytes=LITTLE)
    assert "pixels" in caught.value.reason or "too large" in caught.value.reason


def test_a_file_above_the_memory_limit_is_rejected(tmp_path):
    path = hostile.png_bomb(tmp_path / "a.png", 30_000, 30_000)
    with pytest.raises(MediaRejected, match="memory"):
        client.inspect_file(
            path, "image/png", MediaLimits(image_pixels=10**9, image_total_pixels=10**9), memory_bytes=LITTLE
        )


def test_a_file_above_the_processor_time_is_rejected(tmp_path, monkeypatch):
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client, "_COMMAND", child_that("while True: pass"))
    with pytest.raises(MediaRejected, match="more processor time"):
        client.inspect_file(path, "image/png", MediaLimits(), seconds=0.5)
    assert not _children()


def test_a_suspended_child_is_not_the_files_fault(tmp_path, monkeypatch):
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client, "_COMMAND", _child("os.write(1, b'ready\\n'); os.kill(os.getpid(), 19)"))
    with pytest.raises(client.DecoderFailed):
        client.inspect_file(path, "image/png", MediaLimits(), timeout_seconds=0.5)
    with pytest.raises(client.DecoderFailed):
        client.fit(path, tmp_path / "b", FitLimits(("image/jpeg",), 10_000), timeout_seconds=0.5)
    assert not _children()


def test_the_answer_during_a_suspension_of_the_parent_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "_kill", lambda child: None)
    found = client.inspect_file(media.png(tmp_path / "a.png"), "image/png", MediaLimits(), timeout_seconds=0)
    assert found.mime_type == "image/png"


@pytest.mark.parametrize("end", ["os.abort()", "__import__('ctypes').string_at(0)", "sys.exit(1)"])
def test_a_child_that_crashes_over_a_file_refuses_it(tmp_path, monkeypatch, end):
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client, "_COMMAND", child_that(end))
    with pytest.raises(MediaRejected, match="crashed"):
        client.inspect_file(path, "image/png", MediaLimits())


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit('no decoder')",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.write(1, b'ready\\n'); os.kill(os.getpid(), signal.SIGKILL)",
        "os.write(1, b'ready\\n'); os.kill(os.getpid(), signal.SIGTERM)",
        "os.write(1, b'ready\\n'); os.kill(os.getpid(), signal.SIGUSR1)",
    ],
)
def test_a_child_that_cannot_start_or_is_killed_is_not_the_files_fault(tmp_path, monkeypatch, end):
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client, "_COMMAND", _child(end))
    with pytest.raises(client.DecoderFailed):
        client.inspect_file(path, "image/png", MediaLimits())
    with pytest.raises(client.DecoderFailed):
        client.fit(path, tmp_path / "b", FitLimits(("image/jpeg",), 10_000))


def test_a_machine_without_memory_is_not_the_files_fault(tmp_path, monkeypatch):
    path = hostile.png_bomb(tmp_path / "a.png", 10_000, 10_000)
    monkeypatch.setattr(client, "_COMMAND", child(REFUSES_MEMORY))
    with pytest.raises(client.DecoderFailed, match="too little memory"):
        client.inspect_file(path, "image/png", MediaLimits())
    with pytest.raises(client.DecoderFailed, match="too little memory"):
        client.fit(path, tmp_path / "b", FitLimits(("image/jpeg",), 10_000, max_width=100))


def test_a_child_that_does_not_start_is_not_the_files_fault(tmp_path, monkeypatch):
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(client, "_COMMAND", (str(tmp_path / "no-python"),))
    with pytest.raises(client.DecoderFailed, match="could not be started"):
        client.inspect_file(path, "image/png", MediaLimits())


@pytest.fixture
def one_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryBudget:
    """Memory for one child at a time, shared with other processes."""
    turns = MemoryBudget(tmp_path / "run", ORDINARY_BYTES)
    monkeypatch.setattr(memory, "budget", turns)
    return turns


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_child_begins_when_memory_is_free_and_has_it_until_it_ends(tmp_path, one_slot, new_loop, monkeypatch):
    photo, answer_of, running = media.jpeg(tmp_path / "a.jpg"), client._exchange, 0

    async def looked_at_while_it_runs(child: Any, *rest: Any) -> dict[str, Any]:
        nonlocal running
        running += 1
        assert one_slot.try_reserve(ORDINARY_BYTES) is None
        return await answer_of(child, *rest)

    monkeypatch.setattr(client, "_exchange", looked_at_while_it_runs)

    async def story() -> None:
        other = await one_slot.reserve(ORDINARY_BYTES, 0)
        asking = asyncio.ensure_future(client.inspect_file_async(photo, "image/jpeg", MediaLimits()))
        await asyncio.sleep(0)
        assert not _children() and not asking.done()
        os.close(other)
        assert (await asking).kind == "image"
        os.close(await one_slot.reserve(ORDINARY_BYTES, 0))
        asking = asyncio.ensure_future(client.inspect_file_async(photo, "image/jpeg", MediaLimits()))
        while not _children():
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        os.close(await one_slot.reserve(ORDINARY_BYTES, 0))
        assert running

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())


def test_a_timeout_before_the_start_is_not_the_files_fault(tmp_path, one_slot):
    path, limits = media.png(tmp_path / "a.png"), FitLimits(("image/jpeg",), 10_000)
    reservation = asyncio.run(one_slot.reserve(ORDINARY_BYTES, 0))
    with pytest.raises(client.DecoderFailed, match="memory"):
        client.fit(path, tmp_path / "b", limits, timeout_seconds=0)
    with pytest.raises(client.DecoderFailed, match="memory"):
        client.inspect_file(path, "image/png", MediaLimits(), timeout_seconds=0)
    os.close(reservation)
    assert client.fit(path, tmp_path / "b", limits)["changed"]


def test_a_file_with_an_understated_size_gets_a_second_reservation(tmp_path, monkeypatch):
    path = hostile.gif_understated(tmp_path / "a.gif")
    found = client.inspect_file(path, "image/gif", MediaLimits())
    needs, run_once = [], client._run_once

    async def noted(need: int, request: dict[str, Any], timeout_seconds: float) -> Any:
        needs.append(need)
        return await run_once(need, request, timeout_seconds)

    monkeypatch.setattr(client, "_run_once", noted)
    monkeypatch.setattr(client, "RESERVED_BYTES", 16 * 2**20)
    assert client.inspect_file(path, "image/gif", MediaLimits()) == found
    estimated = client.estimate_memory(path, client.MEMORY_BYTES)
    assert needs == [estimated, client.MEMORY_BYTES]
    assert estimated <= ORDINARY_BYTES
    needs.clear()
    assert client.inspect_file(media.gif(tmp_path / "b.gif"), "image/gif", MediaLimits())
    assert len(needs) == 1, "its turn was enough"


def test_the_child_does_not_inherit_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SOCIALPUB_PROVIDERS__X__CLIENT_SECRET", "hush")
    monkeypatch.setattr(client, "_COMMAND", _child("sys.exit(repr(sorted(os.environ)))"))
    with pytest.raises(client.DecoderFailed) as caught:
        client.inspect_file(media.png(tmp_path / "a.png"), "image/png", MediaLimits())
    assert "PATH" in str(caught.value) and "SOCIALPUB" not in str(caught.value)


def test_a_child_fits_an_image(tmp_path):
    source, target = media.jpeg(tmp_path / "a.jpg", 320, 240, 6), tmp_path / "b.jpg"
    answer = client.fit(source, target, FitLimits(("image/jpeg",), 100_000, max_width=160))
    assert answer == {
        "mime_type": "image/jpeg",
        "width": 160,
        "height": 120,
        "size_bytes": target.stat().st_size,
        "changed": True,
        "reencoded": True,
    }
    again = client.fit(target, tmp_path / "c.jpg", FitLimits(("image/jpeg",), 100_000, max_width=160))
    assert again["changed"] is False and not (tmp_path / "c.jpg").exists()


def test_the_client_imports_no_decoder():
    code = (
        "import sys, socialpub.media.decoder.client;"
        "print([name for name in sys.modules if name.split('.')[0] in ('PIL', 'av', 'magic', 'pylibmagic')])"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def _child(ends: str) -> tuple[str, ...]:
    """A replacement of the child, which reads the request and then runs this code."""
    return (sys.executable, "-I", "-c", f"import os, signal, sys; sys.stdin.read(); {ends}")


# --- An accepted image can be made to fit: an encoder that runs out of memory gets a smaller image --------------------


WEBP = FitLimits(("image/webp",), 5_000_000, 3500, 3500)


def clear_webp(path: Path, side: int) -> Path:
    """A WebP file with transparency, which needs more memory than any other type."""
    grey = Image.linear_gradient("L").resize((side, side))
    image = Image.merge("RGBA", (grey, grey.rotate(90), grey, grey.rotate(180)))
    image.save(path, "WEBP", lossless=True, quality=0, method=0)
    return path


@pytest.mark.endurance
@pytest.mark.parametrize(
    "limits",
    [
        FitLimits(("image/jpeg", "image/png", "image/webp"), 5_000_000, 8192, 8192),
        FitLimits(("image/jpeg", "image/png"), 10_000_000),
        FitLimits(("image/jpeg", "image/png"), 2_000_000),
        FitLimits(("image/jpeg", "image/webp"), 20_000_000, 1920, 1920, 1080),
    ],
    ids=["X", "Pinterest", "Pinterest's carousel", "TikTok"],
)
def test_100_megapixels_with_transparency_fit_every_network(tmp_path, limits):
    path = clear_webp(tmp_path / "a.webp", 9990)
    client.inspect_file(path, "image/webp", MediaLimits())
    fitted = client.fit(path, tmp_path / "b", limits)
    assert fitted["changed"] and fitted["size_bytes"] <= limits.max_bytes


# --- an encoder that runs out of memory ------------------------------------------------------------------------------


@pytest.fixture
def greedy_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder with memory for at most 100,000 pixels and libwebp's error."""
    save = Image.Image.save

    def greedy(image: Image.Image, *arguments: Any, **options: Any) -> None:
        if arguments[1] == "WEBP" and image.width * image.height > 100_000:
            raise ValueError("encoding error 1")
        save(image, *arguments, **options)

    monkeypatch.setattr(Image.Image, "save", greedy)


@pytest.mark.usefixtures("greedy_encoder")
def test_an_encoder_without_memory_gets_a_smaller_image(tmp_path):
    source = media.png(tmp_path / "a.png", 600, 400)
    fitted = resize.fit(source, tmp_path / "b.webp", FitLimits(("image/webp",), 5_000_000))
    assert (fitted["width"], fitted["height"]) == (294, 196)
    assert fitted["gave_way"]


@pytest.mark.usefixtures("greedy_encoder")
def test_a_child_with_little_memory_of_its_own_writes_no_smaller_image(tmp_path, monkeypatch):
    source = media.png(tmp_path / "a.png", 600, 400)
    request = client._writing("fit", source, tmp_path / "b.webp", FitLimits(("image/webp",), 5_000_000))
    work = process._load_work(request)
    assert process._respond(request, work)["result"]["width"] == 294
    assert "more memory" in process._respond(request | {"reserved_bytes": 1}, work)["rejected"], "another turn has more"
    monkeypatch.setattr(process, "_memory_is_short", lambda: True)
    assert "too little memory" in process._respond(request, work)["failed"], "the post waits"
