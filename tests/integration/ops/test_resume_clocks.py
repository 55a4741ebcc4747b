"""The instant of a copy is a time of the original's clock, whatever this machine's clock shows."""

from datetime import datetime, timedelta

from socialpub.core.clock import stamp
from socialpub.db import appliance_state
from socialpub.db.states import State
from socialpub.db.tables import holds
from socialpub.providers.base import Job, Readback
from socialpub.providers.responses import AppRefused, HttpResponse, NoAnswer
from socialpub.publishing.delivery import read_back, resume
from socialpub.runtime import Runtime
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

BEHIND = timedelta(days=7)


def restored_on_a_machine_that_is_behind(rt: Runtime, clock: HandClock) -> datetime:
    copied_at = clock.now() + BEHIND
    rt.db.write(lambda tx: appliance_state.note_restore(tx, stamp(copied_at)))
    rt.write(resume.pause)
    return copied_at


def looked_since(network: ScriptedNetwork) -> list[datetime]:
    found: list[datetime] = []

    def look(job: Job) -> object:
        assert job.since is not None
        found.append(job.since())
        return Readback()

    network.results["recover"] = [look] * 100
    return found


def test_a_clock_that_is_set_right_after_the_resume_hides_nothing_of_the_original(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    accept(rt, profile, at=clock.now() + timedelta(days=9))
    copied_at = restored_on_a_machine_that_is_behind(rt, clock)
    rt.write(resume.resume)
    clock.jump(BEHIND.total_seconds())
    since = looked_since(network)
    drain(rt, clock)
    assert since
    assert since[0] <= copied_at, "what the original sent since the copy is looked for"


def test_a_clock_that_is_behind_hides_nothing_of_the_original(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    accept(rt, profile, at=clock.now() + timedelta(hours=2))
    copied_at = restored_on_a_machine_that_is_behind(rt, clock)
    rt.write(resume.resume)
    there = clock.now() + BEHIND + timedelta(hours=2)
    answer = HttpResponse(200, {"date": there.strftime("%a, %d %b %Y %H:%M:%S GMT")}, b"{}")
    read_back.note_date(rt, "x", answer)
    since = looked_since(network)
    drain(rt, clock)
    assert since
    assert since[0] <= copied_at


def test_a_hold_of_questions_ends_with_the_last_question(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    network.results["create_post"] = [NoAnswer("cut")]
    network.results["recover"] = [AppRefused("capped")] * 10_000
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED
    later = accept(rt, profile, body="Another")
    drain(rt, clock)
    assert state_of(rt, later) is State.PUBLISHED
    rt.write(lambda _, tx: holds.drop_unasked(tx))  # as housekeeping does every minute
    assert holds.list_all(rt.reader) == [], "readiness and the doctor speak of it for ever"
