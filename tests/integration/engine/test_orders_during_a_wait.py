"""Orders that come while a delivery waits."""

from socialpub.accounts import profiles
from socialpub.db.states import State
from socialpub.providers.responses import AuthExpired, NoAnswer, Throttled
from socialpub.publishing.delivery import engine
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain


def test_nothing_of_a_delivery_that_a_claim_ended_is_remembered(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow", retry_after_seconds=3600)]
    post = accept(rt, profile)
    drain(rt)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    engine.forget_ended(rt)  # as housekeeping does every hour
    assert rt.engine.announced_at == {}
    assert rt.engine.read_back_at == {}


def test_a_stop_of_a_post_that_waits_for_its_owner_past_its_commit_does_not_wait_for_a_day(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut")]
    network.results["recover"] = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt, clock, within=60)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock, within=3600)
    assert state_of(rt, post) is State.UNCONFIRMED


def test_a_stop_before_a_second_call_that_waits_for_hours_begins_to_look_at_once(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=20 * 3600)]
    post = accept(rt, profile)
    drain(rt, clock, within=700)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock, within=3600)
    assert state_of(rt, post) is State.FAILED, message_of(rt, post)


def test_a_profile_disconnected_while_a_post_waits_for_hours_ends_it_at_once(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow", retry_after_seconds=20 * 3600)]
    post = accept(rt, profile)
    drain(rt)
    rt.write(profiles.disconnect, profile)
    drain(rt, clock, within=3600)
    assert state_of(rt, post) is State.FAILED
