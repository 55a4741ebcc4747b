"""TikTok. Its options, limits and tokens are known; publishing to it is not built yet.

That must be said wherever somebody could believe otherwise: `check` always ends with it, so that `validate` shows it
and every delivery fails with it, and no step is ever planned.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from socialpub.providers.base import (
    Account,
    CannotTell,
    Content,
    Job,
    Look,
    MediaFile,
    OAuth,
    Options,
    Outcome,
    Problem,
    Refused,
    Step,
)
from socialpub.providers.options import utf16_units
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.oauth import TikTokOAuth
from socialpub.providers.tiktok.options import DIRECT, DRAFT, contradictions, is_draft, merge, read

if TYPE_CHECKING:
    from socialpub.sections import TikTok as Section

NOT_BUILT = (
    "Publishing to TikTok is not built yet in this version of socialpub; leave this profile out of the post and "
    "publish it in TikTok's app."
)


class TikTok:
    name = "tiktok"
    label = "TikTok"

    def __init__(self, section: "Section") -> None:
        self.oauth: OAuth = TikTokOAuth(section)

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        return read(given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        return merge(stored, own)

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        return [
            *contradictions(options),
            *_check_scope(options, account),
            *_check_media(content.media),
            *_check_text(content, options),
            *_check_cover(content.media, options),
            Problem(("profiles",), NOT_BUILT),
        ]

    def notes(self, content: Content, options: Mapping[str, Any]) -> list[str]:
        found = []
        videos = [item for item in content.media if item.kind == "video"]
        if videos and is_draft(options) and content.text:
            found.append("TikTok takes no caption with a draft: paste it when you finish the post in the app.")
        if videos and "title" in options:
            found.append("TikTok has a title for photos only; a video's text is the post's body.")
        if any(item.alt for item in content.media):
            found.append("TikTok takes no alt texts.")
        return found

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:  # noqa: ARG002
        return ()

    def run(self, step: str, job: Job) -> Outcome:  # noqa: ARG002
        return Refused(NOT_BUILT)

    def recover(self, job: Job) -> Look | CannotTell:  # noqa: ARG002
        return CannotTell("Look at the profile in TikTok's app.")


def _check_scope(chosen: Mapping[str, Any], account: Account) -> list[Problem]:
    scope = limits.SCOPE_DRAFT if is_draft(chosen) else limits.SCOPE_DIRECT
    if not account.scopes or scope in account.scopes:
        return []
    mode = DRAFT if is_draft(chosen) else DIRECT
    message = f'mode "{mode}" needs the permission {scope}, which was not granted; connect the account again.'
    return [Problem(("profiles",), message)]


def _check_media(media: Sequence[MediaFile]) -> list[Problem]:
    videos = [item for item in media if item.kind == "video"]
    if not media:
        return [Problem(("media",), f"TikTok needs media: one video or 1 to {limits.PHOTOS} photos.")]
    if videos and len(media) > limits.VIDEOS:
        message = f"TikTok takes one video alone or up to {limits.PHOTOS} photos, not {len(media)} items with a video."
        return [Problem(("media",), message)]
    if len(media) > limits.PHOTOS:
        return [Problem(("media",), f"TikTok takes at most {limits.PHOTOS} photos, not {len(media)}.")]
    return [problem for item in media for problem in (_check_video(item) if videos else _check_photo(item))]


def _check_photo(photo: MediaFile) -> list[Problem]:
    if photo.animated:
        return [Problem(("media", photo.position), "TikTok takes no animated GIF; give a video or a still picture.")]
    return []


def _check_video(video: MediaFile) -> list[Problem]:
    path = ("media", video.position)
    facts = video.facts
    messages = []
    if video.mime_type not in limits.VIDEO_TYPES:
        messages.append(f"TikTok takes {', '.join(limits.VIDEO_TYPES)}, not {video.mime_type}.")
    if video.size_bytes > limits.VIDEO_BYTES:
        messages.append(f"A video may have at most {limits.VIDEO_BYTES} bytes and has {video.size_bytes}.")
    seconds = facts.get("duration_seconds")
    if seconds is not None and seconds > limits.VIDEO_MAX_SECONDS:
        messages.append(f"A video may last at most {limits.VIDEO_MAX_SECONDS} seconds and lasts {seconds:.1f}.")
    slowest, fastest = limits.VIDEO_FRAME_RATES
    rate = facts.get("frame_rate")
    if rate is not None and not slowest - limits.FRAME_RATE_SLACK <= rate <= fastest + limits.FRAME_RATE_SLACK:
        messages.append(f"A video needs {slowest:g} to {fastest:g} frames per second and has {rate:g}.")
    shortest, longest = limits.VIDEO_SIDES
    width, height = facts.get("width"), facts.get("height")
    if width and height and not shortest <= min(width, height) <= max(width, height) <= longest:
        messages.append(f"Each side needs {shortest} to {longest} pixels; the video has {width}×{height}.")
    return [Problem(path, message) for message in messages]


def _check_text(content: Content, chosen: Mapping[str, Any]) -> list[Problem]:
    is_video = any(item.kind == "video" for item in content.media)
    if is_video and is_draft(chosen):
        return []
    limit = limits.VIDEO_CAPTION_UNITS if is_video else limits.PHOTO_DESCRIPTION_UNITS
    what = "A video's caption" if is_video else "The description of photos"
    units = utf16_units(content.text)
    if units <= limit:
        return []
    message = f"{what} may have at most {limit} characters (UTF-16 units; an emoji counts 2 or more) and has {units}."
    return [Problem(("post", "body"), message)]


def _check_cover(media: Sequence[MediaFile], chosen: Mapping[str, Any]) -> list[Problem]:
    index = chosen.get("photoCoverIndex")
    if index is None or any(item.kind == "video" for item in media) or index < len(media):
        return []
    message = f"photoCoverIndex is {index}, but the last photo is {len(media) - 1} (the first is 0)."
    return [Problem(("providerOptions", "tiktok", "photoCoverIndex"), message)] if media else []
