"""The options of contract section 6, in both spellings and in X's own."""

from typing import Any

import pytest

from tests.unit.providers.x.script import ADAPTER

ALL = {
    "replySettings": "mentionedUsers",
    "madeWithAi": True,
    "paidPartnership": False,
    "inReplyToPostId": "1900000000000000001",
    "quotePostId": "2",
    "communityId": "3",
    "shareWithFollowers": True,
}


def test_every_key_is_accepted_in_camel_case_and_in_xs_own_spelling() -> None:
    assert ADAPTER.read_options(ALL) == (ALL, [])
    own = {
        "reply_settings": "mentionedUsers",
        "made_with_ai": True,
        "paid_partnership": False,
        "in_reply_to_tweet_id": "1900000000000000001",
        "quote_tweet_id": "2",
        "community_id": "3",
        "share_with_followers": True,
    }
    assert ADAPTER.read_options(own) == (ALL, [])


@pytest.mark.parametrize("value", ["everyone", "following", "mentionedUsers", "subscribers", "verified"])
def test_reply_settings_take_the_five_values(value: str) -> None:
    assert ADAPTER.read_options({"replySettings": value}) == ({"replySettings": value}, [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"replySetting": "following"}, "replySettings"),
        ({"madeWithAI": True}, "madeWithAi"),
        ({"replySettings": "followers"}, "following"),
        ({"madeWithAi": "true"}, "true or false"),
        ({"madeWithAi": 1}, "true or false"),
        ({"quotePostId": 5}, "digits"),
        ({"quotePostId": "https://x.com/a/status/5"}, "end of the post's address"),
        ({"inReplyToPostId": "1" * 20}, "19 digits"),
    ],
)
def test_a_wrong_option_is_a_problem_that_says_what_is_right(given: dict[str, Any], said: str) -> None:
    options, (problem,) = ADAPTER.read_options(given)
    assert options == {}
    assert problem.path == ("providerOptions", "x", next(iter(given)))
    assert said in problem.message
