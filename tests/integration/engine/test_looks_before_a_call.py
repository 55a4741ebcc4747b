"""The look before a second call is a question like any other."""

import contextlib
from datetime import timedelta

from socialpub.accounts import tokens
from socialpub.core.clock import after
from socialpub.db.states import State
from socialpub.db.tables import holds, profile_rows, waits
from socialpub.providers.oauth import Tokens
from socialpub.providers.responses import NoAnswer, Rejected, Throttled
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.worker import reconciler
from tests.support.appliance import accept, attempts_of, connect_again, state_of
from tests.support.copies import become_restored
from tests.support.drain import drain


def test_a_rate_limit_of_looking_counts_for_the_look_before_a_second_call_too(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    accept(rt, profile)
    drain(rt, clock, within=700)
    assert network.asked.count("create_post") == 2
    looked = network.asked.count("recover")
    rt.db.write(lambda tx: waits.begin_cooldown(tx, profile, "read_back", after(tx.stamp, 3600), "429 of another post"))
    drain(rt, clock, within=3000)
    assert network.asked.count("recover") == looked, "asked within the hour that the network named"


def test_a_hold_of_questions_counts_for_the_look_before_a_second_call_too(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    accept(rt, profile)
    drain(rt, clock, within=700)
    looked = network.asked.count("recover")
    rt.db.write(lambda tx: holds.begin(tx, "x", holds.QUESTIONS, "capped", None))
    clock.forward(301)
    drain(rt)
    assert network.asked.count("recover") == looked, "asked though nothing is asked"


def test_an_account_that_is_connected_again_sends_no_post_before_its_time(rt, network, profile, clock):
    at = clock.now() + timedelta(minutes=10)
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "X has ended the grant."))
    post = accept(rt, profile, at=at)
    clock.forward(660)
    drain(rt)
    assert attempts_of(rt, post) == [("start", "held")]
    clock.jump(-3600)
    rt.write(reconciler.beat)
    connect_again(rt)
    drain(rt)
    assert (state_of(rt, post), clock.now() < at) == (State.QUEUED, True)


def test_a_token_endpoint_that_answers_late_costs_no_account(rt, network, profile, clock, monkeypatch):
    """The first call is answered after 55 seconds, within its deadline; its refresh token works once."""
    monkeypatch.setattr(tokens, "LOCK_PAUSE_SECONDS", 0.0)
    spent = []

    def refresh(http, refresh_token):
        if refresh_token in spent:
            raise Rejected("invalid_grant", status=400, reauth=True)
        spent.append(refresh_token)
        for _ in range(6):  # the lane of the account wants the token meanwhile
            with contextlib.suppress(tokens.Locked, Rejected):
                tokens.replace_spent(rt, profile, spent="access-0")
            clock.forward(10)
        return Tokens("access-2", "refresh-2", 7200)

    network.oauth.refresh = refresh
    tokens.renew(rt, profile)
    assert rt.reader.value("SELECT status FROM profile") == "active"


def test_a_stopped_scheduled_copy_is_not_called_failed_before_it_was_looked_for(rt, network, profile, clock):
    """A restored copy's post, whose look could not be made yet, is stopped: the original may have sent it."""
    post = accept(rt, profile, at=clock.now() + timedelta(hours=2))
    become_restored(rt)
    clock.forward(60)
    rt.write(resume.resume)
    clock.forward(7200)
    network.results["recover"] = [NoAnswer("down")] * 3
    drain(rt)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    assert state_of(rt, post) is not State.FAILED
