"""The measure that every written conversation with X is held against is itself able to find fault."""

from typing import Any

import pytest

from tests.support.provider_documents import document
from tests.unit.providers.x import official


@pytest.fixture(autouse=True)
def documents() -> None:
    for name in official.GENERATIONS:
        document("openapi", name)


@pytest.mark.parametrize(
    ("method", "path", "params", "body"),
    [
        ("POST", "/2/tweets", {}, {"text": "a", "colour": "red"}),
        ("POST", "/2/tweets", {}, {"text": "a", "reply_settings": "everyone"}),
        ("POST", "/2/tweets", {}, {"text": "a", "media": {"media_ids": []}}),
        ("POST", "/2/media/upload/initialize", {}, {"media_type": "video/avi"}),
        ("GET", "/2/users/1/tweets", {"tweet.fields": "created_at,note_post"}, None),
        ("GET", "/2/users/1/tweets", {"tweet.fields": "text", "post.fields": "text"}, None),
        ("GET", "/2/users/1/tweets", {"post.fields": "referenced_posts"}, None),
        ("GET", "/2/users/1/tweets", {"tweet.fields": "text", "expansions": "referenced_posts"}, None),
        ("GET", "/2/users/1/tweets", {"post.fields": "text", "expansions": "referenced_tweets.id"}, None),
        ("GET", "/2/media/upload/1", {}, None),
    ],
)
def test_a_wrong_request_is_found(method: str, path: str, params: dict[str, str], body: Any) -> None:
    assert official.complaints(method, path, params, body, None)


def test_a_right_one_is_not() -> None:
    assert official.complaints("POST", "/2/tweets", {}, {"text": "a", "made_with_ai": True}, None) == []
    for params in (
        {"post.fields": "note_post"},
        {"post.fields": "text", "expansions": "referenced_posts"},
        {"tweet.fields": "note_tweet,referenced_tweets"},
    ):
        assert official.complaints("GET", "/2/users/1/tweets", params, None, None) == []
