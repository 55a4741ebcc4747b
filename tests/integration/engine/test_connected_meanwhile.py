"""Accounts that are connected again while a call is on its way."""

from socialpub.accounts import profiles
from socialpub.db.states import State
from socialpub.providers.base import Refused
from socialpub.providers.responses import AuthExpired
from socialpub.publishing.posts import posts
from tests.support.appliance import accept, connect_again, message_of, state_of
from tests.support.drain import drain


def test_an_account_that_is_connected_while_its_old_token_is_refused_stays_connected(rt, network, profile, clock):
    def meanwhile(job):
        connect_again(rt)
        raise AuthExpired("401")

    network.results["create_post"] = [AuthExpired("401"), meanwhile]
    post = accept(rt, profile)
    drain(rt, clock, within=3600)
    assert rt.reader.value("SELECT status FROM profile") == "active"
    assert state_of(rt, post) is State.PUBLISHED


def test_a_profile_that_is_disconnected_while_its_token_is_refused_ends_its_post_at_once(rt, network, profile, clock):
    def meanwhile(job):
        rt.write(profiles.disconnect, profile)
        raise AuthExpired("401")

    network.results["create_post"] = [AuthExpired("401"), meanwhile]
    post = accept(rt, profile)
    drain(rt, clock, within=60)
    assert "The profile was disconnected." in message_of(rt, post)


def test_a_post_that_is_stopped_while_a_missing_scope_is_found_ends_at_once(rt, network, profile, clock):
    def meanwhile(job):
        rt.write(lambda _, tx: posts.stop(rt, tx, post))
        return Refused("A scope is missing.", reauth=True)

    network.results["create_post"] = [meanwhile]
    post = accept(rt, profile)
    drain(rt, clock, within=3600)
    assert state_of(rt, post) is State.FAILED
