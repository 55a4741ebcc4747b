"""What something between here and TikTok answers in its place is no answer of TikTok's, at any call and any status."""

import pytest

from socialpub.db.states import State
from tests.providers.grid import Call, Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

STATUSES = (400, 401, 403, 404, 407, 429, 502)
CALLS = [
    ("film", "creator_info"),
    ("film", "video_init"),
    ("film", "upload_chunk"),
    ("film", "status_fetch"),
    ("film in chunks", "status_fetch"),
    ("film in chunks", "upload_chunk"),
    ("draft", "inbox_init"),
]


CELLS = [
    (story, call, status, body)
    for story, call in CALLS
    for status in STATUSES
    # A bare status is what the upload host itself answers with.
    for body in (["a page"] if call == "upload_chunk" else ["a page", "nothing"])
]


@pytest.mark.parametrize(("story", "call", "status", "body"), CELLS)
def test_a_call_is_made_again(env: Environment, story: str, call: str, status: int, body: str) -> None:
    played, chosen = story_of("tiktok", story)
    profile = played.connect(env.rt, env.world)
    spoil(env, Call.of(call), status, body)
    with chosen.under():
        post = begin(env, played, chosen, profile)
        drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert len(env.world.tiktok.tasks.all) == 1
    nothing_is_held_against_anybody(env, profile)
    assert env.world.tiktok.statuses("token") == []


@pytest.mark.parametrize("body", ["a page", "nothing"])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
def test_a_question_what_became_of_it_is_asked_again(env: Environment, arrived: bool, status: int, body: str) -> None:
    played, chosen = story_of("tiktok", "film")
    profile = played.connect(env.rt, env.world)
    put = env.world.tiktok.next("upload_chunk")
    _ = put.times_out_after_effect() if arrived else put.times_out_before_effect()
    spoil(env, Call.of("status_fetch"), status, body)
    spoil(env, Call.of("status_fetch"), status, body)
    post = begin(env, played, chosen, profile)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    nothing_is_held_against_anybody(env, profile)


@pytest.mark.parametrize("body", ["a page", "nothing"])
@pytest.mark.parametrize("status", STATUSES)
def test_a_refresh_is_asked_for_again(env: Environment, status: int, body: str) -> None:
    played, chosen = story_of("tiktok", "film")
    profile = played.connect(env.rt, env.world, expires_in=60)
    env.clock.forward(120)
    spoil(env, Call.of("token"), status, body)
    post = begin(env, played, chosen, profile)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    nothing_is_held_against_anybody(env, profile)


def spoil(env: Environment, call: Call, status: int, body: str) -> None:
    script = env.world.tiktok.next(call.endpoint).skipping(call.skip)
    _ = script.fails_with(status, html=True) if body == "a page" else script.fails_with(status, "")


def nothing_is_held_against_anybody(env: Environment, profile: str) -> None:
    assert env.rt.reader.value("SELECT status FROM profile WHERE id = ?", (profile,)) == "active"
    assert env.rt.reader.all("SELECT provider FROM hold") == []
    assert env.rt.reader.all("SELECT endpoint FROM not_before") == []
