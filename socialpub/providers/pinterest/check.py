"""Checks a post against Pinterest's rules before anything is sent. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from socialpub.core import units
from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile, codec_name
from socialpub.providers.ip_addresses import is_public_name
from socialpub.providers.links import find_links
from socialpub.providers.pinterest import limits
from socialpub.providers.pinterest.auth import NEEDED
from socialpub.providers.pinterest.client import SANDBOX_API
from socialpub.providers.pinterest.options import COVER, missing
from socialpub.providers.preview import read_host, utf16_units


def list_problems(
    content: Content, options: Mapping[str, Any], account: Account, section: PinterestSection
) -> list[FieldError]:
    problems = [
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
        message = "Pinterest's sandbox does not accept videos. Use images, or use Pinterest's production API."
        problems.append(FieldError(("media", 0), message))
    return problems


def list_notes(content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:  # noqa: ARG001
    notes = []
    at = options.get("coverImageKeyFrameTime")
    if at is not None and content.media and not content.has_video:
        notes.append("coverImageKeyFrameTime applies only to videos. This pin has no video.")
    if at is not None and any(at > item.facts.get("duration_seconds", at) for item in content.media):
        notes.append("coverImageKeyFrameTime is beyond the end of the video. Pinterest uses the last frame.")
    if COVER in options and content.media and not content.has_video:
        notes.append(f"{COVER} applies only to videos. This pin has no video.")
    for item in content.media:
        if item.animated:
            notes.append(
                f"Media item {item.position + 1}: Pinterest does not show animated images. Only the first frame "
                "is published. Use a video instead."
            )
        width, height = item.facts.get("width"), item.facts.get("height")
        if item.kind == "image" and width and height and min(width, height) < limits.IMAGE_SURE_SIDE:
            notes.append(
                f"Media item {item.position + 1}: Pinterest may refuse {width}×{height} pixels as too small. Use at "
                f"least {limits.IMAGE_GOOD_SIDE} pixels on each side. 1000×1500 pixels are best."
            )
    notes += _link_notes("The option link", [str(options.get("link", ""))])
    notes += _link_notes("The description", [link.url for link in find_links(content.text)])
    described = [item for item in content.media if item.alt]
    notes += [
        f"Media item {item.position + 1}: a pin has only one alt text. socialpub sends the alt text of media item "
        f"{described[0].position + 1} and leaves out this alt text."
        for item in described[1:]
    ]
    return notes


def _link_notes(field: str, links: Iterable[str]) -> Iterator[str]:
    """Warn about links that Pinterest blocks or that lead readers nowhere, once for each host."""
    for host in dict.fromkeys(filter(None, map(read_host, links))):
        if any(f".{host}".endswith(f".{name}") for name in limits.SHORTENERS):
            yield (
                f"{field} contains a short link ({host}). Pinterest blocks certain URL shorteners and redirects "
                f"({limits.BLOCKED_LINKS}). Use the full URL of the page."
            )
        elif not is_public_name(host):
            yield (
                f"{field} leads to {host}, which is not a public website. Readers cannot open the link, and Pinterest "
                f"may block it ({limits.BLOCKED_LINKS}). Use the URL of a public page."
            )


def alt_text(content: Content) -> str | None:
    return next((item.alt for item in content.media if item.alt), None)


def _check_media(media: Sequence[MediaFile]) -> list[FieldError]:
    videos = [item for item in media if item.kind == "video"]
    max_images = limits.CAROUSEL[1]
    rule = f"A pin needs one image, {limits.CAROUSEL[0]} to {max_images} images, or one video."
    if not media:
        return [FieldError(("media",), f"{rule} This post has no media.")]
    if videos and len(media) > limits.VIDEOS:
        return [FieldError(("media",), f"{rule} This post has a video among {len(media)} media items.")]
    if len(media) > max_images:
        return [FieldError(("media",), f"{rule} This post has {len(media)} images.")]
    if videos:
        return [FieldError(("media", videos[0].position), fault) for fault in _check_video(videos[0])]
    return _check_sizes(media)


def _check_sizes(images: Sequence[MediaFile]) -> list[FieldError]:
    sizes = [(image.facts.get("width"), image.facts.get("height")) for image in images]
    for image, size in zip(images, sizes, strict=True):
        if None not in size and None not in sizes[0] and size != sizes[0]:
            (width, height), (first_width, first_height) = size, sizes[0]
            message = (
                f"All images of a pin need the same size. This image has {width}×{height} pixels, but the first image "
                f"has {first_width}×{first_height}."
            )
            return [FieldError(("media", image.position), message)]
    return []


def _check_video(video: MediaFile) -> Iterator[str]:
    facts = video.facts
    if video.mime_type not in limits.VIDEO_TYPES:
        yield f"Pinterest accepts {' and '.join(limits.VIDEO_TYPES)}, not {video.mime_type}. Convert the video."
    codec = facts.get("video_codec")
    if codec is not None and codec not in limits.VIDEO_CODECS:
        taken = " or ".join(codec_name(accepted_codec) for accepted_codec in limits.VIDEO_CODECS)
        yield f"Pinterest accepts videos in {taken}, not in {codec_name(codec)}. Convert the video."
    if video.size_bytes > limits.VIDEO_BYTES:
        most, size = units.size(limits.VIDEO_BYTES), units.size(video.size_bytes)
        yield f"Pinterest accepts videos of at most {most}. This video has {size}."
    shortest, longest = limits.VIDEO_SECONDS
    seconds = facts.get("duration_seconds")
    if seconds is not None and not shortest - limits.SLACK <= seconds <= longest + limits.SLACK:
        yield f"Pinterest accepts videos of {shortest} to {longest} seconds. This video lasts {seconds:.1f} seconds."
    width, height = facts.get("width"), facts.get("height")
    tallest, widest = limits.VIDEO_SHAPES
    if width and height and not tallest - limits.SLACK <= width / height <= widest + limits.SLACK:
        yield (
            "Pinterest accepts videos with aspect ratios from 1:2 to 1.91:1 (width to height). This video has "
            f"{width}×{height} pixels."
        )


def _check_cover(content: Content, options: Mapping[str, Any]) -> list[FieldError]:
    if COVER not in options:
        return []
    path = ("providerOptions", "pinterest", COVER)
    cover = content.option_files.get(options[COVER])
    if cover is None:
        return [
            FieldError(path, f"{COVER} must be the id of a stored image. Upload the image again and use the new id.")
        ]
    if cover.kind != "image":
        return [FieldError(path, f"{COVER} must be the id of an image, but {cover.file_name} is {cover.mime_type}.")]
    if "coverImageKeyFrameTime" in options:
        return [FieldError(path, f"A video has one cover. Use {COVER} or coverImageKeyFrameTime, not both.")]
    return []


def _check_text(content: Content) -> list[FieldError]:
    problems = []
    units = utf16_units(content.text)
    if units > limits.DESCRIPTION_UNITS:
        message = (
            f"Pinterest accepts at most {limits.DESCRIPTION_UNITS} characters in a pin's description. This text has "
            f"{units}."
        )
        problems.append(FieldError(("post", "body"), message))
    described = next((item for item in content.media if item.alt), None)
    alt_units = utf16_units(described.alt or "") if described else 0
    if described and alt_units > limits.ALT_UNITS:
        message = f"Pinterest accepts alt text of at most {limits.ALT_UNITS} characters. This alt text has {alt_units}."
        problems.append(FieldError(("media", described.position, "alt"), message))
    return problems
