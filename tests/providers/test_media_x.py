"""Files for X: the received bytes, and the messages about missing files."""

import hashlib
from pathlib import Path

import pytest

from socialpub.db.states import State
from socialpub.media.decoder import structure
from socialpub.media.files import RENDITIONS
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact


def stored(rt: Runtime, artifact_id: str) -> Path:
    key = rt.reader.value("SELECT storage_key FROM artifact WHERE id = ?", (artifact_id,))
    return rt.files.path(key)


def gif_with_comment(path: Path) -> Path:
    whole = media.gif_animated(path).read_bytes()
    return media.inserted(path, b"!\xfe\x07My home\0", whole.index(b"!\xff"))


def test_an_image_within_the_limits_arrives_unchanged_with_its_alt_text(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock
) -> None:
    photo = media.jpeg_grey(tmp_path / "photo.jpg")
    post = accept(rt, profile, media=(DraftMedia(artifact(rt, photo, "image/jpeg"), "A red corner"),))
    drain(rt, clock)
    (arrived,) = world.x.media.all.values()
    assert state_of(rt, post) is State.PUBLISHED
    assert arrived.sha256 == hashlib.sha256(photo.read_bytes()).hexdigest()
    assert arrived.alt_text == "A red corner"


def test_an_animated_gif_arrives_without_metadata_and_the_upload_keeps_them(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock
) -> None:
    source = gif_with_comment(tmp_path / "file")
    original = source.read_bytes()
    plain = structure.strip_metadata(original, "image/gif")
    assert plain is not None and len(plain) < len(original)
    artifact_id = artifact(rt, source, "image/gif")
    post = accept(rt, profile, media=(DraftMedia(artifact_id),))
    drain(rt, clock)
    (arrived,) = world.x.media.all.values()
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert arrived.sha256 == hashlib.sha256(plain).hexdigest()
    assert stored(rt, artifact_id).read_bytes() == original


def test_an_image_over_the_limit_is_made_smaller_and_the_original_stays(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock
) -> None:
    photo = media.png(tmp_path / "large.png", 1500, 1300, noise=True)
    before = photo.read_bytes()
    assert len(before) > 5_000_000
    artifact_id = artifact(rt, photo, "image/png")
    post = accept(rt, profile, media=(DraftMedia(artifact_id),))
    drain(rt, clock)
    (arrived,) = world.x.media.all.values()
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert 1_000_000 < arrived.size <= 5_000_000
    assert stored(rt, artifact_id).read_bytes() == before
    assert not any((rt.files.root / RENDITIONS).iterdir()), "what was made for the delivery is gone with it"


def test_a_missing_file_fails_its_delivery_and_is_named(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock
) -> None:
    artifact_id = artifact(rt, media.jpeg(tmp_path / "sunset.jpg"), "image/jpeg")
    post = accept(rt, profile, media=(DraftMedia(artifact_id),))
    stored(rt, artifact_id).unlink()
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert "sunset.jpg" in message_of(rt, post)
    assert world.x.calls == []


@pytest.mark.parametrize(
    ("make", "mime_type"),
    [
        (media.gif_animated, "image/gif"),
        (media.gif, "image/gif"),
        (media.webp, "image/webp"),
        (media.video_mp4, "video/mp4"),
        (media.video_mov, "video/quicktime"),
    ],
)
def test_every_file_type_that_x_accepts_is_published(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock, make: object, mime_type: str
) -> None:
    source = make(tmp_path / "file")  # type: ignore[operator]
    post = accept(rt, profile, media=(DraftMedia(artifact(rt, source, mime_type)),))
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_a_video_in_several_chunks_arrives_whole(
    rt: Runtime, world: World, profile: str, tmp_path: Path, clock: HandClock
) -> None:
    video = media.pad(media.video_mp4(tmp_path / "video.mp4", 1.0), 3_500_000)
    post = accept(rt, profile, media=(DraftMedia(artifact(rt, video, "video/mp4")),))
    drain(rt, clock)
    (arrived,) = world.x.media.all.values()
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert arrived.sha256 == hashlib.sha256(video.read_bytes()).hexdigest()
    assert world.x.statuses("upload_append") == [200] * 4
