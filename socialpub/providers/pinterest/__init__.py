"""Pinterest. Its options, limits and tokens are known; publishing to it is not built yet.

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
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.oauth import PinterestOAuth
from socialpub.providers.pinterest.options import merge, missing, read

if TYPE_CHECKING:
    from socialpub.sections import Pinterest as Section

NOT_BUILT = (
    "Publishing to Pinterest is not built yet in this version of socialpub; leave this profile out of the post and "
    "create the pin on Pinterest itself."
)


class Pinterest:
    name = "pinterest"
    label = "Pinterest"

    def __init__(self, section: "Section") -> None:
        self.oauth: OAuth = PinterestOAuth(section)

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        return read(given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        return merge(stored, own)

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        return [
            *missing(options),
            *(Problem(("profiles",), message) for message in self.oauth.missing_scopes(account.scopes)),
            *_check_media(content.media),
            *_check_text(content),
            Problem(("profiles",), NOT_BUILT),
        ]

    def notes(self, content: Content, options: Mapping[str, Any]) -> list[str]:
        found = []
        videos = [item for item in content.media if item.kind == "video"]
        at = options.get("coverImageKeyFrameTime")
        if at is not None and content.media and not videos:
            found.append("coverImageKeyFrameTime is for videos; this pin has none.")
        if at is not None and any(at > item.facts.get("duration_seconds", at) for item in videos):
            found.append("coverImageKeyFrameTime lies beyond the end: the last frame becomes the cover.")
        return found

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]:  # noqa: ARG002
        return ()

    def run(self, step: str, job: Job) -> Outcome:  # noqa: ARG002
        return Refused(NOT_BUILT)

    def recover(self, job: Job) -> Look | CannotTell:  # noqa: ARG002
        return CannotTell("Look at the board on Pinterest.")


def _check_media(media: Sequence[MediaFile]) -> list[Problem]:
    videos = [item for item in media if item.kind == "video"]
    most = limits.CAROUSEL[1]
    rule = f"A pin holds one image, {limits.CAROUSEL[0]} to {most} images, or one video"
    if not media:
        return [Problem(("media",), f"{rule}; a post without media cannot become one.")]
    if videos and len(media) > limits.VIDEOS:
        return [Problem(("media",), f"{rule}, not {len(media)} items with a video.")]
    if len(media) > most:
        return [Problem(("media",), f"{rule}, not {len(media)} images.")]
    if videos:
        return _check_video(videos[0])
    return [*_check_images(media), *_check_sizes(media)]


def _check_images(images: Sequence[MediaFile]) -> list[Problem]:
    message = "Pinterest takes no animated GIF; give a video or a still picture."
    return [Problem(("media", image.position), message) for image in images if image.animated]


def _check_sizes(images: Sequence[MediaFile]) -> list[Problem]:
    sizes = [(image.facts.get("width"), image.facts.get("height")) for image in images]
    for image, size in zip(images, sizes, strict=True):
        if None not in size and None not in sizes[0] and size != sizes[0]:
            (width, height), (first_width, first_height) = size, sizes[0]
            message = (
                f"All images of one pin need the same size: this one has {width}×{height} pixels, the first "
                f"{first_width}×{first_height}."
            )
            return [Problem(("media", image.position), message)]
    return []


def _check_video(video: MediaFile) -> list[Problem]:
    path = ("media", video.position)
    facts = video.facts
    messages = []
    if video.mime_type not in limits.VIDEO_TYPES:
        messages.append(f"Pinterest takes {' and '.join(limits.VIDEO_TYPES)}, not {video.mime_type}.")
    if video.size_bytes > limits.VIDEO_BYTES:
        messages.append(f"A video may have at most {limits.VIDEO_BYTES} bytes and has {video.size_bytes}.")
    shortest, longest = limits.VIDEO_SECONDS
    seconds = facts.get("duration_seconds")
    if seconds is not None and not shortest - limits.SLACK <= seconds <= longest + limits.SLACK:
        messages.append(f"A video needs {shortest} to {longest} seconds and lasts {seconds:.1f}.")
    width, height = facts.get("width"), facts.get("height")
    tallest, widest = limits.VIDEO_SHAPES
    if width and height and not tallest - limits.SLACK <= width / height <= widest + limits.SLACK:
        messages.append(f"A video's shape may be from 1:2 to 1.91:1 (width to height); this one has {width}×{height}.")
    return [Problem(path, message) for message in messages]


def _check_text(content: Content) -> list[Problem]:
    problems = []
    units = utf16_units(content.text)
    if units > limits.DESCRIPTION_UNITS:
        message = f"A pin's description may have at most {limits.DESCRIPTION_UNITS} characters and has {units}."
        problems.append(Problem(("post", "body"), message))
    for item in content.media:
        alt_units = utf16_units(item.alt or "")
        if alt_units > limits.ALT_UNITS:
            message = f"A pin's alt text may have at most {limits.ALT_UNITS} characters and has {alt_units}."
            problems.append(Problem(("media", item.position, "alt"), message))
    return problems
