"""A post that was published stays published after any change to its record, and threads are whole."""

import itertools

import pytest

from socialpub.db.states import State
from tests.bluesky.front import drop_after
from tests.bluesky.stories import PUT, WRITES, Story
from tests.support.drain import DAY


@pytest.mark.parametrize("how", ["deleted by its owner", "taken down"])
def test_a_published_post_is_never_sent_again(story: Story, how: str) -> None:
    post = story.publish("Hello")
    (record,) = story.records()
    if how == "taken down":
        story.server.take_down(story.account, record)
    else:
        story.server.delete_record(story.account, record)
    story.clock.forward(DAY)
    story.drain(3 * DAY)
    assert story.records() == []
    assert story.outcome(post) == (State.PUBLISHED, record.uri)
    assert len(story.front.calls_of(PUT)) == 1


def test_each_post_of_a_thread_answers_the_record_before_it(story: Story) -> None:
    story.front.next(PUT, drop_after, skipping=2)
    posts = [story.accept("1")]
    for number in range(2, 6):
        posts.append(story.accept(str(number), options={"replyToPostId": posts[-1]}))
    story.drain()
    story.assert_published_once(*posts)
    records = [story.record(post) for post in posts]
    root = {"uri": records[0].uri, "cid": records[0].cid}
    for parent, record in itertools.pairwise(records):
        assert record.value["reply"] == {"root": root, "parent": {"uri": parent.uri, "cid": parent.cid}}


def test_a_reply_to_a_deleted_post_fails_and_is_not_sent(story: Story) -> None:
    parent = story.publish("Hello")
    story.server.delete_record(story.account, story.records()[0])
    reply = story.publish("And more", options={"replyToPostId": parent})
    assert story.outcome(reply)[0] is State.FAILED
    assert story.records() == []


def test_a_post_with_reply_control_is_one_call(story: Story) -> None:
    story.assert_published_once(story.publish("Hello", options={"replyControl": "nobody"}))
    assert len(story.front.calls_of(WRITES)) == 1
    assert story.front.calls_of(PUT) == []
