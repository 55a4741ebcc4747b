"""What Pinterest would refuse, found before anything is sent. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socialpub.core import units
from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import Account, Content, MediaFile, codec_name
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.client import SANDBOX_API
from socialpub.providers.pinterest.oauth import NEEDED
from socialpub.providers.pinterest.options import COVER, missing
from socialpub.providers.preview import utf16_units


def list_problems(
    content: Content, options: Mapping[str, Any], account: Account, section: PinterestSection
) -> list[FieldError]:
    found = [
        *missing(options),
        *(
            FieldError(("profiles",), sentence)
            for scope, sentence in NEEDED.items()
            if account.scopes and scope not in account.scopes
        ),
        *_check_media(content.media),
        *_check_text(content),
        *_check_cover(content, options),
    ]
    if section.api_url == SANDBOX_API and content.has_video:
        found.append(FieldError(("media", 0), "Pinterest's sandbox takes no videos, production does: give pictures."))
    return found


def list_notes(content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:  # noqa: ARG001
    found = []
    at = options.get("coverImageKeyFrameTime")
    if at is not None and content.media and not content.has_video:
        found.append("coverImageKeyFrameTime is for videos; this pin has none.")
    if at is not None and any(at > item.facts.get("duration_seconds", at) for item in content.media):
        found.append("coverImageKeyFrameTime lies beyond the end: the last frame becomes the cover.")
    if COVER in options and content.media and not content.has_video:
        found.append(f"{COVER} is for videos; this pin has none.")
    pictures = [item for item in content.media if item.kind == "image"]
    for item in pictures:
        if item.animated:
            found.append(
                f"Media item {item.position + 1}: Pinterest shows no moving GIF; its first frame is published."
            )
        width, height = item.facts.get("width"), item.facts.get("height")
        if width and height and min(width, height) < limits.IMAGE_SURE_SIDE:
            found.append(
                f"Media item {item.position + 1}: Pinterest may find {width}×{height} pixels too small; give "
                f"{limits.IMAGE_GOOD_SIDE} or more, best 1000×1500."
            )
    described = [item for item in content.media if item.alt]
    found += [
        f"Media item {item.position + 1}: a pin has one alt text, that of media item {described[0].position + 1}; this "
        "one is left out."
        for item in described[1:]
    ]
    return found


def alt_text(content: Content) -> str | None:
    """Return the pin's one alt text: the first that a media item has."""
    return next((item.alt for item in content.media if item.alt), None)


def _check_media(media: Sequence[MediaFile]) -> list[FieldError]:
    videos = [item for item in media if item.kind == "video"]
    max_images = limits.CAROUSEL[1]
    rule = f"A pin holds one image, {limits.CAROUSEL[0]} to {max_images} images, or one video"
    if not media:
        return [FieldError(("media",), f"{rule}; a post without media cannot become one.")]
    if videos and len(media) > limits.VIDEOS:
        return [FieldError(("media",), f"{rule}, not {len(media)} items with a video.")]
    if len(media) > max_images:
        return [FieldError(("media",), f"{rule}, not {len(media)} images.")]
    if videos:
        return [FieldError(("media", videos[0].position), fault) for fault in _check_video(videos[0])]
    return _check_sizes(media)


def _check_sizes(images: Sequence[MediaFile]) -> list[FieldError]:
    sizes = [(image.facts.get("width"), image.facts.get("height")) for image in images]
    for image, size in zip(images, sizes, strict=True):
        if None not in size and None not in sizes[0] and size != sizes[0]:
            (width, height), (first_width, first_height) = size, sizes[0]
            message = (
                f"All images of one pin need the same size: this one has {width}×{height} pixels, the first "
                f"{first_width}×{first_height}."
            )
            return [FieldError(("media", image.position), message)]
    return []


def _check_video(video: MediaFile) -> Iterator[str]:
    facts = video.facts
    if video.mime_type not in limits.VIDEO_TYPES:
        yield f"Pinterest takes {' and '.join(limits.VIDEO_TYPES)}, not {video.mime_type}."
    codec = facts.get("video_codec")
    if codec is not None and codec not in limits.VIDEO_CODECS:
        taken = " or ".join(codec_name(one) for one in limits.VIDEO_CODECS)
        yield f"Pinterest takes videos in {taken}, not in {codec_name(codec)}. Convert the video."
    if video.size_bytes > limits.VIDEO_BYTES:
        yield f"A video may have at most {units.size(limits.VIDEO_BYTES)} and has {units.size(video.size_bytes)}."
    shortest, longest = limits.VIDEO_SECONDS
    seconds = facts.get("duration_seconds")
    if seconds is not None and not shortest - limits.SLACK <= seconds <= longest + limits.SLACK:
        yield f"A video needs {shortest} to {longest} seconds and lasts {seconds:.1f}."
    width, height = facts.get("width"), facts.get("height")
    tallest, widest = limits.VIDEO_SHAPES
    if width and height and not tallest - limits.SLACK <= width / height <= widest + limits.SLACK:
        yield f"A video's shape may be from 1:2 to 1.91:1 (width to height); this one has {width}×{height}."


def _check_cover(content: Content, options: Mapping[str, Any]) -> list[FieldError]:
    if COVER not in options:
        return []
    path = ("providerOptions", "pinterest", COVER)
    cover = content.option_files.get(options[COVER])
    if cover is None:
        message = f"{COVER} names no artifact whose bytes are here: upload the picture again, and give its new id."
        return [FieldError(path, message)]
    if cover.kind != "image":
        return [FieldError(path, f"{COVER} must name an image; {cover.file_name} is {cover.mime_type}.")]
    if "coverImageKeyFrameTime" in options:
        return [FieldError(path, f"Give {COVER} or coverImageKeyFrameTime, not both: a video has one cover.")]
    return []


def _check_text(content: Content) -> list[FieldError]:
    found = []
    units = utf16_units(content.text)
    if units > limits.DESCRIPTION_UNITS:
        message = f"A pin's description may have at most {limits.DESCRIPTION_UNITS} characters and has {units}."
        found.append(FieldError(("post", "body"), message))
    described = next((item for item in content.media if item.alt), None)
    alt_units = utf16_units(described.alt or "") if described else 0
    if described and alt_units > limits.ALT_UNITS:
        message = f"A pin's alt text may have at most {limits.ALT_UNITS} characters and has {alt_units}."
        found.append(FieldError(("media", described.position, "alt"), message))
    return found
