"""A post is published once, although the call that makes it public fails in every way."""

from typing import Any

import pytest

from socialpub.providers import http
from tests.bluesky.front import Fault, answering, drop_after, drop_before
from tests.bluesky.stories import GET, PUT, WRITES, Story

HTML = b"<html><body>Bad gateway</body></html>"
LOST: dict[str, Fault] = {
    "the response is lost": drop_after,
    "the request is lost": drop_before,
    "a proxy responds after the effect": answering(502, HTML, {"content-type": "text/html"}, after_effect=True),
    "a proxy responds before the effect": answering(503, HTML, {"content-type": "text/html"}),
    "the server fails after the effect": answering(500, b'{"error":"InternalServerError"}', after_effect=True),
    "a page of a login portal arrives": answering(200, HTML, {"content-type": "text/html"}),
    "nothing that can be read arrives": answering(200, b"{", after_effect=True),
}
COMMITS: dict[str, tuple[str, dict[str, Any]]] = {
    "one record": (PUT, {}),
    "two records": (WRITES, {"replyControl": "nobody"}),
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("commit", COMMITS)
def test_a_post_whose_call_has_no_clear_response_is_published_once_and_at_once(
    story: Story, commit: str, how: str
) -> None:
    method, options = COMMITS[commit]
    story.front.next(method, LOST[how])
    before = story.clock.now()
    post = story.publish("Hello", options=options)
    story.assert_published_once(post)
    assert story.front.calls_of(method)[0].is_faulty
    assert (story.clock.now() - before).total_seconds() < 60, "it does not wait as for a call that must not be repeated"


@pytest.mark.parametrize("commit", COMMITS)
def test_a_response_that_is_lost_again_and_again_makes_no_second_record(story: Story, commit: str) -> None:
    method, options = COMMITS[commit]
    story.front.next(method, drop_after, times=4)
    post = story.publish("Hello", options=options)
    story.assert_published_once(post)


def test_every_repetition_sends_the_same_bytes(story: Story) -> None:
    story.front.next(PUT, drop_before, times=3)
    story.assert_published_once(story.publish("Hello"))
    bodies = [call.body for call in story.front.calls_of(PUT)]
    assert len(bodies) == 4
    assert len(set(bodies)) == 1


def test_a_request_that_takes_effect_late_makes_no_second_record(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    assert story.profile
    monkeypatch.setattr(http, "MAX_DEADLINE_SECONDS", 0.7)
    held = story.front.hold(PUT, "before")
    post = story.accept("Hello")
    story.drain(1)
    monkeypatch.undo()
    held.release()
    story.drain()
    story.assert_published_once(post)


def test_a_record_is_found_when_only_queries_have_a_response(story: Story) -> None:
    story.front.next(WRITES, drop_after)
    story.front.next(WRITES, answering(500, b'{"error":"InternalServerError"}'), times=10)
    post = story.publish("Hello", options={"replyControl": "nobody"})
    story.assert_published_once(post)
    assert story.front.calls_of(GET)
