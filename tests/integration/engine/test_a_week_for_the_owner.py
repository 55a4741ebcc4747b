"""Posts may wait for their account for a week: `max_lateness` is longer than `give_up_after`."""

from datetime import timedelta

import pytest

from socialpub.core.settings.schema import PublishingSection
from socialpub.db.states import State
from socialpub.providers.responses import AuthExpired, NoAnswer
from tests.integration.engine.four_steps import FourSteps, Place
from tests.integration.engine.test_waiting_for_the_owner import HOUR, needs_its_owner
from tests.support.appliance import accept, connect_again, message_of, state_of
from tests.support.drain import drain


@pytest.fixture
def network(clock):
    return FourSteps(clock)


@pytest.fixture
def appliance_options(network):
    return {"providers": {"x": network}, "publishing": PublishingSection(max_lateness=timedelta(days=7))}


def test_everything_that_waited_for_its_account_goes_out_after_sixty_hours(rt, network, profile, clock):
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


def test_an_account_that_nobody_connects_ends_its_posts_after_the_week_and_says_so(rt, profile, clock):
    needs_its_owner(rt, profile)
    post = accept(rt, profile)
    drain(rt, clock, within=8 * 24 * HOUR)
    assert "It was not connected within 168 hours of the post's time." in message_of(rt, post)
