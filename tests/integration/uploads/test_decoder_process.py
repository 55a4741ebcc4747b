"""The child that decodes: what it answers, what becomes of it, and that the asking process stays as it was."""

import asyncio
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from socialpub.media import decoder_client
from socialpub.media.types import CannotFit, MediaLimits, MediaRejected
from tests.samples import liars, media

LITTLE = 512 * 1024 * 1024
"""Memory enough for a photo, and not for what a bomb unpacks to."""


def test_a_photo_is_examined_in_a_child(tmp_path: Path) -> None:
    found = decoder_client.inspect_file(media.jpeg(tmp_path / "a.jpg", 320, 240, 6), "image/jpg", MediaLimits())
    assert (found.kind, found.mime_type) == ("image", "image/jpeg")
    assert found.facts == {"width": 320, "height": 240, "frames": 1, "orientation": 6}


def test_a_relative_path_means_the_same_to_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media.video_webm(tmp_path / "a: film.webm", 0.25)
    monkeypatch.chdir(tmp_path)
    assert decoder_client.inspect_file(Path("a: film.webm"), "video/webm", MediaLimits()).facts["video_codec"] == "vp8"


def test_a_liar_is_refused_in_the_same_words(tmp_path: Path) -> None:
    with pytest.raises(MediaRejected, match="declared as image/png, but its content is text/html"):
        decoder_client.inspect_file(liars.html(tmp_path / "a.png"), "image/png", MediaLimits())


def test_the_limits_travel_to_the_child(tmp_path: Path) -> None:
    with pytest.raises(MediaRejected, match="at most 10"):
        decoder_client.inspect_file(media.png(tmp_path / "a.png"), "image/png", MediaLimits(image_bytes=10))


def test_the_event_loop_goes_on_while_children_decode(tmp_path: Path) -> None:
    photo, film = media.jpeg(tmp_path / "a.jpg"), media.video_mp4(tmp_path / "b.mp4", 0.25)
    html = liars.html(tmp_path / "c.png")

    async def story() -> tuple[list[object], int]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        answers = await asyncio.gather(
            decoder_client.inspect_file_async(photo, "image/jpeg", MediaLimits()),
            decoder_client.inspect_file_async(film, "video/mp4", MediaLimits()),
            decoder_client.inspect_file_async(html, "image/png", MediaLimits()),
            return_exceptions=True,
        )
        counting.cancel()
        return list(answers), turns

    (first, second, third), turns = asyncio.run(story())
    assert getattr(first, "kind", None) == "image" and getattr(second, "kind", None) == "video"
    assert isinstance(third, MediaRejected)
    assert turns > 100


def test_a_canceled_question_leaves_no_child_behind(tmp_path: Path) -> None:
    bomb = liars.gif_bomb(tmp_path / "a.gif", frames=18)

    async def story() -> None:
        asking = asyncio.ensure_future(decoder_client.inspect_file_async(bomb, "image/gif", MediaLimits()))
        while not _children():
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not _children()

    asyncio.run(story())


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (liars.png_bomb, "image/png"),
        (liars.png_text_bomb, "image/png"),
        (liars.gif_bomb, "image/gif"),
        (liars.webp_bomb, "image/webp"),
    ],
)
def test_a_bomb_is_refused_with_little_memory_and_little_time(tmp_path: Path, make: object, mime_type: str) -> None:
    path = make(tmp_path / "bomb")  # type: ignore[operator]
    with pytest.raises(MediaRejected) as caught:
        decoder_client.inspect_file(path, mime_type, MediaLimits(), seconds=5, memory_bytes=LITTLE)
    assert "pixels" in caught.value.reason or "too large" in caught.value.reason


def test_what_needs_more_memory_than_allowed_is_refused_not_suffered(tmp_path: Path) -> None:
    path = liars.png_bomb(tmp_path / "a.png", 30_000, 30_000)
    with pytest.raises(MediaRejected, match="memory"):
        decoder_client.inspect_file(
            path, "image/png", MediaLimits(image_pixels=10**9, image_total_pixels=10**9), memory_bytes=LITTLE
        )


def test_a_hundred_megapixels_are_within_the_allowance(tmp_path: Path) -> None:
    path = liars.png_bomb(tmp_path / "a.png", 10_000, 10_000)
    assert decoder_client.inspect_file(path, "image/png", MediaLimits()).facts["width"] == 10_000


class Begun(subprocess.Popen[bytes]):
    """A child counts as started once it has said that it is ready: how long that takes is the machine's affair."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert select.select([self.stdout], [], [], 60)[0]


def test_what_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(decoder_client, "_COMMAND", _child("os.write(1, b'ready\\n'); signal.pause()"))
    with pytest.raises(MediaRejected, match=r"longer than 0\.5 seconds to decode"):
        decoder_client.inspect_file(path, "image/png", MediaLimits(), seconds=0.5)
    with pytest.raises(MediaRejected, match="longer than"):
        asyncio.run(decoder_client.inspect_file_async(path, "image/png", MediaLimits(), seconds=0.5))
    assert not _children()


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os.abort()", "sys.exit(1)"])
def test_a_child_that_dies_over_a_file_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(decoder_client, "_COMMAND", _child(f"os.write(1, b'ready\\n'); {end}"))
    with pytest.raises(MediaRejected, match="crashed"):
        decoder_client.inspect_file(path, "image/png", MediaLimits())


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit('no decoder')",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.write(1, b'ready\\n'); os.kill(os.getpid(), 15)",
    ],
)
def test_a_child_that_could_not_begin_or_was_stopped_is_our_own_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(decoder_client, "_COMMAND", _child(end))
    with pytest.raises(decoder_client.DecoderFailed):
        decoder_client.inspect_file(path, "image/png", MediaLimits())


def test_a_child_that_cannot_be_started_is_our_own_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = media.png(tmp_path / "a.png")
    monkeypatch.setattr(decoder_client, "_COMMAND", (str(tmp_path / "no-python"),))
    with pytest.raises(decoder_client.DecoderFailed, match="could not be started"):
        decoder_client.inspect_file(path, "image/png", MediaLimits())
    with pytest.raises(decoder_client.DecoderFailed, match="could not be started"):
        asyncio.run(decoder_client.inspect_file_async(path, "image/png", MediaLimits()))


def test_a_file_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        decoder_client.inspect_file(tmp_path / "gone", "image/png", MediaLimits())
    with pytest.raises(decoder_client.DecoderFailed):
        decoder_client.inspect_file(tmp_path, "image/png", MediaLimits())


def test_the_child_sees_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCIALPUB_PROVIDERS__X__CLIENT_SECRET", "hush")
    monkeypatch.setattr(decoder_client, "_COMMAND", _child("sys.exit(repr(sorted(os.environ)))"))
    with pytest.raises(decoder_client.DecoderFailed) as caught:
        decoder_client.inspect_file(media.png(tmp_path / "a.png"), "image/png", MediaLimits())
    assert "PATH" in str(caught.value) and "SOCIALPUB" not in str(caught.value)


def test_a_picture_is_made_to_fit_in_a_child(tmp_path: Path) -> None:
    source, target = media.jpeg(tmp_path / "a.jpg", 320, 240, 6), tmp_path / "b.jpg"
    answer = decoder_client.fit(source, target, ("image/jpeg",), 100_000, max_width=160)
    assert answer == {
        "mime_type": "image/jpeg",
        "width": 160,
        "height": 120,
        "size_bytes": target.stat().st_size,
        "changed": True,
    }
    again = decoder_client.fit(target, tmp_path / "c.jpg", ("image/jpeg",), 100_000, max_width=160)
    assert again["changed"] is False and not (tmp_path / "c.jpg").exists()


def test_what_cannot_be_made_to_fit_says_why(tmp_path: Path) -> None:
    source = media.gif_animated(tmp_path / "a.gif")
    with pytest.raises(CannotFit, match="animated GIF"):
        decoder_client.fit(source, tmp_path / "b", ("image/gif",), 100)
    with pytest.raises(FileNotFoundError):
        decoder_client.fit(tmp_path / "gone", tmp_path / "b", ("image/gif",), 100)
    with pytest.raises(decoder_client.DecoderFailed):
        decoder_client.fit(media.png(tmp_path / "c.png"), tmp_path / "no" / "folder", ("image/jpeg",), 10_000)


def test_asking_imports_no_decoder() -> None:
    code = (
        "import sys, socialpub.media.decoder_client;"
        "print([name for name in sys.modules if name.split('.')[0] in ('PIL', 'av', 'magic', 'pylibmagic')])"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def _child(ends: str) -> tuple[str, ...]:
    """A child in the real one's place, which reads the request and then does as told."""
    return (sys.executable, "-I", "-c", f"import os, signal, sys; sys.stdin.read(); {ends}")
