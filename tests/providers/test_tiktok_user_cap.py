"""TikTok's limit of posting accounts: accounts beyond the limit wait, and all others continue."""

import json
import logging
from datetime import timedelta

import pytest

from socialpub.accounts import choices
from socialpub.db.states import State
from socialpub.db.tables import waits
from socialpub.publishing.posts import details
from tests.providers.grid import Environment, begin
from tests.providers.networks import story_of
from tests.support.appliance import state_of
from tests.support.drain import drain
from tests.support.sandbox_http import connect_tiktok

HOUR = 3600.0


class TwoAccounts:
    """An app limited to one account a day, and the account `demo`, which posted today."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        env.world.tiktok.audited_user_cap = 1
        self.demo = connect_tiktok(env.rt, env.world)
        self.studio = connect_tiktok(env.rt, env.world, "studio")
        env.world.tiktok.accounts[env.world.tiktok.account_named("studio").open_id].private = False  # type: ignore[union-attr]
        assert self.post(self.demo) is State.PUBLISHED

    def accept(self, profile: str, story: str = "video") -> str:
        return begin(self.env, *story_of("tiktok", story), profile)

    def post(self, profile: str, story: str = "video") -> State:
        post = self.accept(profile, story)
        drain(self.env.rt, self.env.clock, within=HOUR)
        return state_of(self.env.rt, post)


@pytest.fixture
def give_up_after() -> timedelta:
    return timedelta(hours=48)


@pytest.fixture
def accounts(env: Environment) -> TwoAccounts:
    return TwoAccounts(env)


def test_an_account_beyond_the_cap_waits_alone_for_a_day(
    accounts: TwoAccounts, env: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        waiting = [accounts.accept(accounts.studio, story) for story in ("video", "video", "photos")]
        drain(env.rt, env.clock, within=HOUR)
    assert {state_of(env.rt, post) for post in waiting} == {State.QUEUED}
    assert waits.list_holds(env.rt.db) == [], "the app itself is not refused"
    assert accounts.post(accounts.demo) is State.PUBLISHED
    assert [accounts.post(accounts.studio, story) for story in ("draft", "photo draft")] == [State.PUBLISHED] * 2
    told = [record for record in caplog.records if "limit of posting accounts" in record.getMessage()]
    assert len(told) == 1, "reported once, not once for each post"
    shown = [json.loads(details.load_attempts(env.rt, env.rt.db, post))[-1] for post in waiting]
    assert {one["outcome"] for one in shown} == {"waiting"}
    assert {one["nextAt"][:13] for one in shown} == {"2026-10-13T09"}
    assert all("Drafts and other accounts continue" in one["message"] for one in shown)
    drain(env.rt, env.clock)
    assert {state_of(env.rt, post) for post in waiting} == {State.PUBLISHED}, "a day is less than give_up_after"


def test_after_a_cap_at_the_last_call_the_next_post_sends_no_call(accounts: TwoAccounts, env: Environment) -> None:
    env.world.tiktok.audited_user_cap = 0
    env.world.tiktok.next("video_init").refuses("reached_active_user_cap")
    first = accounts.accept(accounts.studio)
    drain(env.rt)
    asked = len(env.transport.called)
    second = accounts.accept(accounts.studio)
    drain(env.rt)
    assert [state_of(env.rt, post) for post in (first, second)] == [State.QUEUED] * 2
    assert len(env.transport.called) == asked


def test_the_wait_ends_when_tiktok_accepts_posts_of_the_account(accounts: TwoAccounts, env: Environment) -> None:
    waiting = accounts.accept(accounts.studio)
    drain(env.rt)
    asked = choices.creator(env.rt, accounts.studio).send()
    assert isinstance(asked, choices.PostingBarred)
    drain(env.rt, env.clock, within=HOUR)
    assert state_of(env.rt, waiting) is State.QUEUED
    env.world.tiktok.audited_user_cap = 0
    choices.creator(env.rt, accounts.studio).send()
    drain(env.rt, env.clock, within=HOUR)
    assert state_of(env.rt, waiting) is State.PUBLISHED


def test_a_post_that_waited_longer_than_a_day_for_the_cap_is_published(accounts: TwoAccounts, env: Environment) -> None:
    accounts.accept(accounts.studio)
    drain(env.rt)
    env.clock.forward(5 * HOUR)
    behind = [accounts.accept(accounts.studio) for _ in range(2)]
    env.world.tiktok.next("creator_info").refuses("reached_active_user_cap")
    drain(env.rt, env.clock, within=20 * HOUR)
    env.clock.forward(8 * HOUR)
    drain(env.rt)
    assert {state_of(env.rt, post) for post in behind} == {State.QUEUED}, "the cap was met again"
    env.world.tiktok.audited_user_cap = 0
    choices.creator(env.rt, accounts.studio).send()
    drain(env.rt, env.clock, within=HOUR)
    assert {state_of(env.rt, post) for post in behind} == {State.PUBLISHED}
