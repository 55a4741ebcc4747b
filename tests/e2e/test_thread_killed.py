"""The worker is killed at every post of a thread: each post is published once, under the post before it."""

from itertools import pairwise

import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until

pytestmark = pytest.mark.endurance  # the grid has the same deaths in one process, in every run
TEXTS = ("First of three", "Second of three", "Third of three")


@pytest.fixture
def installation(make_installation: MakeInstallation) -> Installation:
    """No call is given up before the kill, and the pauses of read-backs pass quickly."""
    installation = make_installation(pace=60, deadline_seconds=60)
    installation.sandbox()
    installation.start("web")
    return installation


def begin_thread(installation: Installation) -> list[str]:
    caller, profile = installation.caller(), installation.profile_on["x"]
    accepted = [caller.publish(TEXTS[0], profile)]
    for text in TEXTS[1:]:
        accepted.append(caller.publish(text, profile, options={"x": {"replyToPostId": accepted[-1]}}))
    return accepted


def assert_whole(installation: Installation, caller: Caller, accepted: list[str]) -> None:
    deliveries = [caller.delivery(post) for post in accepted]
    assert [one["status"] for one in deliveries] == ["published"] * 3, deliveries
    assert installation.x.texts() == list(TEXTS)
    options = {post["id"]: post["options"] for post in installation.x.posts()}
    for above, reply in pairwise(deliveries):
        assert options[reply["providerPostId"]]["reply"] == {"in_reply_to_tweet_id": above["providerPostId"]}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", range(3))
def test_a_worker_killed_in_the_call_of_a_post_leaves_a_whole_thread(
    installation: Installation, caller: Caller, place: int, when: str
) -> None:
    installation.x.script("create_post", f"times_out_{when}_effect", skipping=place)
    worker = installation.start("worker")
    accepted = begin_thread(installation)
    until(installation.x.held, "the call is held")
    worker.kill()
    states = [caller.delivery(post, wait=0)["status"] for post in accepted]
    assert states == ["published"] * place + ["pending"] * (3 - place)
    installation.start("worker")
    assert_whole(installation, caller, accepted)


def test_a_worker_killed_again_and_again_between_the_posts_leaves_a_whole_thread(
    installation: Installation, caller: Caller
) -> None:
    accepted, worker = begin_thread(installation), None
    for post in accepted:
        worker = _again(installation, worker)
        until(lambda post=post: caller.delivery(post, wait=0)["status"] == "published", "the post is published")
    assert_whole(installation, caller, accepted)


def _again(installation: Installation, worker: Process | None) -> Process:
    if worker is not None:
        worker.kill()
    return installation.start("worker")


def test_a_thread_whose_first_post_fails_is_continued_by_retrying_each_post_in_turn_through_a_kill(
    installation: Installation, caller: Caller
) -> None:
    installation.x.script("create_post", "fails_with", status=400)
    worker = installation.start("worker")
    accepted = begin_thread(installation)
    failed = [caller.delivery(post) for post in accepted]
    assert [one["status"] for one in failed] == ["failed"] * 3
    assert accepted[0] in failed[1]["errorMessage"] and accepted[1] in failed[2]["errorMessage"]
    again = []
    for post in accepted:
        again.append(caller.ask("POST", f"/api/v1/posts/{post}/retry").json()["data"]["id"])
        if post == accepted[1]:
            worker.kill()
            worker = installation.start("worker")
    assert_whole(installation, caller, again)
