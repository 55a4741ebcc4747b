"""The engine's own table: what each outcome of a call means for the post.

A plan has a step that prepares, one that asks before the commit, the commit, and one that asks after it. One of them
meets what the row says, everything else goes well. The grid (`tests/providers`) proves a network's own error table.
"""

from collections.abc import Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Done, Published, Readback, Wait
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.runtime import Runtime
from tests.integration.engine.four_steps import LOOKS, FourSteps, Place, assert_it_is_true
from tests.support.appliance import accept, message_of, open_appliance, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedResult
from tests.support.select import select_all, select_value

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
    """How often the step is called; None: as often as the deadline allows."""
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
    """The minimum pause between the first call and the second."""
    effect: bool = False
    """Whether the first call of the commit makes the post."""


def everywhere(comes):
    return dict.fromkeys(Place, comes)


def published(calls, looks=0):
    return Comes(State.PUBLISHED, calls, looks)


def unanswered(*, effect):
    """A call that left and of which nothing usable came back."""
    commit = published(1, 1) if effect else published(2, LOOKS)
    return Row((NoAnswer("timed out"),), {**everywhere(published(2)), Place.COMMIT: commit}, 5, effect)


REFUSED_FOR_GOOD = Rejected("The text is not allowed.", status=403, code="no")

TABLE: dict[str, Row] = {
    "never left": Row((NotSent("no route"), NotSent("no route")), everywhere(published(3)), 5),
    "429 with a time": Row((Throttled("slow down", retry_after_seconds=900),), everywhere(published(2)), 900),
    "429 without a time": Row((Throttled("slow down"),), everywhere(published(2)), 60),
    "429 until after the deadline": Row(
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
    "no usable answer without effect": unanswered(effect=False),
    "no usable answer with effect": unanswered(effect=True),
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
    "no answer until the deadline is over": Row(
        (NoAnswer("timed out"),) * FOR_EVER,
        {
            **dict.fromkeys(BEFORE_THE_COMMIT, Comes(State.FAILED, None)),
            Place.POLL_AFTER: Comes(State.UNCONFIRMED, None),
        },
    ),
    "never leaves until the deadline is over": Row(
        (NotSent("no route"),) * FOR_EVER,
        {**everywhere(Comes(State.FAILED, None)), Place.POLL_AFTER: Comes(State.UNCONFIRMED, None)},
    ),
    "still processing when the deadline is over": Row(
        (Wait(600, "It is being processed."),) * FOR_EVER,
        {Place.POLL_BEFORE: Comes(State.FAILED, None), Place.POLL_AFTER: Comes(State.UNCONFIRMED, None)},
    ),
}

CELLS = [(happened, place) for happened, row in TABLE.items() for place in row.to]


@pytest.mark.parametrize(("happened", "place"), CELLS, ids=[f"{row} · {place.name}" for row, place in CELLS])
def test_the_result_of_a_call_decides_the_outcome_of_the_post(rt, network, profile, clock, happened, place):
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
    assert len(network.auth.refreshes) == due.refreshes
    assert select_value(rt.db, "SELECT status FROM profile") == due.profile
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
    marked = select_value(rt.db, "SELECT committed_at FROM delivery") is not None
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
def test_only_an_answered_read_back_counts(rt, network, profile, clock, happened):
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


# --- the process died ------------------------------------------------------------------------------------------------


@contextmanager
def successor_of(rt, network, clock):
    """Another process over the same folder."""
    with closing(open_appliance(rt.settings.data_dir.parent, clock, providers={"x": network})) as successor:
        yield successor


@pytest.mark.parametrize("effect", [True, False], ids=["after its effect", "before its effect"])
@pytest.mark.parametrize("place", Place)
def test_a_step_of_a_dead_process_runs_again_and_a_commit_is_read_back(rt, network, profile, clock, place, effect):
    def dies(job):
        if effect:
            network.goes_well(place, job)
        raise ProcessKilled

    network.results[place] = [dies]
    post = accept(rt, profile)
    with pytest.raises(ProcessKilled):
        drain(rt)
    rt.process.close()
    with successor_of(rt, network, clock) as successor:
        drain(successor, clock)
        assert state_of(successor, post) is State.PUBLISHED
        assert_it_is_true(successor, network, post)
    commit = place is Place.COMMIT
    assert network.asked.count(place) == (1 if commit and effect else 2)
    assert network.asked.count("recover") == (0 if not commit else 1 if effect else LOOKS)


# --- an answer after the row was taken -------------------------------------------------------------------------------


@dataclass
class Late:
    """A call whose process is believed to be dead: before it is answered, another goes on for `within` seconds."""

    rt: Runtime
    network: FourSteps
    clock: HandClock
    place: Place
    answer: ScriptedResult
    within: float = 0.0
    found: list[State] = field(default_factory=list)

    def __call__(self, job):
        self.rt.process.close()
        with successor_of(self.rt, self.network, self.clock) as successor:
            drain(successor, self.clock, within=self.within)
            self.found.append(State(select_value(successor.db, "SELECT state FROM delivery")))
        return self.answer


@pytest.mark.parametrize("place", BEFORE_THE_COMMIT)
@pytest.mark.parametrize("answer", [Done({"late": True}), REFUSED_FOR_GOOD], ids=["it went well", "it was refused"])
def test_before_the_commit_an_answer_after_the_row_was_taken_is_discarded(rt, network, profile, clock, place, answer):
    late = Late(rt, network, clock, place, answer, within=60)
    network.results[place] = [late]
    post = accept(rt, profile)
    drain(rt)
    assert late.found == [State.PUBLISHED]
    assert (state_of(rt, post), network.effects) == (State.PUBLISHED, ["Hello"])
    assert network.asked.count(place) == 2
    assert not network.jobs[-1].memo.get("late")


@pytest.mark.parametrize("place", [Place.COMMIT, Place.POLL_AFTER])
def test_a_post_that_is_up_counts_although_the_row_was_taken_meanwhile(rt, network, profile, clock, place):
    late = Late(rt, network, clock, place, Published("7"), within=0)
    network.results[place] = [late]
    network.results["recover"] = [Readback()] * FOR_EVER
    network.results.setdefault(Place.POLL_AFTER, []).append(Wait(600, "It is being processed."))
    post = accept(rt, profile)
    drain(rt)
    assert late.found == [State.QUEUED], "the successor has taken it up and waits"
    assert state_of(rt, post) is State.PUBLISHED
    assert select_value(rt.db, "SELECT provider_post_id FROM delivery") == "7"
    assert select_value(rt.db, "SELECT posts_count FROM profile") == 1


@pytest.mark.parametrize("place", [Place.COMMIT, Place.POLL_AFTER])
def test_a_late_result_without_a_post_is_ignored(rt, network, profile, clock, place):
    late = Late(rt, network, clock, place, REFUSED_FOR_GOOD, within=0)
    network.results[place] = [late]
    network.results.setdefault(Place.POLL_AFTER, []).append(Wait(600, "It is being processed."))
    accept(rt, profile)
    drain(rt)
    assert late.found == [State.QUEUED]
    assert select_value(rt.db, "SELECT state FROM delivery") == "queued"


@pytest.mark.parametrize("place", [Place.COMMIT, Place.POLL_AFTER])
def test_a_late_answer_does_not_change_a_final_state(rt, network, profile, clock, place):
    late = Late(rt, network, clock, place, Published("7"), within=3600)
    network.results[place] = [late]
    network.results["recover"] = [Done({})]
    network.results.setdefault(Place.POLL_AFTER, []).append(Published("1"))
    post = accept(rt, profile)
    drain(rt)
    assert late.found == [State.PUBLISHED]
    assert state_of(rt, post) is State.PUBLISHED
    assert select_value(rt.db, "SELECT provider_post_id FROM delivery") == "1"
    assert [row[0] for row in select_all(rt.db, "SELECT type FROM log_entry ORDER BY n")] == [
        "pending",
        "published",
    ]
