"""Stops, changes, disconnections and reconnections during a step or a wait: the last order is obeyed."""

from datetime import timedelta

import pytest

from socialpub.accounts import profiles
from socialpub.core.errors import FieldError
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.providers.auth import Tokens
from socialpub.providers.base import Kind, Published, Refused
from socialpub.providers.responses import AppRefused, AuthExpired, HttpResponse, NoAnswer, Throttled
from socialpub.publishing.delivery import claim, engine, read_back
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from tests.support.appliance import OWNER, accept, connect_again, message_of, state_of
from tests.support.drain import drain
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value

VIDEO = (("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
VIDEO_ONCE = [name for name, _ in VIDEO]


@pytest.mark.parametrize("answer", [AppRefused("out of credits"), Throttled("slow", retry_after_seconds=60)])
def test_a_post_stopped_while_its_refused_call_was_on_the_wire_is_never_sent(rt, network, profile, clock, answer):
    post = accept(rt, profile)
    run = network.run

    def stopped_meanwhile(step, job):
        network.run = run
        rt.write(posts.stop, post)
        raise answer

    network.run = stopped_meanwhile
    drain(rt)
    assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)
    drain(rt, clock)
    assert network.effects == []


class Wire:
    """Notes what is sent, and answers."""

    def __init__(self):
        self.sent = []

    def call(self, method, url, *, check_allowed, **_):
        check_allowed()
        self.sent.append(url)
        return HttpResponse(201)

    def for_network(self, _network):
        return self

    def close(self):
        pass


@pytest.mark.parametrize("order", ["stop", "disconnect"])
def test_a_stop_while_the_commit_waits_for_its_token_is_obeyed(rt, network, profile, order):
    wire = Wire()
    rt.opened_http = wire
    post = accept(rt, profile)
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, access_expires_at=tx.stamp))

    def refresh(http, account, refresh_token):
        if order == "stop":
            rt.write(posts.stop, post)
        else:
            rt.write(profiles.disconnect, profile)
        return Tokens("access-1", "refresh-1", 7200)

    def create(step, job):
        job.call("POST", "https://x.example/create")
        return Published("1")

    network.auth.refresh = refresh
    network.run = create
    drain(rt)
    assert wire.sent == []
    assert state_of(rt, post) is State.FAILED
    assert (message_of(rt, post) == read_back.STOPPED) == (order == "stop")


def test_an_unanswered_refresh_is_not_repeated_for_a_disconnected_profile(rt, network, profile):
    asked = []

    def refresh(http, account, refresh_token):
        asked.append(refresh_token)
        rt.write(profiles.disconnect, profile)
        raise NoAnswer("timed out")

    network.auth.refresh = refresh
    network.results["create_post"] = [AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt)
    assert asked == ["refresh-0"]
    assert state_of(rt, post) is State.FAILED


def test_a_stopping_worker_begins_no_further_step(rt, network, profile):
    network.steps = ScriptedNetwork(*VIDEO).steps
    run = network.run

    def told_to_stop(step, job):
        rt.stopping.set()
        return run(step, job)

    network.run = told_to_stop
    post = accept(rt, profile)
    drain_once(rt)
    assert (network.asked, state_of(rt, post)) == (["upload"], State.QUEUED)
    assert select_value(rt.db, "SELECT committed_at FROM delivery") is None
    rt.stopping.clear()
    network.run = run
    drain(rt)
    assert (network.asked, state_of(rt, post)) == (VIDEO_ONCE, State.PUBLISHED)


def test_a_plan_of_outdated_content_is_not_used(rt, network, profile, clock):
    """The change was accepted in the last millisecond before the time, and reaches the disk after the plan was made."""
    post = accept(rt, profile, at=clock.now() + timedelta(seconds=10), options={"x": {"replySettings": "everyone"}})
    delivery = select_value(rt.db, "SELECT id FROM delivery")
    clock.forward(11)
    candidate = engine.find_next_due(rt, profile)
    assert candidate is not None
    preflight = claim.prepare(rt, candidate, profiles.get(rt.db, profile))
    clock.jump(-2)
    rt.write(posts.edit, post, Draft.change(options={"x": {"replySetings": "wrong"}}), OWNER)
    clock.jump(2)
    assert rt.write(claim.claim, delivery, preflight, profiles.get(rt.db, profile)) is None
    network.problems = [FieldError(("providerOptions", "x", "replySetings"), "Unknown key.")]
    drain(rt)
    assert (network.asked, state_of(rt, post)) == ([], State.FAILED)


def test_a_post_that_cannot_be_examined_fails_without_blocking_the_queue(rt, network, profile, monkeypatch):
    check = network.check

    def breaks(content, *rest):
        if content.text == "strange":
            raise RecursionError
        return check(content, *rest)

    monkeypatch.setattr(network, "check", breaks)
    strange, plain = accept(rt, profile, body="strange"), accept(rt, profile, body="plain")
    drain(rt)
    assert (state_of(rt, strange), state_of(rt, plain)) == (State.FAILED, State.PUBLISHED)
    assert "log" in message_of(rt, strange)


def drain_once(rt):
    for _, profile_id in engine.list_due_queues(rt):
        engine.work(rt, profile_id)


# --- during a wait ---------------------------------------------------------------------------------------------------


def test_a_stop_of_a_post_that_waits_for_its_owner_past_its_commit_does_not_wait_for_a_day(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut")]
    network.results["recover"] = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt, clock, within=60)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    drain(rt, clock, within=3600)
    assert state_of(rt, post) is State.UNCONFIRMED


def test_a_stop_before_a_delayed_second_call_reads_back_at_once(rt, network, profile, clock):
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


# --- accounts that are connected again during a call -----------------------------------------------------------------


def test_an_account_that_is_connected_while_its_old_token_is_refused_stays_connected(rt, network, profile, clock):
    def meanwhile(job):
        connect_again(rt)
        raise AuthExpired("401")

    network.results["create_post"] = [AuthExpired("401"), meanwhile]
    post = accept(rt, profile)
    drain(rt, clock, within=3600)
    assert select_value(rt.db, "SELECT status FROM profile") == "active"
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
