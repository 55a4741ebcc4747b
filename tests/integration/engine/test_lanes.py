"""Deliveries of equal content, and lanes."""

from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.db.tables import holds
from socialpub.providers.base import Readback, Refused
from socialpub.providers.responses import NoAnswer, Throttled
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain


def test_many_unknowns_of_equal_content_are_all_resolved(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut")] * 12
    made = [accept(rt, profile) for _ in range(4)]
    drain(rt, clock, steps=20_000)
    assert all(state_of(rt, post).final for post in made), [state_of(rt, post) for post in made]


def test_a_check_that_cannot_be_made_just_now_fails_no_post(rt, network, profile, clock):
    def busy(content, options, account):
        network.check = lambda *_: []
        raise Unavailable("The checker is busy.")

    network.check = busy
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_a_second_call_that_is_refused_says_nothing_about_a_hold(rt, network, profile, clock):
    """A file that is gone is found out before any call: it does not show that the network takes the app again."""
    network.results["create_post"] = [Refused("A media file is missing.")]
    rt.db.write(lambda tx: holds.begin(tx, "x", holds.PUBLISHING, "no credits", None))
    post = accept(rt, profile)
    clock.forward(901)
    drain(rt)
    assert state_of(rt, post) is State.FAILED
    assert holds.is_held(rt.reader, "x")


def test_the_second_look_of_a_stop_in_the_last_look_is_made(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    post = accept(rt, profile)
    drain(rt, clock, within=700)

    def stopped(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return Readback()

    network.results["recover"] = [stopped]
    drain(rt, clock)
    assert (state_of(rt, post), network.asked.count("create_post")) == (State.FAILED, 2)


def test_a_hold_is_probed_though_every_probe_must_look_first(rt, network, profile, clock):
    from socialpub.providers.responses import AppRefused

    network.results["create_post"] = [NoAnswer("cut"), *[AppRefused("no credits")] * 5]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert holds.list_all(rt.reader) == []
