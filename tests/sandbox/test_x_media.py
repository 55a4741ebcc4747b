"""Uploads to the sandbox's X."""

import hashlib
from typing import Literal

import pytest

from socialpub.sandbox import World
from tests.sandbox.clients import XClient
from tests.sandbox.files import MP4, PNG
from tests.support.hand_clock import HandClock


def test_a_picture_is_ready_at_once(world: World, x: XClient) -> None:
    answer = x.call(
        "POST", "/2/media/upload", data={"media_category": "tweet_image"}, files={"media": ("a.png", PNG, "image/png")}
    )
    data = answer.json()["data"]
    assert data["media_key"] == f"3_{data['id']}"
    assert (data["size"], data["expires_after_secs"]) == (len(PNG), 86400)
    assert data["image"] == {"w": 1, "h": 1, "image_type": "image/png"}
    assert "processing_info" not in data
    assert world.x.media[data["id"]].sha256 == hashlib.sha256(PNG).hexdigest()


def test_a_video_uploaded_as_an_image_is_not_recognized(x: XClient) -> None:
    answer = x.call(
        "POST", "/2/media/upload", data={"media_category": "tweet_image"}, files={"media": ("a.png", MP4, "image/png")}
    )
    assert answer.status_code == 400


def test_a_video_is_uploaded_in_segments_and_processed(world: World, x: XClient, clock: HandClock) -> None:
    media_id = x.initialize(len(MP4))
    assert x.append(media_id, 0, MP4[:300]).json() == {"data": {"expires_at": int(clock.now().timestamp()) + 86400}}
    assert x.append(media_id, 1, MP4[300:]).status_code == 200
    finalized = x.finalize(media_id).json()["data"]
    assert finalized["processing_info"] == {"state": "pending", "check_after_secs": 1}
    assert finalized["media_key"] == f"7_{media_id}"
    clock.forward(1)
    assert x.look(media_id).json()["data"]["processing_info"] == {
        "state": "in_progress",
        "check_after_secs": 1,
        "progress_percent": 50,
    }
    clock.forward(1)
    done = x.look(media_id).json()["data"]["processing_info"]
    assert done["state"] == "succeeded"
    assert "check_after_secs" not in done
    assert world.x.media[media_id].sha256 == hashlib.sha256(MP4).hexdigest()


def test_segments_may_come_twice_and_out_of_order(world: World, x: XClient) -> None:
    for order in ([0, 0, 1, 1, 2, 2], [2, 0, 1, 0]):
        media_id = x.initialize(len(MP4))
        pieces = [MP4[:100], MP4[100:200], MP4[200:]]
        for index in order:
            assert x.append(media_id, index, pieces[index]).status_code == 200
        assert x.finalize(media_id).status_code == 200
        assert world.x.media[media_id].sha256 == hashlib.sha256(MP4).hexdigest()


@pytest.mark.parametrize(("fate", "last"), [("fails", "failed"), ("never_ends", "in_progress")])
def test_processing_may_fail_or_never_end(
    world: World, x: XClient, fate: Literal["fails", "never_ends"], last: str
) -> None:
    world.x.processing = fate
    media_id = x.video()
    states = [x.look(media_id).json()["data"]["processing_info"]["state"] for _ in range(5)]
    assert states[-1] == last
    assert x.post(media={"media_ids": [media_id]}).status_code == 400


def test_alt_text_is_kept_and_stale_shapes_are_500(world: World, x: XClient) -> None:
    media_id = x.upload()
    metadata = {"alt_text": {"text": "A red bicycle"}}
    answer = x.call("POST", "/2/media/metadata", json={"id": media_id, "metadata": metadata})
    assert answer.json() == {"data": {"id": media_id, "associated_metadata": metadata}}
    assert world.x.media[media_id].alt_text == "A red bicycle"
    for stale in ({"media_id": media_id, "alt_text": {"text": "x"}}, {"id": media_id, "alt_text": {"text": "x"}}):
        answer = x.call("POST", "/2/media/metadata", json=stale)
        assert (answer.status_code, answer.json()) == (500, {"errors": ["internal server error"]})
    too_long = {"id": media_id, "metadata": {"alt_text": {"text": "x" * 1001}}}
    assert x.call("POST", "/2/media/metadata", json=too_long).status_code == 400


def test_of_a_video_that_is_too_large_to_keep_only_the_size_is_known(world: World, x: XClient) -> None:
    world.x.cache.capacity = 400
    media_id = x.initialize(len(MP4))
    for index, start in enumerate(range(0, len(MP4), 150)):
        x.append(media_id, index, MP4[start : start + 150])
    x.finalize(media_id)
    media = world.x.media[media_id]
    assert (media.size, media.sha256) == (len(MP4), "")
    assert world.x.cache.used <= 400
