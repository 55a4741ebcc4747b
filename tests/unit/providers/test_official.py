"""The comparisons with the official documents find wrong requests."""

from typing import Any

import pytest

from tests.support.provider_documents import document
from tests.unit.providers.pinterest import official as pinterest
from tests.unit.providers.x import official as x

PICTURE = {"source_type": "image_base64", "content_type": "image/jpeg", "data": "/9j/4AAQ"}


@pytest.fixture(autouse=True)
def documents() -> None:
    for name in (*x.GENERATIONS, "pinterest.yaml"):
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
def test_a_wrong_request_to_x_is_found(method: str, path: str, params: dict[str, str], body: Any) -> None:
    assert x.complaints(method, path, params, body, None)


@pytest.mark.parametrize(
    ("method", "path", "request_"),
    [
        ("POST", "/pins", {"json": {"board_id": "Summer prints", "media_source": PICTURE}}),
        ("POST", "/pins", {"json": {"board_id": "1", "media_source": PICTURE, "note": "x"}}),
        ("POST", "/pins", {"json": {"board_id": "1", "ai_disclosures": ["AI_MODIFIED"], "media_source": PICTURE}}),
        ("POST", "/pins", {"json": {"board_id": "1", "ai_disclosures": {"values": []}, "media_source": PICTURE}}),
        ("POST", "/pins", {"json": {"board_id": "1", "title": "x" * 101, "media_source": PICTURE}}),
        ("POST", "/pins", {"json": {"media_source": {**PICTURE, "content_type": "image/webp"}}}),
        ("POST", "/pins", {"json": {"media_source": {**PICTURE, "data": "data:image/jpeg;base64,AA"}}}),
        ("POST", "/pins", {"json": {"media_source": {"source_type": "multiple_image_base64", "items": []}}}),
        ("POST", "/pins", {"json": {"media_source": {"source_type": "video_id", "media_id": 3}}}),
        ("POST", "/media", {"json": {"media_type": "image"}}),
        ("GET", "/boards", {"params": {"page_size": "251"}}),
        ("GET", "/boards", {"params": {"colour": "red"}}),
        ("GET", "/boards/1/notes", {}),
        ("POST", "/oauth/token", {"form": {"grant_type": "authorization_code", "code": "c"}}),
    ],
)
def test_a_wrong_request_to_pinterest_is_found(method: str, path: str, request_: dict[str, Any]) -> None:
    assert pinterest.complaints(method, path, request_)


def test_a_correct_request_has_no_complaints() -> None:
    assert x.complaints("POST", "/2/tweets", {}, {"text": "a", "made_with_ai": True}, None) == []
    for params in (
        {"post.fields": "note_post"},
        {"post.fields": "text", "expansions": "referenced_posts"},
        {"tweet.fields": "note_tweet,referenced_tweets"},
    ):
        assert x.complaints("GET", "/2/users/1/tweets", params, None, None) == []
    pin = {"board_id": "1", "ai_disclosures": {"values": ["AI_MODIFIED"]}, "media_source": PICTURE}
    assert pinterest.complaints("POST", "/pins", {"json": pin}) == []
    assert pinterest.complaints("GET", "/boards/1/pins", {"params": {"page_size": "250", "bookmark": "b"}}) == []
