"""A post as TikTok shows it: the video or the photos, and the beginning of the caption over them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.providers import preview
from socialpub.providers.auth import Account
from socialpub.providers.base import Content
from socialpub.providers.preview import Preview, TextMeasure, utf16_units
from socialpub.providers.tiktok import creator, limits
from socialpub.providers.tiktok.options import (
    FIRST_PHOTO,
    INTERACTIONS,
    INTERACTIONS_PLURAL,
    PRIVACY_LEVELS,
    is_draft,
    join_words,
)

_TAG = re.compile(r"(?<![\w@#&/])(?:@[A-Za-z0-9_]++(?:\.[A-Za-z0-9_]++)*+|[#＃](?=[\d_]*+[^\W\d_])\w+)")
CAPTION_START = 90
"""About the two lines that TikTok's app shows before “more” (seen in 2026, not documented)."""
UNIT = "UTF-16 units: a letter 1, an emoji 2 or more"

_SEEN_BY = dict(
    zip(
        PRIVACY_LEVELS,
        (
            "Everyone sees the post.",
            "Only followers whom the account follows back see the post.",
            "Only followers see the post.",
            "Only the account itself sees the post.",
        ),
        strict=True,
    )
)


def preview_post(content: Content, chosen: Mapping[str, Any], account: Account) -> Preview:  # noqa: ARG001
    draft, video = is_draft(chosen), content.has_video
    has_text = bool(content.media) and not (draft and video)
    max_units = limits.VIDEO_CAPTION_UNITS if video else limits.PHOTO_DESCRIPTION_UNITS
    first, rest = preview.split_text(preview.truncate(content.text, max_units) if has_text else "", CAPTION_START)
    return Preview(
        text=preview.split_by_marks(first, preview.mark_tags(_TAG.finditer(first))),
        more=preview.split_by_marks(rest, preview.mark_tags(_TAG.finditer(rest))),
        title=str(chosen.get("title", "")) if content.media and not video else "",
        media=_shown_media(content, chosen),
        labels=() if draft else tuple(_labels(chosen, video=video)),
        remarks=tuple(_remarks(content, chosen)),
        measures=tuple(_measures(content, chosen, max_units)),
    )


def _shown_media(content: Content, chosen: Mapping[str, Any]) -> tuple[int, ...]:
    for item in content.media:
        if item.kind == "video":
            return (item.position,)
    positions = [item.position for item in content.media[: limits.PHOTOS]]
    cover = chosen.get("photoCoverIndex", FIRST_PHOTO)
    return tuple(sorted(positions, key=lambda position: position != cover))


def _measures(content: Content, chosen: Mapping[str, Any], max_units: int) -> Iterator[TextMeasure]:
    video = content.has_video
    if not (video and is_draft(chosen)):
        yield TextMeasure(
            "Description" if content.media and not video else "Caption", utf16_units(content.text), max_units, UNIT
        )
    title = chosen.get("title")
    if isinstance(title, str) and not video:
        yield TextMeasure("Title", utf16_units(title), limits.PHOTO_TITLE_UNITS, UNIT)


def _labels(chosen: Mapping[str, Any], *, video: bool) -> Iterator[str]:
    if label := creator.brand_label(chosen):
        yield label
    if video and chosen.get("isAigc"):
        yield "Creator labeled as AI-generated"


def _remarks(content: Content, chosen: Mapping[str, Any]) -> Iterator[str]:
    if is_draft(chosen):
        yield "The draft goes to the inbox of the TikTok app. It is private until you post it there."
        return
    if seen_by := _SEEN_BY.get(chosen.get("privacyLevel", "")):
        yield seen_by
    interactions = INTERACTIONS if content.has_video else {"comment": INTERACTIONS["comment"]}
    allowed = [INTERACTIONS_PLURAL[name] for name, key in interactions.items() if chosen.get(key) is False]
    if content.media:
        none = join_words((INTERACTIONS_PLURAL[name] for name in interactions), "or")
        yield f"Allowed: {', '.join(allowed)}." if allowed else f"No {none}."
    cover = chosen.get("photoCoverIndex", FIRST_PHOTO)
    if not content.has_video and len(content.media) > 1:
        yield f"Viewers swipe through {min(len(content.media), limits.PHOTOS)} photos. Photo {cover + 1} is the cover."
