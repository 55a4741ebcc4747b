"""Accounts that need their owner hold their posts until they are connected again (contract section 4)."""

import json
from datetime import timedelta

import pytest

from socialpub.accounts import profiles
from socialpub.core.settings.schema import PublishingSection
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.ops import health
from socialpub.providers.base import Refused
from socialpub.providers.responses import AuthExpired, NoAnswer, Rejected
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import details, drafts, posts
from socialpub.publishing.posts.drafts import Draft
from tests.integration.engine.four_steps import FourSteps, Place
from tests.support.appliance import OWNER, accept, attempts_of, connect_again, message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_value

HOUR = 3600.0
a_week = pytest.mark.parametrize("max_lateness", [timedelta(days=7)], indirect=True)


@pytest.fixture
def network(clock):
    return FourSteps(clock)


@pytest.fixture
def max_lateness(request):
    return getattr(request, "param", timedelta(hours=24))


@pytest.fixture
def appliance_options(network, max_lateness):
    return {"providers": {"x": network}, "publishing": PublishingSection(max_lateness=max_lateness)}


def needs_its_owner(rt, profile):
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "X has ended the grant."))


def test_due_posts_are_held_name_the_remedy_and_are_published_after_the_reconnection(rt, network, profile, clock):
    needs_its_owner(rt, profile)
    now, later = accept(rt, profile), accept(rt, profile, body="Later", at=clock.now() + timedelta(hours=2))
    drain(rt)
    assert (state_of(rt, now), attempts_of(rt, now)) == (State.QUEUED, [("start", "held")])
    (told,) = json.loads(details.load_attempts(rt, rt.db, now))
    assert "X has ended the grant. Press “Reconnect” under Profiles" in told["message"]
    assert "or run `socialpub admin connect-profile x`." in told["message"]
    assert told["nextAt"] == "2026-10-13T09:00:00.000Z", "until then"
    clock.forward(3 * HOUR)
    drain(rt)
    assert network.asked == []
    assert list(health.worker_problems(rt.db, rt.now()))[1:] == [], "what waits for its owner is not overdue"
    connect_again(rt)
    drain(rt, clock)
    assert [state_of(rt, post) for post in (now, later)] == [State.PUBLISHED] * 2


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("ahead", [0, 60])
def test_an_account_that_is_connected_too_late_sends_nothing_also_when_nothing_ran_meanwhile(
    rt, network, profile, clock, paused, ahead
):
    needs_its_owner(rt, profile)
    post = accept(rt, profile, at=clock.now() + timedelta(seconds=ahead) if ahead else None)
    clock.forward(ahead + 1)
    drain(rt)
    if paused:
        rt.write(resume.pause)
    clock.forward(72 * HOUR)  # without `paused`, the worker is down
    connect_again(rt)
    assert resume.load_outlook(rt, rt.db).too_late == 1
    rt.write(resume.resume)
    drain(rt, clock)
    assert (state_of(rt, post), network.asked) == (State.FAILED, [])
    assert "It was not connected within 24 hours of the post's time." in message_of(rt, post)


@pytest.mark.parametrize("place", Place)
def test_a_delivery_with_a_refused_token_continues_at_its_step(rt, network, profile, clock, place):
    network.results[place] = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt)
    assert (state_of(rt, post), attempts_of(rt, post)[-1]) == (State.QUEUED, (place, "held"))
    assert select_value(rt.db, "SELECT status FROM profile") == "reauthRequired"
    clock.forward(5 * HOUR)
    connect_again(rt)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert [network.asked.count(step) for step in Place if step is not place] == [1, 1, 1]
    assert len(network.effects) == 1


@pytest.mark.parametrize("why", [AuthExpired("401"), Refused("A scope is missing.", reauth=True)])
@pytest.mark.parametrize("place", Place)
def test_a_delivery_whose_account_is_not_connected_in_time_ends(rt, network, profile, clock, place, why):
    network.results[place] = [why, why]
    post = accept(rt, profile)
    drain(rt)
    clock.forward(24 * HOUR - 1)
    drain(rt)
    assert state_of(rt, post) is State.QUEUED
    clock.forward(2)
    drain(rt)
    assert "within 24 hours" in message_of(rt, post)
    assert state_of(rt, post) is (State.UNCONFIRMED if place is Place.POLL_AFTER else State.FAILED)


def test_an_account_that_is_refused_while_its_post_is_read_back_is_read_back_once_it_is_connected(
    rt, network, profile, clock
):
    def made_and_cut(job):
        network.publish("Hello")
        network.results["recover"] = [AuthExpired("401"), AuthExpired("401")]
        raise NoAnswer("cut")

    network.results[Place.COMMIT] = [made_and_cut]
    post = accept(rt, profile)
    drain(rt, clock, within=60)
    assert (state_of(rt, post), attempts_of(rt, post)[-1]) == (State.QUEUED, ("read_back", "held"))
    connect_again(rt)
    drain(rt, clock)
    assert (state_of(rt, post), len(network.effects)) == (State.PUBLISHED, 1)


def test_a_refresh_token_that_is_refused_holds_the_post_that_wanted_it(rt, network, profile, clock):
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, access_expires_at=tx.stamp))
    network.auth.answers = [Rejected("the refresh token is spent", status=400, reauth=True)]
    post = accept(rt, profile)
    drain(rt)
    assert (state_of(rt, post), attempts_of(rt, post)) == (State.QUEUED, [(Place.PREPARE, "held")] * 2)
    connect_again(rt)
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED


def test_a_post_that_waits_for_its_owner_can_be_stopped(rt, network, profile):
    needs_its_owner(rt, profile)
    post = accept(rt, profile)
    drain(rt)
    rt.write(lambda _, tx: posts.stop(rt, tx, post))
    assert state_of(rt, post) is State.FAILED


def test_a_profile_that_is_disconnected_instead_fails_its_posts(rt, network, profile):
    needs_its_owner(rt, profile)
    post = accept(rt, profile)
    drain(rt)
    rt.write(profiles.disconnect, profile)
    drain(rt)
    assert state_of(rt, post) is State.FAILED
    assert "was disconnected" in message_of(rt, post)


def test_validation_says_that_it_will_wait(rt, profile):
    needs_its_owner(rt, profile)
    (checked,) = drafts.check_draft(rt, rt.db, Draft("Hello", None, (profile,), (), None), OWNER)
    assert checked.problems == []
    assert checked.notes[0].startswith("The account must be connected again")
    assert "A post that is more than 24 hours late fails" in checked.notes[0]


# --- `max_lateness` is longer than `give_up_after` -------------------------------------------------------------------


@a_week
def test_posts_that_waited_for_their_account_are_published_after_sixty_hours(rt, network, profile, clock):
    network.results[Place.POLL_AFTER] = [AuthExpired("401"), AuthExpired("401")]
    begun = accept(rt, profile, body="Begun")
    drain(rt)
    now, later = accept(rt, profile), accept(rt, profile, body="Later", at=clock.now() + timedelta(hours=1))
    drain(rt, clock, within=60 * HOUR)
    clock.forward(60 * HOUR)
    connect_again(rt)
    drain(rt, clock)
    assert {post: state_of(rt, post) for post in (begun, now, later)} == dict.fromkeys(
        (begun, now, later), State.PUBLISHED
    )


@a_week
def test_the_deadline_counts_from_the_reconnection(rt, network, profile, clock):
    needs_its_owner(rt, profile)
    post = accept(rt, profile)
    drain(rt)
    clock.forward(60 * HOUR)
    connect_again(rt)
    network.results[Place.PREPARE] = [NoAnswer("cut")] * 10_000
    drain(rt, clock, within=47 * HOUR, steps=10_000)
    assert state_of(rt, post) is State.QUEUED
    drain(rt, clock, within=2 * HOUR)
    assert state_of(rt, post) is State.FAILED


@a_week
def test_posts_of_an_account_that_stays_disconnected_end_after_the_week(rt, profile, clock):
    needs_its_owner(rt, profile)
    post = accept(rt, profile)
    drain(rt, clock, within=8 * 24 * HOUR)
    assert "It was not connected within 168 hours of the post's time." in message_of(rt, post)
