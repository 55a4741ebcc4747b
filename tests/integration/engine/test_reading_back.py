"""Read-backs of an account after a commit of unknown outcome."""

import contextlib
from datetime import timedelta

import pytest

from socialpub.accounts import profiles, tokens, upkeep
from socialpub.core.clock import after
from socialpub.core.errors import Unavailable
from socialpub.db.states import State
from socialpub.db.tables import profile_rows, waits
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.auth import Tokens
from socialpub.providers.base import CannotTell, Published, Readback
from socialpub.providers.responses import NoAnswer, Rejected, Throttled
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.worker import reconciler
from tests.integration.engine.four_steps import LOOKS
from tests.support.appliance import accept, attempts_of, connect_again, message_of, state_of
from tests.support.copies import become_restored
from tests.support.drain import drain
from tests.support.select import select_all, select_value


def test_the_second_reading_back_looks_since_the_first_call(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out"), NoAnswer("timed out")]
    since = []
    recover = network.recover

    def look(job):
        since.append(job.committed_at)
        return recover(job)

    network.recover = look
    accept(rt, profile)
    drain(rt, clock)
    assert len(since) == 2 * LOOKS
    assert len(set(since)) == 1
    assert network.jobs[1].unknown_before


@pytest.mark.parametrize(
    "other", ["See http://example.org", "See example.org", "See https://elsewhere.example/a", "@you See example.org"]
)
def test_posts_that_a_timeline_shows_alike_are_not_read_back_side_by_side(rt, network, profile, other):
    network.results["create_post"] = [NoAnswer("timed out")]
    accept(rt, profile, body="See https://example.org/")
    second = accept(rt, profile, body=other)
    drain(rt)
    assert network.asked == ["create_post"]
    assert state_of(rt, second) is State.QUEUED


def test_a_network_without_a_read_back_leaves_the_outcome_unknown(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [CannotTell("Look at x.com/demo.")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert network.asked.count("create_post") == 1
    assert message_of(rt, post) == "Outcome unknown: timed out. Look at x.com/demo."


def test_a_read_back_never_takes_the_post_of_another_delivery(rt, network, profile, clock):
    first = accept(rt, profile, body="same")
    drain(rt)
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback((Published("1"), Published("2")))]
    second = accept(rt, profile, body="same")
    drain(rt, clock)
    held = [r[0] for r in select_all(rt.db, "SELECT provider_post_id FROM delivery ORDER BY id")]
    assert (state_of(rt, first), state_of(rt, second)) == (State.PUBLISHED, State.PUBLISHED)
    assert held == ["1", "2"]


def test_nothing_of_equal_content_is_sent_while_one_is_being_read_back(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("timed out")]
    network.results["recover"] = [Readback(), Readback((Published("9"),))]
    first, second, other = accept(rt, profile), accept(rt, profile), accept(rt, profile, body="another")
    drain(rt)
    assert [state_of(rt, post) for post in (first, second, other)] == [State.QUEUED, State.QUEUED, State.PUBLISHED]
    drain(rt, clock)
    assert [state_of(rt, post) for post in (first, second)] == [State.PUBLISHED, State.PUBLISHED]
    asked = network.asked
    assert asked.index("create_post", asked.index("recover")) > len(asked) - 1 - asked[::-1].index("recover")


# --- before a second call --------------------------------------------------------------------------------------------


def test_a_rate_limit_of_read_backs_also_delays_the_read_back_before_a_second_call(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    accept(rt, profile)
    drain(rt, clock, within=700)
    assert network.asked.count("create_post") == 2
    looked = network.asked.count("recover")
    rt.db.write(
        lambda tx: waits.begin(
            tx, WaitReason.NETWORK, profile, "read_back", after(tx.stamp, 3600), "429 of another post"
        )
    )
    drain(rt, clock, within=3000)
    assert network.asked.count("recover") == looked, "asked within the hour that the network named"


def test_a_hold_of_questions_also_delays_the_read_back_before_a_second_call(rt, network, profile, clock):
    network.results["create_post"] = [NoAnswer("cut"), Throttled("slow", retry_after_seconds=300)]
    accept(rt, profile)
    drain(rt, clock, within=700)
    looked = network.asked.count("recover")
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.QUESTIONS, "capped", None))
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
    rt.write(reconciler.record_heartbeat)
    connect_again(rt)
    drain(rt)
    assert (state_of(rt, post), clock.now() < at) == (State.QUEUED, True)


def test_a_token_endpoint_that_answers_late_costs_no_account(rt, network, profile, clock, monkeypatch):
    """The first call is answered after 55 seconds, within its deadline; its refresh token works once."""
    monkeypatch.setattr(tokens, "LOCK_PAUSE_SECONDS", 0.0)
    spent = []

    def refresh(http, account, refresh_token):
        if refresh_token in spent:
            raise Rejected("invalid_grant", status=400, reauth=True)
        spent.append(refresh_token)
        for _ in range(6):  # the queue of the account wants the token meanwhile
            with contextlib.suppress(tokens.Locked, Rejected):
                tokens.replace_spent(rt, profile, spent="access-0")
            clock.forward(10)
        return Tokens("access-2", "refresh-2", 7200)

    network.auth.refresh = refresh
    tokens.renew(rt, profile)
    assert select_value(rt.db, "SELECT status FROM profile") == "active"


def test_a_stopped_restored_post_does_not_fail_before_its_read_back(rt, network, profile, clock):
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


# --- stored late -----------------------------------------------------------------------------------------------------


def test_a_read_back_that_was_stored_half_an_hour_later_is_not_fresh(rt, network, profile, clock, monkeypatch):
    made_at = clock.monotonic()

    def made_and_cut(job):
        network.publish(job.content.text)
        raise NoAnswer("cut")

    write = rt.db.write
    full = []

    def disk(fn, *args):
        if full:
            raise Unavailable("The disk is full.")
        return write(fn, *args)

    monkeypatch.setattr(rt.db, "write", disk)

    def look(job):
        age = clock.monotonic() - made_at
        if 600 <= age < 700:
            full.append(True)  # the answer of the look that would allow the second call is not taken
        return Readback((Published("1"),)) if age >= 700 else Readback()

    network.results["create_post"] = [made_and_cut]
    network.results["recover"] = [look] * 100
    post = accept(rt, profile)
    while not full:
        drain(rt)
        clock.forward(1)
    clock.forward(1800)
    full.clear()
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1), message_of(rt, post)


def test_tokens_are_erased_after_an_hour_although_a_process_holds_their_lock(rt, network, profile, clock):
    assert tokens.token_lock(rt, profile).try_acquire()  # a command that was suspended
    rt.write(profiles.disconnect, profile)
    for _ in range(20):
        clock.forward(600)
        upkeep.revoke_disconnected(rt)
    assert select_value(rt.db, "SELECT access_token FROM profile") is None
