"""The shape of `POST /pins`: one image, two to five, or one video with a cover."""

from collections.abc import Iterator
from typing import Any

from socialpub.sandbox.pinterest.schema import (
    PinterestSchemaRule,
    array_of,
    at_least_zero,
    base64_text,
    boolean,
    digits,
    link,
    object_of,
    one_of,
    text,
)  # fmt: skip

DISCLOSURES = ("AI_MODIFIED", "SYNTHETIC_PERFORMER")
"""Since 5.28."""
content_type = one_of("image/jpeg", "image/png")
ITEM_TEXTS: dict[str, PinterestSchemaRule] = {"title": text(0, 100), "description": text(0, 800), "link": link}

SOURCES: dict[str, PinterestSchemaRule] = {
    "image_url": object_of(
        {"source_type": text(1, 40), "url": link, "is_standard": boolean}, required=("source_type", "url")
    ),
    "image_base64": object_of(
        {"source_type": text(1, 40), "content_type": content_type, "data": base64_text, "is_standard": boolean},
        required=("source_type", "content_type", "data"),
    ),
    "multiple_image_urls": object_of(
        {
            "source_type": text(1, 40),
            "items": array_of(object_of({"url": link, **ITEM_TEXTS}, required=("url",)), 2, 5),
            "index": at_least_zero,
        },
        required=("source_type", "items"),
    ),
    "multiple_image_base64": object_of(
        {
            "source_type": text(1, 40),
            "items": array_of(
                object_of(
                    {"content_type": content_type, "data": base64_text, **ITEM_TEXTS},
                    required=("content_type", "data"),
                ),
                2,
                5,
            ),
            "index": at_least_zero,
        },
        required=("source_type", "items"),
    ),
    "video_id": object_of(
        {
            "source_type": text(1, 40),
            "media_id": digits,
            "cover_image_url": link,
            "cover_image_content_type": content_type,
            "cover_image_data": base64_text,
            "cover_image_key_frame_time": at_least_zero,
            "is_standard": boolean,
        },
        required=("source_type", "media_id"),
    ),
}


def media_source(name: str, value: Any) -> Iterator[str]:
    kind = value.get("source_type") if isinstance(value, dict) else None
    rule = SOURCES.get(kind) if isinstance(kind, str) else None
    if rule is None:
        yield f"'{name}.source_type' is not one of {list(SOURCES)}"
        return
    yield from rule(name, value)


CREATE = object_of(
    {
        "board_id": digits,
        "board_section_id": digits,
        "title": text(0, 100),
        "description": text(0, 800),
        "alt_text": text(0, 500),
        "link": link,
        "dominant_color": text(0, 30),
        "parent_pin_id": digits,
        "ai_disclosures": object_of({"values": array_of(one_of(*DISCLOSURES), 1, 2)}, required=("values",)),
        "media_source": media_source,
    },
    required=("board_id", "media_source"),
    nullable=("board_section_id", "title", "description", "alt_text", "link", "dominant_color", "parent_pin_id"),
)


def covers(source: dict[str, Any]) -> list[str]:
    """The covers that a video brings along; the two that make one count once."""
    ways: list[str] = [name for name in ("cover_image_url", "cover_image_key_frame_time") if name in source]
    if "cover_image_content_type" in source and "cover_image_data" in source:
        ways.append("cover_image_data")
    return ways


def urls(body: Any) -> list[str]:
    """What would have to be fetched for this pin."""
    source = body.get("media_source") if isinstance(body, dict) else None
    if not isinstance(source, dict):
        return []
    items = source.get("items") if source.get("source_type") == "multiple_image_urls" else None
    found = [item.get("url") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    if source.get("source_type") == "image_url":
        found.append(source.get("url"))
    elif source.get("source_type") == "video_id":
        found.append(source.get("cover_image_url"))
    return [url for url in found if isinstance(url, str) and url.startswith(("http://", "https://"))]
