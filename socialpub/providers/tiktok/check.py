"""Checks a post against TikTok's rules before anything is sent. Pure.

The step `creator_info` checks what only TikTok knows: the privacy levels and the longest video of a creator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from socialpub.core import units
from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile, codec_name
from socialpub.providers.preview import utf16_units
from socialpub.providers.tiktok import client, limits
from socialpub.providers.tiktok.options import (
    DIRECT,
    DRAFT,
    INTERACTIONS,
    INTERACTIONS_PLURAL,
    contradictions,
    is_draft,
    join_words,
    loses_caption,
)

VIDEO_ONLY = ("disableDuet", "disableStitch", "videoCoverTimestampMs", "isAigc")
PHOTOS_ONLY = ("title", "photoCoverIndex", "autoAddMusic")
KEPT_IN_PHOTO_DRAFTS = ("mode", "title", "photoCoverIndex")


def list_problems(
    content: Content, chosen: Mapping[str, Any], account: Account, section: TikTokSection
) -> list[FieldError]:
    return [
        *contradictions(chosen),
        *_scope(chosen, account, section.scopes),
        *_media(content.media),
        *_served_photos(content, section),
        *_text(content, chosen),
        *_cover(content.media, chosen),
    ]


def list_notes(content: Content, chosen: Mapping[str, Any], account: Account | None = None) -> list[str]:  # noqa: ARG001
    notes = []
    video, draft = content.has_video, is_draft(chosen)
    if draft:
        notes.append("A draft is not public. Finish the draft in the inbox of TikTok's app.")
    if loses_caption(chosen, has_video=video) and content.text:
        notes.append(
            "TikTok does not accept a caption with a video draft. Paste the caption when you finish the post in "
            "TikTok's app."
        )
    notes.extend(_left_off(content, chosen))
    idle = [key for key in chosen if not _counts(key, video=video, draft=draft)]
    if idle and content.media:
        kind = f"{'video' if video else 'photo'} {'draft' if draft else 'post'}"
        which = "this option" if len(idle) == 1 else "these options"
        notes.append(f"TikTok does not accept {', '.join(idle)} for a {kind}. socialpub does not send {which}.")
    at = chosen.get("videoCoverTimestampMs")
    if at is not None and any(at > 1000 * item.facts.get("duration_seconds", at) for item in content.media):
        notes.append("videoCoverTimestampMs is beyond the end of the video. TikTok uses the first frame.")
    notes.extend(
        f"Media item {item.position + 1}: TikTok accepts only still images. Only the first frame is posted."
        for item in content.media
        if item.animated
    )
    if any(item.alt for item in content.media):
        notes.append("TikTok does not accept alt text. socialpub leaves the alt text out.")
    return notes


def _left_off(content: Content, chosen: Mapping[str, Any]) -> list[str]:
    if is_draft(chosen) or not content.media:
        return []
    interactions = INTERACTIONS if content.has_video else {"comment": INTERACTIONS["comment"]}
    off = {INTERACTIONS_PLURAL[name]: option for name, option in interactions.items() if option not in chosen}
    what = join_words(off, "and")
    keys = join_words(off.values(), "and")
    return [f"{what.capitalize()} are off by default. To allow {what}, set {keys} to false."] if off else []


def _counts(key: str, *, video: bool, draft: bool) -> bool:
    if video:
        return key == "mode" if draft else key not in PHOTOS_ONLY
    return key in KEPT_IN_PHOTO_DRAFTS if draft else key not in VIDEO_ONLY


def _scope(chosen: Mapping[str, Any], account: Account, asked: Sequence[str]) -> list[FieldError]:
    scope = limits.SCOPE_DRAFT if is_draft(chosen) else limits.SCOPE_DIRECT
    if not account.scopes or scope in account.scopes:
        return []
    mode = DRAFT if is_draft(chosen) else DIRECT
    message = f'Mode "{mode}" needs the TikTok permission {scope}, which was not granted.'
    return [FieldError(("profiles",), f"{message} {client.how_to_grant(scope, asked)}")]


def _media(media: Sequence[MediaFile]) -> list[FieldError]:
    videos = [item for item in media if item.kind == "video"]
    if not media:
        return [FieldError(("media",), f"TikTok needs media: one video or 1 to {limits.PHOTOS} photos.")]
    if videos and len(media) > limits.VIDEOS:
        message = (
            f"TikTok accepts one video without other media, or up to {limits.PHOTOS} photos. This post has a video "
            f"among {len(media)} media items."
        )
        return [FieldError(("media",), message)]
    if len(media) > limits.PHOTOS:
        return [FieldError(("media",), f"TikTok accepts at most {limits.PHOTOS} photos. This post has {len(media)}.")]
    return [FieldError(("media", video.position), fault) for video in videos for fault in _video(video)]


def _video(video: MediaFile) -> Iterator[str]:
    facts = video.facts
    if video.mime_type not in limits.VIDEO_TYPES:
        yield f"TikTok accepts {', '.join(limits.VIDEO_TYPES)}, not {video.mime_type}. Convert the video."
    codec = facts.get("video_codec")
    if codec is not None and codec not in limits.VIDEO_CODECS:
        taken = ", ".join(codec_name(accepted_codec) for accepted_codec in limits.VIDEO_CODECS)
        yield f"TikTok accepts videos in {taken}, not in {codec_name(codec)}. Convert the video."
    if video.size_bytes > limits.VIDEO_BYTES:
        most, size = units.size(limits.VIDEO_BYTES), units.size(video.size_bytes)
        yield f"TikTok accepts videos of at most {most}. This video has {size}."
    seconds = facts.get("duration_seconds")
    if seconds is not None and seconds > limits.VIDEO_MAX_SECONDS:
        yield (
            f"TikTok accepts videos of at most {limits.VIDEO_MAX_SECONDS} seconds. This video lasts {seconds:.1f} "
            "seconds."
        )
    slowest, fastest = limits.VIDEO_FRAME_RATES
    rate = facts.get("frame_rate")
    if rate is not None and not slowest - limits.FRAME_RATE_SLACK <= rate <= fastest + limits.FRAME_RATE_SLACK:
        yield f"TikTok accepts {slowest:g} to {fastest:g} frames per second. This video has {rate:g}."
    shortest, longest = limits.VIDEO_SIDES
    width, height = facts.get("width"), facts.get("height")
    if width and height and not shortest <= min(width, height) <= max(width, height) <= longest:
        yield (
            f"TikTok accepts videos with {shortest} to {longest} pixels on each side. This video has {width}×{height} "
            "pixels."
        )


def _served_photos(content: Content, section: TikTokSection) -> list[FieldError]:
    if not content.media or content.has_video or content.served_from is None:
        return []
    message = unreachable(content.served_from, section)
    return [] if message is None else [FieldError(("media",), message)]


def unreachable(address: str, section: TikTokSection) -> str | None:
    """Return why TikTok cannot fetch a photo from base_url, or None if TikTok can.

    TikTok fetches only by https and only from host names. A simulated TikTok may fetch from anywhere.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    named = "." in host and not host.replace(".", "").isdigit() and ":" not in host
    if section.api_url != section.OWN_API_URL or (parts.scheme == "https" and named):
        return None
    return (
        f"TikTok fetches photos from socialpub by https from a public domain, but base_url begins with "
        f"{parts.scheme}://{host}. Set base_url to a URL that TikTok can reach, or post a video instead."
    )


def _text(content: Content, chosen: Mapping[str, Any]) -> list[FieldError]:
    if loses_caption(chosen, has_video=content.has_video):
        return []
    limit = limits.VIDEO_CAPTION_UNITS if content.has_video else limits.PHOTO_DESCRIPTION_UNITS
    what = "a video caption" if content.has_video else "a photo description"
    units = utf16_units(content.text)
    if units <= limit:
        return []
    message = (
        f"TikTok accepts at most {limit} characters in {what}. This text has {units}. TikTok counts UTF-16 units, so "
        "an emoji counts 2 or more."
    )
    return [FieldError(("post", "body"), message)]


def _cover(media: Sequence[MediaFile], chosen: Mapping[str, Any]) -> list[FieldError]:
    index = chosen.get("photoCoverIndex")
    if index is None or any(item.kind == "video" for item in media) or index < len(media):
        return []
    message = f"photoCoverIndex is {index}, but the last photo has index {len(media) - 1}. The first has index 0."
    return [FieldError(("providerOptions", "tiktok", "photoCoverIndex"), message)] if media else []
