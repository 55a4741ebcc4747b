"""What networks are asked while an owner waits: a creator's choices, an account's boards."""

from typing import Any

import pytest

from socialpub.accounts import boards, choices, profiles, queries, tokens
from socialpub.accounts.choices import PostingBarred
from socialpub.accounts.remedies import Surface
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.providers.responses import NoAnswer
from socialpub.providers.tiktok.creator import CreatorInfo
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.sandbox_http import connect_pinterest, connect_tiktok


def ask_creator(rt: Runtime, profile_id: str, surface: Surface = Surface.SHELL) -> CreatorInfo | PostingBarred:
    query = choices.creator(rt, profile_id)
    with queries.explain_failures(rt, query.profile, choices.CREATOR_UNKNOWN, surface):
        return query.send()


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def creator(rt: Runtime, world: World) -> str:
    world.tiktok.add_account("quiet", "Quiet Owner", private=True, comment_disabled=True, max_duration=180)
    return connect_tiktok(rt, world, "quiet")


# --- a creator's choices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("spam_risk_too_many_posts", "Try again tomorrow"),
        ("spam_risk_user_banned_from_posting", "TikTok has banned this account"),
        ("reached_active_user_cap", "limit of posting accounts"),
    ],
)
def test_a_reason_that_bars_posting_is_returned(rt, world, creator, code, said):
    world.tiktok.next("creator_info").refuses(code)
    barred = ask_creator(rt, creator)
    assert isinstance(barred, PostingBarred)
    assert said in barred.message


def test_a_refused_token_is_renewed_for_the_question(rt, world, creator):
    world.tiktok.next("creator_info").unauthorized()
    assert isinstance(ask_creator(rt, creator), CreatorInfo)
    world.tiktok.remove_access("quiet")
    with pytest.raises(OperatorError, match="did not return the posting options of this account") as refused:
        ask_creator(rt, creator, Surface.DASHBOARD)
    assert refused.value.hint == "To give consent again, press “Reconnect” on the profile's page."
    assert profiles.get(rt.db, creator).status == "reauthRequired"


def test_a_grant_without_direct_posts_says_which_permission_is_missing(rt, world):
    profile = connect_tiktok(rt, world, scopes=("user.info.basic", "video.upload"))
    with pytest.raises(OperatorError, match=r"lacks the TikTok permission video\.publish"):
        ask_creator(rt, profile)
    assert profiles.get(rt.db, profile).status == "active", "drafts remain"


def test_a_paused_copy_asks_with_the_token_it_has_and_renews_none(rt, world, creator, clock):
    rt.write(lambda _, tx: appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp))
    assert isinstance(ask_creator(rt, creator), CreatorInfo)
    clock.forward(86400)
    with pytest.raises(OperatorError, match="while publishing is paused") as refused:
        ask_creator(rt, creator, Surface.DASHBOARD)
    assert refused.value.hint == "To continue, press “Resume” under System."
    assert world.tiktok.counts["token"] == 0


# --- what is remembered ----------------------------------------------------------------------------------------------


def test_a_failed_question_is_cached_for_a_minute_unless_the_tokens_change(rt, world, transport):
    profile = connect_pinterest(rt, world)
    world.pinterest.next("list_boards").times_out_before_effect()
    for _ in range(2):
        with pytest.raises(NoAnswer):
            queries.load(rt, boards.of_profile(rt, profile), again=True)
    assert transport.called == ["list_boards"]
    tokens.renew(rt, profile)
    assert queries.load(rt, boards.of_profile(rt, profile))


def test_an_answer_that_needed_new_tokens_is_cached(rt, world, creator):
    world.tiktok.next("creator_info").unauthorized()
    first = queries.load(rt, choices.creator(rt, creator))
    asked = world.tiktok.counts["creator_info"]
    assert queries.load(rt, choices.creator(rt, creator)) == first
    assert (world.tiktok.counts["token"], world.tiktok.counts["creator_info"]) == (1, asked)
