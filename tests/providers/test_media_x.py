"""Files for X: the received bytes, and the messages about missing files."""

import hashlib
from pathlib import Path

import pytest

from socialpub.db.states import State
from socialpub.media.decoder import structure
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import artifact
from tests.support.select import select_value


def stored(rt: Runtime, artifact_id: str) -> Path:
    key = select_value(rt.db, "SELECT storage_key FROM artifact WHERE id = ?", (artifact_id,))
    return rt.files.path(key)


def gif_with_comment(path: Path) -> Path:
    whole = media.gif_animated(path).read_bytes()
    return media.inserted(path, b"!\xfe\x07My home\0", whole.index(b"!\xff"))


def test_an_animated_gif_arrives_without_metadata_and_the_upload_keeps_them(rt, world, profile, tmp_path, clock):
    source = gif_with_comment(tmp_path / "file")
    original = source.read_bytes()
    plain = structure.strip_metadata(original, "image/gif")
    assert plain is not None and len(plain) < len(original)
    artifact_id = artifact(rt, source, "image/gif")
    post = accept(rt, profile, media=(DraftMedia(artifact_id),))
    drain(rt, clock)
    (arrived,) = world.x.media.values()
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert arrived.sha256 == hashlib.sha256(plain).hexdigest()
    assert stored(rt, artifact_id).read_bytes() == original


def test_a_missing_file_fails_its_delivery_and_is_named(rt, world, profile, tmp_path, clock):
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
def test_every_file_type_that_x_accepts_is_published(rt, world, profile, tmp_path, clock, make, mime_type):
    source = make(tmp_path / "file")  # type: ignore[operator]
    post = accept(rt, profile, media=(DraftMedia(artifact(rt, source, mime_type)),))
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
