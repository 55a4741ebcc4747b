"""What the engine makes of whatever happens to a call: its own table, one cell after the other.

A plan has a step that prepares, one that asks before the commit, the commit, and one that asks after it. One of them
meets what the row says, everything else goes well. What a network's own error table decides first is the grid's affair
(`tests/providers`); here the networks' answers have been read already.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Wait
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from tests.integration.engine.four_steps import LOOKS, FourSteps, Place, assert_it_is_true
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedResult

BEFORE_THE_COMMIT = (Place.PREPARE, Place.POLL_BEFORE)
FOR_EVER = 10_000


@pytest.fixture
def network(clock):
    return FourSteps(clock)


@dataclass(frozen=True)
class Comes:
    """What becomes of the delivery."""

    state: State
    calls: int | None
    """How often the step is called; None: as often as the patience allows."""
    looks: int = 0
    """How often the account is looked at."""
    refreshes: int = 0
    profile: str = "active"


@dataclass(frozen=True)
class Row:
    met: tuple[ScriptedResult, ...]
    """What one call of the step after the other comes to; then it goes well."""
    to: Mapping[Place, Comes]
    pause_seconds: float = 0.0
    """At least so long between the first call and the second."""
    effect: bool = False
    """Whether the first call of the commit makes the post all the same."""


def everywhere(comes):
    return dict.fromkeys(Place, comes)


def published(calls, looks=0):
    return Comes(State.PUBLISHED, calls, looks)


def unanswered(message, *, effect):
    """A call that left and of which nothing usable came back."""
    commit = published(1, 1) if effect else published(2, LOOKS)
    return Row((NoAnswer(message),), {**everywhere(published(2)), Place.COMMIT: commit}, 5, effect)


REFUSED_FOR_GOOD = Rejected("The text is not allowed.", status=403, code="no")

TABLE: dict[str, Row] = {
    "never left": Row((NotSent("no route"), NotSent("no route")), everywhere(published(3)), 5),
    "429 with a time": Row((Throttled("slow down", retry_after_seconds=900),), everywhere(published(2)), 900),
    "429 without a time": Row((Throttled("slow down"),), everywhere(published(2)), 60),
    "429 until after the patience": Row(
        (Throttled("monthly cap", retry_after_seconds=30 * 86_400),),
        {**everywhere(Comes(State.FAILED, 1)), Place.POLL_AFTER: Comes(State.UNCONFIRMED, 1)},
    ),
    "401, and the token can be renewed": Row(
        (AuthExpired("401"),), everywhere(Comes(State.PUBLISHED, 2, refreshes=1)), 0
    ),
    "401 with the new token as well": Row(
        (AuthExpired("401"), AuthExpired("401")),
        {
            **everywhere(Comes(State.FAILED, 2, refreshes=1, profile="reauthRequired")),
            Place.POLL_AFTER: Comes(State.UNCONFIRMED, 2, refreshes=1, profile="reauthRequired"),
        },
    ),
    "not the network's own form, without effect": unanswered("A page came instead of an answer.", effect=False),
    "not the network's own form, with effect": unanswered("A page came instead of an answer.", effect=True),
    "5xx without effect": unanswered("HTTP 503", effect=False),
    "5xx with effect": unanswered("HTTP 503", effect=True),
    "timed out without effect": unanswered("timed out", effect=False),
    "timed out with effect": unanswered("timed out", effect=True),
    "cut without effect": unanswered("cut", effect=False),
    "cut with effect": unanswered("cut", effect=True),
    "an unreadable answer without effect": unanswered("It could not be read.", effect=False),
    "an unreadable answer with effect": unanswered("It could not be read.", effect=True),
    "no answer twice": Row(
        (NoAnswer("timed out"), NoAnswer("timed out")),
        # There is no third call of the commit.
        {**everywhere(published(3)), Place.COMMIT: Comes(State.UNCONFIRMED, 2, 2 * LOOKS)},
        5,
    ),
    "another 4xx": Row(
        (REFUSED_FOR_GOOD,),
        {**everywhere(Comes(State.FAILED, 1)), Place.POLL_AFTER: Comes(State.UNCONFIRMED, 1)},
    ),
    "no answer until the patience is over": Row(
        (NoAnswer("timed out"),) * FOR_EVER,
        {
            **dict.fromkeys(BEFORE_THE_COMMIT, Comes(State.FAILED, None)),
            Place.POLL_AFTER: Comes(State.UNCONFIRMED, None),
        },
    ),
    "never leaves until the patience is over": Row(
        (NotSent("no route"),) * FOR_EVER,
        {**everywhere(Comes(State.FAILED, None)), Place.POLL_AFTER: Comes(State.UNCONFIRMED, None)},
    ),
    "still processing when the patience is over": Row(
        (Wait(600, "It is being processed."),) * FOR_EVER,
        {Place.POLL_BEFORE: Comes(State.FAILED, None), Place.POLL_AFTER: Comes(State.UNCONFIRMED, None)},
    ),
}

CELLS = [(happened, place) for happened, row in TABLE.items() for place in row.to]


@pytest.mark.parametrize(("happened", "place"), CELLS, ids=[f"{row} · {place.name}" for row, place in CELLS])
def test_what_happened_to_a_call_decides_what_becomes_of_the_post(rt, network, profile, clock, happened, place):
    row, due = TABLE[happened], TABLE[happened].to[place]
    network.results[place] = list(row.met)
    if row.effect and place is Place.COMMIT:
        network.results[place] = [then_fails(network, row.met[0])]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is due.state, message_of(rt, post)
    assert_it_is_true(rt, network, post)
    calls = network.called_at[place]
    assert due.calls is None or len(calls) == due.calls
    if len(calls) > 1:
        assert calls[1] - calls[0] >= row.pause_seconds
    assert network.asked.count("recover") == due.looks
    assert len(network.oauth.refreshes) == due.refreshes
    assert rt.reader.value("SELECT status FROM profile") == due.profile
    others = [step for step in Place if step is not place and step in network.asked]
    assert [network.asked.count(step) for step in others] == [1] * len(others), "nothing else is done again"


def then_fails(network, failure):
    def run(job):
        network.publish(job.content.text)
        assert isinstance(failure, Exception)
        raise failure

    return run


# --- the mark --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize(
    "failure",
    [NotSent("no route"), Throttled("slow down", retry_after_seconds=900), Throttled("slow down")],
    ids=["never left", "429 with a time", "429 without a time"],
)
def test_the_mark_of_a_commit_that_certainly_did_not_happen_is_cleared(rt, network, profile, place, failure):
    network.results[place] = [failure]
    post = accept(rt, profile)
    drain(rt)
    assert state_of(rt, post) is State.QUEUED
    marked = rt.reader.value("SELECT committed_at FROM delivery") is not None
    assert marked is (place is Place.POLL_AFTER)


# --- the question what became of a commit ----------------------------------------------------------------------------

ASKED: dict[str, tuple[ScriptedResult, State, int]] = {
    "never left": (NotSent("no route"), State.PUBLISHED, LOOKS + 1),
    # One look that is answered after all the time has shown what ten would have.
    "429 with a time": (Throttled("slow down", retry_after_seconds=900), State.PUBLISHED, 2),
    "429 without a time": (Throttled("slow down"), State.PUBLISHED, LOOKS),
    "401, and the token can be renewed": (AuthExpired("401"), State.PUBLISHED, LOOKS + 1),
    "no answer": (NoAnswer("timed out"), State.PUBLISHED, LOOKS + 1),
    "another 4xx": (REFUSED_FOR_GOOD, State.UNCONFIRMED, 1),
}
"""What the question meets, what becomes of the delivery, and how often it was asked."""


@pytest.mark.parametrize("happened", ASKED)
def test_only_an_answered_look_counts_and_a_refused_one_tells_nothing(rt, network, profile, clock, happened):
    answer, state, asked = ASKED[happened]
    network.results[Place.COMMIT] = [NoAnswer("timed out")]
    network.results["recover"] = [answer]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is state, message_of(rt, post)
    assert_it_is_true(rt, network, post)
    assert network.asked.count("recover") == asked
    assert network.asked.count(Place.COMMIT) == (1 if state is State.UNCONFIRMED else 2)


@pytest.mark.parametrize("answer", [NoAnswer("timed out"), NotSent("no route")], ids=["no answer", "never left"])
def test_a_question_that_is_never_answered_leaves_the_outcome_unknown(rt, network, profile, clock, answer):
    network.results[Place.COMMIT] = [NoAnswer("timed out")]
    network.results["recover"] = [answer] * FOR_EVER
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED
    assert_it_is_true(rt, network, post)
    assert network.asked.count(Place.COMMIT) == 1
