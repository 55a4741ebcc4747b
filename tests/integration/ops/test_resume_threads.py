"""A thread in a restored backup: the original may have published all of it, a part of it, or nothing."""

from datetime import timedelta

import pytest

from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import OWNER, accept, message_of, state_of
from tests.support.copies import copy_of, restored, resumed
from tests.support.drain import drain
from tests.support.oracle import find_misplaced_replies
from tests.support.sandbox_http import connect_x

HOUR = 3600.0
WEEK = timedelta(days=7)


def thread(rt: Runtime, world: World) -> list[str]:
    """Three posts: the first is scheduled, and the others follow."""
    profile = connect_x(rt, world)
    accepted = [accept(rt, profile, body="1/3", at=rt.now() + WEEK)]
    for text in ("2/3", "3/3"):
        accepted.append(accept(rt, profile, body=text, options={"x": {"replyToPostId": accepted[-1]}}))
    return accepted


def publish(rt: Runtime, world: World, accepted: list[str], count: int) -> None:
    """Publish this number of posts of the thread early."""
    world.x.next("create_post").skipping(count).fails_with(400).forever()
    rt.write(posts.edit, accepted[0], Draft.change(scheduled_at=None), OWNER)
    drain(rt, within=HOUR)
    world.x.calm()
    assert len(world.x.posts) == count


def states(rt: Runtime, accepted: list[str]) -> str:
    return "".join(state_of(rt, post).letter for post in accepted)


def assert_in_place(rt: Runtime, world: World) -> None:
    assert list(find_misplaced_replies(rt.db.execute_sql, {post.id: post.in_reply_to for post in world.x.posts})) == []


SLOW = pytest.mark.endurance
"""For the counts that show the same as their neighbors."""


@pytest.mark.parametrize(
    ("count", "outcome"),
    [pytest.param(0, "fff", marks=SLOW), (1, "pff"), pytest.param(2, "ppf", marks=SLOW), (3, "ppp")],
)
def test_a_thread_that_was_due_is_only_read_back(original, world, clock, tmp_path, count, outcome):
    accepted = thread(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    publish(original, world, accepted, count)
    clock.forward(WEEK.total_seconds())
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert states(rt, accepted) == outcome, [message_of(rt, post) for post in accepted]
        assert len(world.x.posts) == count
        assert_in_place(rt, world)


@pytest.mark.parametrize("count", [pytest.param(0, marks=SLOW), 1, pytest.param(3, marks=SLOW)])
def test_a_thread_that_is_due_later_is_completed_and_no_post_of_it_is_sent_twice(
    original, world, clock, tmp_path, count
):
    accepted = thread(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    publish(original, world, accepted, count)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        drain(rt, clock, within=8 * 86_400)
        assert states(rt, accepted) == "ppp"
        assert [post.text for post in world.x.posts] == ["1/3", "2/3", "3/3"]
        assert_in_place(rt, world)
