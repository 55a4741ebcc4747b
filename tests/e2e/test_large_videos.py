"""Videos larger than one chunk of TikTok: all bytes arrive, and no process has memory for all of them."""

import hashlib

import pytest

from tests.e2e.caller import Caller
from tests.e2e.processes import until
from tests.e2e.videos import video_bytes

LARGE_BYTES = 157_286_400
"""150 MiB, the largest that the API takes."""
SMALL_BYTES = 1024 * 1024
CHUNK_BYTES = 10_000_000
MORE_BYTES = 100_000_000
"""The memory that a process may still take, which is less than the video. New threads also need stacks."""


@pytest.mark.endurance
def test_a_video_of_150_mib_reaches_tiktok_and_pinterest_with_little_memory(installation, caller):
    processes = [installation.start(role) for role in ("web", "worker")]
    options = {"tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}, "pinterest": {"boardId": installation.board_id}}
    profiles = (installation.profile_on["tiktok"], installation.profile_on["pinterest"])
    # Imports and caches do not depend on the size of the video.
    first = caller.upload(video_bytes(SMALL_BYTES), "small.mp4", "video/mp4")
    assert_published(caller, caller.publish("Small", *profiles, media=(first,), options=options))
    for process in processes:
        process.limit_memory(MORE_BYTES)

    large = video_bytes(LARGE_BYTES)
    artifact = caller.upload(large, "large.mp4", "video/mp4")
    assert_published(caller, caller.publish("Large", *profiles, media=(artifact,), options=options))

    sha256 = hashlib.sha256(large).hexdigest()
    tiktok = installation.tiktok.show()
    assert [item["sha256"] for item in tiktok["posts"][-1]["media"]] == [sha256]
    task = tiktok["tasks"][-1]
    assert (task["received"], task["chunks"]) == (LARGE_BYTES, LARGE_BYTES // CHUNK_BYTES)
    pin = installation.pinterest.show()["pins"][-1]
    assert (pin["video"]["sha256"], pin["video"]["uploads"]) == (sha256, 1)


def assert_published(caller: Caller, post_id: str) -> None:
    until(lambda: caller.post(post_id, wait=60)["status"] == "settled", "it is settled", 300)
    deliveries = caller.post(post_id)["deliveries"]
    assert [delivery["status"] for delivery in deliveries] == ["published"] * 2, deliveries
