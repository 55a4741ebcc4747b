"""A thread on X with a fault at one of its posts: a reply only under its published post, and at most one of each."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from socialpub.accounts.api_keys import OWNER
from socialpub.db.states import State
from socialpub.publishing.posts import retries
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import (
    COMES_TO,
    FAULTS,
    Call,
    Environment,
    Place,
    let_worker_die,
    played,
    successor_of,
)
from tests.providers.networks import story_of
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.oracle import Stated, find_misplaced_replies, find_row_contradictions, find_untruths
from tests.support.sandbox_http import ProcessKilled, connect_x
from tests.support.select import select_one

TEXTS = ("The first of three", "The second of three", "The third of three")
CREATE = [f"create_post#{number}" for number in (1, 2, 3)]
OTHERWISE = story_of("x", "video")[1].otherwise["create_post"]
CELLS = [(call, fault) for call in CREATE for fault in FAULTS]
IN_EVERY_RUN = {(CREATE[1], fault) for fault in ("503 before", "time-out after", "400", "503 three times")}
"""The other meanings of faults concern one delivery, and the other stories have them in every run."""


def begin_thread(env: Environment) -> list[str]:
    profile = connect_x(env.rt, env.world)
    accepted = [accept(env.rt, profile, body=TEXTS[0])]
    for text in TEXTS[1:]:
        accepted.append(accept(env.rt, profile, body=text, options={"x": {"replyToPostId": accepted[-1]}}))
    return accepted


def assert_the_thread_is_true(rt: Runtime, world: World, tries: Sequence[Sequence[str]]) -> None:
    """`tries`: for each text, the posts of the appliance that try to publish the text."""
    made = {text: [post for post in world.x.posts if post.text == text] for text in TEXTS}
    wrong = list(find_row_contradictions(rt.db.execute_sql))
    for text, accepted in zip(TEXTS, tries, strict=True):
        rows = [select_one(rt.db, "SELECT * FROM delivery WHERE post_id = ?", (post,)) for post in accepted]
        stated = [Stated.from_row(row) for row in rows]
        assert "pending" not in [one.outcome for one in stated]
        wrong += find_untruths(stated, [post.id for post in made[text]])
    wrong += find_misplaced_replies(rt.db.execute_sql, {post.id: post.in_reply_to for post in world.x.posts})
    for parent, reply in pairwise(TEXTS):
        above = {post.id for post in made[parent]}
        wrong += [f"OUT OF ITS THREAD: {post.text}" for post in made[reply] if post.in_reply_to not in above]
    assert not wrong, wrong


def assert_it_breaks_off_at(rt: Runtime, accepted: Sequence[str], place: int, due: State) -> None:
    states = [state_of(rt, post) for post in accepted]
    after = State.PUBLISHED if due is State.PUBLISHED else State.FAILED
    expected = [*[State.PUBLISHED] * place, due, *[after] * (len(TEXTS) - place - 1)]
    assert states == expected, [message_of(rt, post) for post in accepted]
    if after is State.FAILED:
        for parent, reply in list(pairwise(accepted))[place:]:
            assert parent in message_of(rt, reply)


@pytest.mark.parametrize(("call", "fault"), played(CELLS, lambda *cell: cell in IN_EVERY_RUN))
def test_a_fault_at_one_post_ends_or_delays_the_posts_after_it(env: Environment, call: str, fault: str) -> None:
    accepted, at = begin_thread(env), Call.of(call)
    FAULTS[fault].apply(env, "x", at)
    drain(env.rt, env.clock)
    due = OTHERWISE.get(fault, COMES_TO[FAULTS[fault].means, Place.COMMIT])
    assert_it_breaks_off_at(env.rt, accepted, at.skip, due)
    assert_the_thread_is_true(env.rt, env.world, [[post] for post in accepted])


@pytest.mark.parametrize("fault", ["400", "cut three times"])
def test_retrying_each_post_in_turn_continues_the_thread(env: Environment, fault: str) -> None:
    accepted = begin_thread(env)
    FAULTS[fault].apply(env, "x", Call.of(CREATE[1]))
    drain(env.rt, env.clock)
    assert_it_breaks_off_at(env.rt, accepted, 1, COMES_TO[FAULTS[fault].means, Place.COMMIT])
    tries = [[post] for post in accepted]
    for of_text in tries[1:]:
        of_text.append(env.rt.write(retries.retry, of_text[0], OWNER, True))
    drain(env.rt, env.clock)
    assert [state_of(env.rt, of_text[-1]) for of_text in tries] == [State.PUBLISHED] * 3
    assert_the_thread_is_true(env.rt, env.world, tries)


DEATHS = [(call, moment) for call in CREATE for moment in ("before", "after")]


@pytest.mark.parametrize(("call", "moment"), played(DEATHS, lambda call, _: call == CREATE[1]))
def test_the_worker_dies_around_a_post_of_a_thread(env: Environment, call: str, moment: str) -> None:
    with successor_of(env) as successor:
        accepted = begin_thread(env)
        let_worker_die(env, Call.of(call), moment)
        with pytest.raises(ProcessKilled):
            drain(env.rt, env.clock)
        env.rt.process.close()
        drain(successor, env.clock)
        assert [state_of(successor, post) for post in accepted] == [State.PUBLISHED] * 3
        assert_the_thread_is_true(successor, env.world, [[post] for post in accepted])


@pytest.mark.parametrize(("lag", "states"), [(100, "ppp"), (140, "pff")])
def test_a_parent_that_x_does_not_show_yet_is_waited_for_two_minutes(env: Environment, lag: float, states: str) -> None:
    env.world.x.reply_lag_seconds = lag
    accepted = begin_thread(env)
    drain(env.rt, env.clock)
    assert "".join(state_of(env.rt, post).letter for post in accepted) == states
    assert_the_thread_is_true(env.rt, env.world, [[post] for post in accepted])
