"""What TikTok would refuse, found before anything is sent. Pure.

What only TikTok can know (the levels it offers, a creator's longest video) is asked for just before a direct post.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from socialpub.core import units
from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Account, Content, MediaFile, codec_name
from socialpub.providers.preview import utf16_units
from socialpub.providers.tiktok import client, limits
from socialpub.providers.tiktok.options import DIRECT, DRAFT, INTERACTIONS, contradictions, is_draft, loses_caption

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
    found = []
    video, draft = content.has_video, is_draft(chosen)
    if draft:
        found.append("A draft is not public: finish it in TikTok's app, where it waits in the inbox.")
    if loses_caption(chosen, has_video=video) and content.text:
        found.append("TikTok takes no caption with a draft: paste it when you finish the post in the app.")
    found.extend(_left_off(content, chosen))
    idle = [key for key in chosen if not _counts(key, video=video, draft=draft)]
    if idle and content.media:
        kind = f"{'draft' if draft else 'post'} of {'a video' if video else 'photos'}"
        found.append(f"TikTok does not take {', '.join(idle)} for a {kind}: left out.")
    at = chosen.get("videoCoverTimestampMs")
    if at is not None and any(at > 1000 * item.facts.get("duration_seconds", at) for item in content.media):
        found.append("videoCoverTimestampMs lies beyond the end: TikTok takes the first frame.")
    found.extend(
        f"Media item {item.position + 1}: TikTok takes stills only; the first frame is posted."
        for item in content.media
        if item.kind == "image" and int(item.facts.get("frames", 1)) > 1
    )
    if any(item.alt for item in content.media):
        found.append("TikTok takes no alt texts.")
    return found


def _left_off(content: Content, chosen: Mapping[str, Any]) -> list[str]:
    """Return what others may not do with a direct post because it was not switched on."""
    if is_draft(chosen) or not content.media:
        return []
    known = list(INTERACTIONS.values()) if content.has_video else [INTERACTIONS["comment"]]
    off = [option for option in known if option not in chosen]
    what = "Comments, duets and stitches are" if content.has_video else "Comments are"
    return [f"{what} off unless switched on; not given: {', '.join(off)} (false allows it)."] if off else []


def _counts(key: str, *, video: bool, draft: bool) -> bool:
    if video:
        return key == "mode" if draft else key not in PHOTOS_ONLY
    return key in KEPT_IN_PHOTO_DRAFTS if draft else key not in VIDEO_ONLY


def _scope(chosen: Mapping[str, Any], account: Account, asked: Sequence[str]) -> list[FieldError]:
    scope = limits.SCOPE_DRAFT if is_draft(chosen) else limits.SCOPE_DIRECT
    if not account.scopes or scope in account.scopes:
        return []
    mode = DRAFT if is_draft(chosen) else DIRECT
    remedy = client.how_to_grant(scope, asked)
    message = f'mode "{mode}" needs the permission {scope}, which was not granted; {remedy}.'
    return [FieldError(("profiles",), message)]


def _media(media: Sequence[MediaFile]) -> list[FieldError]:
    videos = [item for item in media if item.kind == "video"]
    if not media:
        return [FieldError(("media",), f"TikTok needs media: one video or 1 to {limits.PHOTOS} photos.")]
    if videos and len(media) > limits.VIDEOS:
        message = f"TikTok takes one video alone or up to {limits.PHOTOS} photos, not {len(media)} items with a video."
        return [FieldError(("media",), message)]
    if len(media) > limits.PHOTOS:
        return [FieldError(("media",), f"TikTok takes at most {limits.PHOTOS} photos, not {len(media)}.")]
    return [FieldError(("media", video.position), fault) for video in videos for fault in _video(video)]


def _video(video: MediaFile) -> Iterator[str]:
    facts = video.facts
    if video.mime_type not in limits.VIDEO_TYPES:
        yield f"TikTok takes {', '.join(limits.VIDEO_TYPES)}, not {video.mime_type}."
    codec = facts.get("video_codec")
    if codec is not None and codec not in limits.VIDEO_CODECS:
        taken = ", ".join(codec_name(one) for one in limits.VIDEO_CODECS)
        yield f"TikTok takes videos in {taken}, not in {codec_name(codec)}. Convert the video."
    if video.size_bytes > limits.VIDEO_BYTES:
        yield f"A video may have at most {units.size(limits.VIDEO_BYTES)} and has {units.size(video.size_bytes)}."
    seconds = facts.get("duration_seconds")
    if seconds is not None and seconds > limits.VIDEO_MAX_SECONDS:
        yield f"A video may last at most {limits.VIDEO_MAX_SECONDS} seconds and lasts {seconds:.1f}."
    slowest, fastest = limits.VIDEO_FRAME_RATES
    rate = facts.get("frame_rate")
    if rate is not None and not slowest - limits.FRAME_RATE_SLACK <= rate <= fastest + limits.FRAME_RATE_SLACK:
        yield f"A video needs {slowest:g} to {fastest:g} frames per second and has {rate:g}."
    shortest, longest = limits.VIDEO_SIDES
    width, height = facts.get("width"), facts.get("height")
    if width and height and not shortest <= min(width, height) <= max(width, height) <= longest:
        yield f"Each side needs {shortest} to {longest} pixels; the video has {width}×{height}."


def _served_photos(content: Content, section: TikTokSection) -> list[FieldError]:
    if not content.media or content.has_video or content.served_from is None:
        return []
    message = unreachable(content.served_from, section)
    return [] if message is None else [FieldError(("media",), message)]


def unreachable(address: str, section: TikTokSection) -> str | None:
    """Return why TikTok cannot fetch a photo from this address of ours; None when it can.

    TikTok fetches by https from names only. A simulated TikTok may fetch from anywhere."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    named = "." in host and not host.replace(".", "").isdigit() and ":" not in host
    if section.api_url != section.OWN_API_URL or (parts.scheme == "https" and named):
        return None
    return (
        f"TikTok fetches photos from socialpub itself, by https and from a public domain; base_url begins with "
        f"{parts.scheme}://{host}. Set a base_url that TikTok can reach, or post a video instead."
    )


def _text(content: Content, chosen: Mapping[str, Any]) -> list[FieldError]:
    if loses_caption(chosen, has_video=content.has_video):
        return []
    limit = limits.VIDEO_CAPTION_UNITS if content.has_video else limits.PHOTO_DESCRIPTION_UNITS
    what = "A video's caption" if content.has_video else "The description of photos"
    units = utf16_units(content.text)
    if units <= limit:
        return []
    message = f"{what} may have at most {limit} characters (UTF-16 units; an emoji counts 2 or more) and has {units}."
    return [FieldError(("post", "body"), message)]


def _cover(media: Sequence[MediaFile], chosen: Mapping[str, Any]) -> list[FieldError]:
    index = chosen.get("photoCoverIndex")
    if index is None or any(item.kind == "video" for item in media) or index < len(media):
        return []
    message = f"photoCoverIndex is {index}, but the last photo is {len(media) - 1} (the first is 0)."
    return [FieldError(("providerOptions", "tiktok", "photoCoverIndex"), message)] if media else []
