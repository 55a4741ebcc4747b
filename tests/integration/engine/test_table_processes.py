"""The engine's table where a process dies, or answers when its row was taken by another one."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Done, Published, Readback, Wait
from socialpub.providers.responses import Rejected
from socialpub.runtime import Runtime
from tests.integration.engine.four_steps import LOOKS, FourSteps, Place, assert_it_is_true
from tests.support.appliance import accept, open_appliance, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedResult

FOR_EVER = 10_000
BEFORE_THE_COMMIT = (Place.PREPARE, Place.POLL_BEFORE)
REFUSED_FOR_GOOD = Rejected("The text is not allowed.", status=403, code="no")


@pytest.fixture
def network(clock):
    return FourSteps(clock)


# --- the process died ------------------------------------------------------------------------------------------------


@contextmanager
def successor_of(rt, network, clock):
    """Another process over the same folder."""
    successor = open_appliance(rt.settings.data_dir.parent, clock, providers={"x": network})
    try:
        yield successor
    finally:
        successor.close()


@pytest.mark.parametrize("effect", [True, False], ids=["after its effect", "before its effect"])
@pytest.mark.parametrize("place", Place)
def test_what_a_dead_process_had_begun_runs_again_and_a_commit_is_read_back(rt, network, profile, clock, place, effect):
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
            self.found.append(State(successor.reader.value("SELECT state FROM delivery")))
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
    assert rt.reader.value("SELECT provider_post_id FROM delivery") == "7"
    assert rt.reader.value("SELECT posts_count FROM profile") == 1


@pytest.mark.parametrize("place", [Place.COMMIT, Place.POLL_AFTER])
def test_what_is_no_post_says_nothing_any_more_once_the_row_was_taken(rt, network, profile, clock, place):
    late = Late(rt, network, clock, place, REFUSED_FOR_GOOD, within=0)
    network.results[place] = [late]
    network.results.setdefault(Place.POLL_AFTER, []).append(Wait(600, "It is being processed."))
    accept(rt, profile)
    drain(rt)
    assert late.found == [State.QUEUED]
    assert rt.reader.value("SELECT state FROM delivery") == "queued"


@pytest.mark.parametrize("place", [Place.COMMIT, Place.POLL_AFTER])
def test_a_final_state_is_final_whatever_is_answered_late(rt, network, profile, clock, place):
    late = Late(rt, network, clock, place, Published("7"), within=3600)
    network.results[place] = [late]
    network.results["recover"] = [Done({})]
    network.results.setdefault(Place.POLL_AFTER, []).append(Published("1"))
    post = accept(rt, profile)
    drain(rt)
    assert late.found == [State.PUBLISHED]
    assert state_of(rt, post) is State.PUBLISHED
    assert rt.reader.value("SELECT provider_post_id FROM delivery") == "1"
    assert [row[0] for row in rt.reader.all("SELECT type FROM log_entry ORDER BY n")] == ["pending", "published"]
