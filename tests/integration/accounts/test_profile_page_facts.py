"""The facts on a profile's page: tokens, waiting posts, and the cost of a disconnection."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import profiles, tokens, upkeep
from socialpub.accounts.hints import Surface
from socialpub.core import clock as clocks
from socialpub.db.queries.profile_queue import count_queued_by_profile
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.publishing import profile_queue
from socialpub.publishing.profile_queue import ProfileQueue, QueuePlace
from tests.support.appliance import accept, add_profile, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import connect_tiktok, connect_x

DAY = 86400.0


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


def waits(queue: ProfileQueue) -> list[tuple[str | None, QueuePlace]]:
    return [(one.body, one.reason) for one in queue.next]


def test_a_profile_shows_its_waiting_posts_and_the_next_ones(rt, world, clock):
    profile, other = connect_x(rt, world), connect_x(rt, world, "other")
    assert profile_queue.summarize(rt, profile) == ProfileQueue(0, 0, 0, 0, ())
    accept(rt, profile, body="Now")
    for days in range(7, 0, -1):
        accept(rt, profile, body=f"In {days} days", at=clock.now() + timedelta(days=days))
    accept(rt, other, body="Elsewhere")
    queue = profile_queue.summarize(rt, profile)
    assert (queue.waiting, queue.scheduled, queue.held, queue.lost_by_disconnecting) == (8, 7, 0, 8)
    assert waits(queue)[:2] == [("Now", QueuePlace.PENDING), ("In 1 days", QueuePlace.SCHEDULED)]
    assert len(queue.next) == profile_queue.MAX_SHOWN
    assert dict(count_queued_by_profile(rt.db)) == {profile: 8, other: 1}
    drain(rt)
    assert waits(profile_queue.summarize(rt, profile))[0] == ("In 1 days", QueuePlace.SCHEDULED)


def test_posts_of_a_refused_account_wait_for_a_reconnection(rt, world, clock):
    profile = connect_x(rt, world)
    accept(rt, profile, body="Now")
    accept(rt, profile, body="Later", at=clock.now() + timedelta(hours=2))
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "X has ended the grant."))
    drain(rt)
    queue = profile_queue.summarize(rt, profile)
    assert (queue.waiting, queue.held, queue.scheduled) == (2, 1, 1)
    assert sorted(waits(queue)) == [("Later", QueuePlace.SCHEDULED), ("Now", QueuePlace.HELD)]


def test_a_disconnection_does_not_fail_posts_that_may_be_public(rt, world):
    profile = connect_x(rt, world)
    world.x.next("create_post").times_out_after_effect()
    post = accept(rt, profile, body="Perhaps")
    drain(rt)
    queue = profile_queue.summarize(rt, profile)
    assert (queue.waiting, queue.committed, queue.lost_by_disconnecting) == (1, 1, 0)
    rt.write(profiles.disconnect, profile)
    drain(rt)
    assert state_of(rt, post) is not State.FAILED


def test_expiring_tokens_are_reported_with_a_remedy(rt, world, clock):
    profile = connect_tiktok(rt, world, scopes=("user.info.basic", "video.publish"))
    tokens.renew(rt, profile)
    row = profiles.get(rt.db, profile)
    assert row.renewable
    assert row.issued_at == rt.stamp()
    assert row.access_expires_at == clocks.after(rt.stamp(), DAY)
    assert upkeep.describe_warning(row, rt.now(), Surface.DASHBOARD) is None
    missing = rt.providers["tiktok"].auth.missing_scopes(profiles.get(rt.db, profile).scopes)
    assert tuple(missing) == ('video.upload was not granted, so drafts (mode "draft") are not possible.',)
    clock.forward(359 * DAY)
    warning = upkeep.describe_warning(profiles.get(rt.db, profile), rt.now(), Surface.DASHBOARD) or ""
    assert warning.startswith("The refresh token expires on 2027-10-")
    assert warning.endswith("To connect the account again, press “Reconnect” on the profile's page.")


def test_unrenewable_and_refused_tokens_are_reported_with_a_remedy(rt, world):
    bare = add_profile(rt, "x", tokens=("access-0", None), expires_at=clocks.after(rt.stamp(), 2 * DAY))
    row = profiles.get(rt.db, bare)
    assert not row.renewable
    warning = upkeep.describe_warning(row, rt.now(), Surface.DASHBOARD) or ""
    assert "The profile does not have a refresh token. The access token expires on" in warning
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, bare, "X has ended the grant."))
    row = profiles.get(rt.db, bare)
    assert upkeep.describe_warning(row, rt.now(), Surface.DASHBOARD) == (
        "X has ended the grant. Press “Reconnect” on the profile's page."
    )
