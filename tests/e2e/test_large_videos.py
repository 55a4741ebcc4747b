"""Videos larger than one chunk of TikTok: all bytes arrive, and no process holds many of them."""

import hashlib

from tests.e2e.caller import Caller
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.e2e.videos import video_bytes

LARGE_BYTES = 157_286_400
"""150 MiB, the largest that the API takes."""
SMALL_BYTES = 1024 * 1024
CHUNK_BYTES = 10_000_000
MOST_BYTES = 10_000_000
"""Additional memory for the large video compared with a small one: less than one chunk (1 MB was measured)."""


def test_a_video_of_150_mib_reaches_tiktok_and_pinterest_with_little_memory(
    installation: Installation, caller: Caller
) -> None:
    processes = {role: installation.start(role) for role in ("web", "worker")}
    options = {"tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}, "pinterest": {"boardId": installation.board_id}}
    profiles = (installation.profile_on["tiktok"], installation.profile_on["pinterest"])
    # Imports and caches do not depend on the size of the video.
    first = caller.upload(video_bytes(SMALL_BYTES), "small.mp4", "video/mp4")
    assert_published(caller, caller.publish("Small", *profiles, media=(first,), options=options))
    needed = {role: forget_peak(process) for role, process in processes.items()}

    large = video_bytes(LARGE_BYTES)
    artifact = caller.upload(large, "large.mp4", "video/mp4")
    assert_published(caller, caller.publish("Large", *profiles, media=(artifact,), options=options))
    for role, process in processes.items():
        more = process.peak_bytes() - needed[role]
        assert more < MOST_BYTES, f"{role}: {more / 1e6:.0f} MB more"

    sha256 = hashlib.sha256(large).hexdigest()
    tiktok = installation.tiktok.show()
    assert [item["sha256"] for item in tiktok["posts"][-1]["media"]] == [sha256]
    sizes = [CHUNK_BYTES] * 14 + [LARGE_BYTES - 14 * CHUNK_BYTES]
    assert [put["size"] for put in tiktok["tasks"][-1]["puts"]] == sizes
    assert [put["status"] for put in tiktok["tasks"][-1]["puts"]] == [206] * 14 + [201]
    pin = installation.pinterest.show()["pins"][-1]
    assert (pin["film"]["sha256"], pin["film"]["uploads"]) == (sha256, 1)


def forget_peak(process: Process) -> int:
    """The bytes it has now, from which on its peak counts."""
    process.forget_peak()
    return process.peak_bytes()


def assert_published(caller: Caller, post_id: str) -> None:
    until(lambda: caller.post(post_id, wait=60)["status"] == "settled", "it is settled", 300)
    deliveries = caller.post(post_id)["deliveries"]
    assert [delivery["status"] for delivery in deliveries] == ["published"] * 2, deliveries
