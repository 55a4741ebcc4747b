"""What a restored copy looks for before its first call."""

from datetime import timedelta

from socialpub.db.states import State
from socialpub.db.tables import holds
from socialpub.providers.base import CannotTell, Published, Readback
from socialpub.providers.responses import AppRefused, NoAnswer, Rejected
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile, message_of, state_of
from tests.support.copies import become_restored
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


def test_a_look_that_could_not_be_made_is_made_before_the_first_call(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    """The app's secret is wrong for a while: neither the look nor the call leaves."""
    post = accept(rt, profile, at=clock.now() + timedelta(hours=2))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    rt.db.write(lambda tx: tx.update("profile", profile, access_expires_at=tx.stamp))
    network.oauth.answers = [Rejected("invalid client", status=401)] * 2
    clock.forward(7200)
    drain(rt)
    assert network.asked == []
    assert state_of(rt, post) is State.QUEUED
    network.results["recover"] = [Readback((Published("of the original"),))]
    network.oauth.answers = []
    drain(rt, clock, within=4000)
    assert network.effects == [], "the original had sent it"
    assert state_of(rt, post) is State.PUBLISHED


def test_a_look_that_the_network_refuses_to_the_app_ends_no_hold_of_questions(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
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
    assert [row.scope for row in holds.list_all(rt.reader)] == [holds.QUESTIONS]
    clock.forward(30)
    drain(rt)
    assert [row.scope for row in holds.list_all(rt.reader)] == [holds.QUESTIONS], "nothing was answered"


def test_a_copy_of_a_copy_calls_nothing_absent_that_nobody_could_look_for(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
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
