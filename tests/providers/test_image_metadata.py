"""Location and other metadata of an image: no network gets them, and the owner's file keeps them."""

import hashlib
from pathlib import Path

import pytest

from socialpub.db.states import State
from socialpub.media.decoder import structure
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.sandbox import World
from tests.providers.grid import BODY, Environment
from tests.providers.networks import NETWORKS
from tests.samples import media
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import artifact

OPTIONS = {"x": {}, "tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}, "pinterest": {}, "bluesky": {}}


def arrived(world: World, network: str) -> list[str]:
    match network:
        case "x":
            images = list(world.x.media.all.values())
        case "tiktok":
            images = [image for post in world.tiktok.catch_up() for image in post.media]
        case "bluesky":
            files = [world.bluesky.cache.get(blob.cid) or b"" for blob in world.bluesky.blobs.values()]
            return [hashlib.sha256(file).hexdigest() for file in files]
        case _:
            images = [image for pin in world.pinterest.pins for image in pin.pictures]
    return [image.sha256 for image in images]


@pytest.mark.parametrize("network", NETWORKS)
def test_no_network_gets_an_images_location_and_the_pixels_stay(env: Environment, tmp_path: Path, network: str) -> None:
    played = NETWORKS[network]
    profile = played.connect(env.rt, env.world)
    photo = media.jpeg(tmp_path / "photo.jpg", 640, 960)
    original = photo.read_bytes()
    plain = structure.strip_metadata(original, "image/jpeg")
    assert plain is not None and b"Samplephone" in original and b"Samplephone" not in plain
    artifact_id = artifact(env.rt, photo, "image/jpeg")
    options = {network: {**played.options(env.world, "demo"), **OPTIONS[network]}}
    post = accept(env.rt, profile, body=BODY, media=(DraftMedia(artifact_id),), options=options)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert arrived(env.world, network) == [hashlib.sha256(plain).hexdigest()]
    key = env.rt.reader.value("SELECT storage_key FROM artifact WHERE id = ?", (artifact_id,))
    assert env.rt.files.path(key).read_bytes() == original
