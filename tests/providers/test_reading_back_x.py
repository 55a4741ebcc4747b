"""Read-backs of a post on X with changed texts and unusual responses."""

import json
from typing import Any

import pytest

from socialpub.db.states import State
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import NETWORKS, story_of
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import HOST

X = NETWORKS["x"]
DIALECTS = ["new", "old"]


def lost(env: Environment, body: str, username: str = "demo", **options: Any) -> str:
    profile = X.connect(env.rt, env.world, username=username)
    if username == "studio":
        facts = json.dumps({"subscription_type": "Premium"})
        env.rt.write(lambda _, tx: tx.execute_sql("UPDATE profile SET facts = ?", (facts,)))
    env.world.x.next("create_post").times_out_after_effect()
    post = accept(env.rt, profile, body=body, options={"x": options} if options else None)
    drain(env.rt, env.clock)
    return post


def assert_found(env: Environment, post: str) -> None:
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert env.world.x.statuses("create_post") == [0], "it was not sent again"


def say(env: Environment, username: str, text: str, **body: Any) -> str:
    granted = env.world.x.grant(username)
    answer = env.rt.http.call("POST", f"{HOST}/x/2/tweets", token=granted["accessToken"], json={"text": text, **body})
    assert answer.status == 201, answer.body
    return str(answer.json()["data"]["id"])


@pytest.mark.parametrize("strips_invisible", [False, True])
@pytest.mark.parametrize("escapes_html", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "body",
    [
        "Tom &amp; Jerry",
        "Use &lt; to write <",
        "a &quot;b&quot; & c",
        "zero\u200bwidth \u200fright e\u0301 \u2764\ufe0f",
        "see https://de.wikipedia.org/wiki/Käse, EXAMPLE.com and https://example.com?x=1&y=2#a",
        "https://example.com/?a=1&amp;b=2\u2028next",
        "Käse & <Brot> " * 40 + "https://example.com/?a=1&b=2",
    ],
)
def test_a_text_is_found_in_every_form_that_x_writes(
    env: Environment, body: str, dialect: Any, escapes_html: bool, strips_invisible: bool
) -> None:
    env.world.x.dialect, env.world.x.escapes_html = dialect, escapes_html
    env.world.x.strips_invisible = strips_invisible
    assert_found(env, lost(env, body, "studio"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_x_may_accept_the_names_of_only_one_document(env: Environment, dialect: Any) -> None:
    env.world.x.dialect, env.world.x.one_dialect = dialect, True
    assert_found(env, lost(env, "Hello"))
    looks = env.world.x.statuses("list_posts")
    assert looks.count(400) == (dialect == "old"), "what is taken is remembered"
    env.world.x.next("create_post").times_out_after_effect()
    second = accept(env.rt, X.connect(env.rt, env.world, username="second"), body="Second")
    drain(env.rt, env.clock)
    assert state_of(env.rt, second) is State.PUBLISHED
    assert env.world.x.statuses("list_posts").count(400) == (dialect == "old")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_of_the_same_words_to_another_post_is_not_taken_for_ours(env: Environment, dialect: Any) -> None:
    env.world.x.dialect = dialect
    profile = X.connect(env.rt, env.world)
    for name in ("alice", "bob"):
        env.world.x.add_account(name)
    one, two = say(env, "alice", "@demo question one"), say(env, "bob", "@demo question two")
    env.world.x.next("create_post").times_out_before_effect()
    post = accept(env.rt, profile, body="Thank you!", options={"x": {"inReplyToPostId": one}})
    drain(env.rt)
    by_hand = [say(env, "demo", "Thank you!", reply={"in_reply_to_tweet_id": two}), say(env, "demo", "Thank you!")]
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    (ours,) = [made.id for made in env.world.x.posts if made.in_reply_to == one]
    assert env.rt.reader.value("SELECT provider_post_id FROM delivery") == ours
    assert ours not in by_hand


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_reply_is_found_after_the_names_that_x_adds(env: Environment, dialect: Any) -> None:
    env.world.x.dialect = dialect
    env.world.x.add_account("alice")
    asked = say(env, "alice", "@demo a question")
    post = lost(env, "Thank you!", inReplyToPostId=asked)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    demo = env.world.x.existing_account("demo")
    assert [env.world.x.wrapped(made)[0] for made in env.world.x.posts_of(demo)] == ["@alice Thank you!"]


@pytest.mark.parametrize("story", ["images", "video"])
@pytest.mark.parametrize("left_out", [["attachments"], ["created_at", "entities"], ["attachments", "conversation_id"]])
def test_members_that_x_leaves_out_do_not_hide_the_post(env: Environment, story: str, left_out: list[str]) -> None:
    played, chosen = story_of("x", story)
    env.world.x.leaves_out = left_out
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    env.world.x.next("create_post").times_out_after_effect()
    drain(env.rt, env.clock)
    assert_found(env, post)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
