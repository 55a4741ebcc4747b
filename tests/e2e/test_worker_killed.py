"""The worker is killed in the middle of a call: what became of it is found out, and nothing is posted twice."""

import pytest

from tests.e2e.caller import Caller
from tests.e2e.processes import until
from tests.e2e.stage import Stage
from tests.samples import media

CHUNKS = 3


@pytest.mark.parametrize(
    ("hangs", "up"), [("times_out_after_effect", 1), ("times_out_before_effect", 0)], ids=["after", "before"]
)
def test_a_worker_killed_while_the_post_is_being_made_never_makes_a_second_one(
    stage: Stage, caller: Caller, hangs: str, up: int
) -> None:
    stage.start("web")
    worker = stage.start("worker")
    stage.x.script("create_post", hangs)
    post = caller.publish("Said once", stage.profiles[0])
    until(lambda: stage.x.in_flight() == 1 and len(stage.x.posts()) == up, "the call is on its way")
    worker.kill()
    assert caller.delivery(post, wait=None)["status"] == "pending"
    stage.start("worker")
    delivery = caller.delivery(post)
    assert delivery["status"] == "published", delivery
    assert [found["id"] for found in stage.x.posts()] == [delivery["providerPostId"]]
    assert stage.x.calls("create_post") == 2 - up


def test_a_worker_killed_in_the_middle_of_a_film_sends_it_again_and_posts_it_once(stage: Stage, caller: Caller) -> None:
    film = media.video_mp4(stage.folder / "film.mp4", 1.0, size=CHUNKS * 1024 * 1024).read_bytes()
    stage.start("web")
    worker = stage.start("worker")
    stage.x.script("upload_append", "times_out_before_effect", skipping=1)
    artifact = caller.upload(film, "film.mp4", "video/mp4")
    post = caller.publish("A film", stage.profiles[0], media=(artifact,))
    until(lambda: stage.x.in_flight() == 1 and stage.x.calls("upload_append") == 1, "the second chunk is on its way")
    worker.kill()
    stage.start("worker")
    delivery = caller.delivery(post)
    assert delivery["status"] == "published", delivery
    (found,) = stage.x.posts()
    assert found["id"] == delivery["providerPostId"]
    assert [item["size"] for item in found["media"]] == [len(film)]
