"""The measure that every written conversation with Pinterest is held against is itself able to find fault."""

from typing import Any

import pytest

from tests.support.provider_documents import document
from tests.unit.providers.pinterest import official

PICTURE = {"source_type": "image_base64", "content_type": "image/jpeg", "data": "/9j/4AAQ"}


@pytest.fixture(autouse=True)
def documents() -> None:
    document("openapi", "pinterest.yaml")


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
def test_a_wrong_request_is_found(method: str, path: str, request_: dict[str, Any]) -> None:
    assert official.complaints(method, path, request_)


def test_a_right_one_is_not() -> None:
    pin = {"board_id": "1", "ai_disclosures": {"values": ["AI_MODIFIED"]}, "media_source": PICTURE}
    assert official.complaints("POST", "/pins", {"json": pin}) == []
    assert official.complaints("GET", "/boards/1/pins", {"params": {"page_size": "250", "bookmark": "b"}}) == []
