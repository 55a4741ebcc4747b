"""What a resumed backup reads back before its first call, and since when with any clock."""

from datetime import datetime, timedelta

from socialpub.core.clock import stamp
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.db.tables import waits
from socialpub.providers.base import CannotTell, Job, Published, Readback
from socialpub.providers.responses import AppRefused, NoAnswer, Rejected
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile, message_of, state_of
from tests.support.copies import become_restored
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

# --- before the first call -------------------------------------------------------------------------------------------


def test_a_look_that_could_not_be_made_is_made_before_the_first_call(rt, network, profile, clock):
    """With a wrong app secret, neither the read-back nor the call is sent."""
    post = accept(rt, profile, at=clock.now() + timedelta(hours=2))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, access_expires_at=tx.stamp))
    network.auth.answers = [Rejected("invalid client", status=401)] * 2
    clock.forward(7200)
    drain(rt)
    assert network.asked == []
    assert state_of(rt, post) is State.QUEUED
    network.results["recover"] = [Readback((Published("of the original"),))]
    network.auth.answers = []
    drain(rt, clock, within=4000)
    assert network.effects == [], "the original had sent it"
    assert state_of(rt, post) is State.PUBLISHED


def test_a_look_that_the_network_refuses_to_the_app_ends_no_hold_of_questions(rt, network, profile, clock):
    accept(rt, profile, at=clock.now() + timedelta(minutes=20))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [AppRefused("capped")] * 100
    clock.forward(1200 - 60 - 30)
    accept(rt, add_profile(rt, account_id="other"), body="Unknown")
    drain(rt)
    clock.forward(6)
    drain(rt)
    assert [row.calls for row in waits.list_holds(rt.db)] == [waits.QUESTIONS]
    clock.forward(30)
    drain(rt)
    assert [row.calls for row in waits.list_holds(rt.db)] == [waits.QUESTIONS], "nothing was answered"


def test_a_backup_of_a_backup_calls_no_unread_post_absent(rt, network, profile, clock):
    post = accept(rt, profile, at=clock.now() + timedelta(hours=2))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    become_restored(rt)
    clock.forward(3 * 3600)
    rt.write(resume.resume)
    network.results["recover"] = [CannotTell("Look at the account.")] * 100
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED, message_of(rt, post)


# --- clocks ----------------------------------------------------------------------------------------------------------


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


def test_a_clock_that_is_set_right_after_the_resume_hides_nothing_of_the_original(rt, network, profile, clock):
    accept(rt, profile, at=clock.now() + timedelta(days=9))
    copied_at = restored_on_a_machine_that_is_behind(rt, clock)
    rt.write(resume.resume)
    clock.jump(BEHIND.total_seconds())
    since = looked_since(network)
    drain(rt, clock)
    assert since
    assert since[0] <= copied_at, "what the original sent since the copy is looked for"


def test_a_clock_that_is_behind_hides_nothing_of_the_original(rt, network, profile, clock):
    accept(rt, profile, at=clock.now() + timedelta(hours=2))
    copied_at = restored_on_a_machine_that_is_behind(rt, clock)
    rt.write(resume.resume)
    there = clock.now() + BEHIND + timedelta(hours=2)
    rt.engine.set_network_clock("x", there, clock.monotonic())
    since = looked_since(network)
    drain(rt, clock)
    assert since
    assert since[0] <= copied_at


def test_a_hold_of_questions_ends_with_the_last_question(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut")]
    network.results["recover"] = [AppRefused("capped")] * 10_000
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.UNCONFIRMED
    later = accept(rt, profile, body="Another")
    drain(rt, clock)
    assert state_of(rt, later) is State.PUBLISHED
    rt.write(lambda _, tx: waits.delete_unasked_holds(tx))  # as housekeeping does every minute
    assert waits.list_holds(rt.db) == [], "readiness and the doctor speak of it for ever"
