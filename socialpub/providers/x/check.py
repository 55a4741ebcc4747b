"""Checks a post against X's rules before anything is sent. Pure.

X definitely refuses a post with a problem. Where X's own pages disagree, a note warns and X decides.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.core import commands, units
from socialpub.core.errors import FieldError
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile, codec_name
from socialpub.providers.x import limits
from socialpub.providers.x.limits import needs_chunks
from socialpub.providers.x.options import TABLE, reply_target
from socialpub.providers.x.text import Weighed, weigh

BODY = ("post", "body")
_YUV = re.compile(r"yuvj?(\d{3})p(?:(\d+)[lb]e)?")
"""FFmpeg's name of a pixel format: the sampling of color and the bits."""


def list_problems(content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:
    problems = list(_text(content, weigh(content.text), account))
    if content.media:
        problems += _media(content, account)
        if options.get("quotePostId"):
            path = ("providerOptions", "x", "quotePostId")
            problems.append(FieldError(path, "X accepts a quoted post or media, not both. Remove one of them."))
    return [*problems, *_scopes(content, account)]


def list_notes(content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
    account = account or Account("")
    notes = [
        f"{option.closed}. Remove {option.name}, or X will probably refuse the post."
        for option in TABLE
        if option.closed and options.get(option.name)
    ]
    for index, media in enumerate(content.media):
        about = _video_notes(media, account) if media.kind == "video" else _image_notes(media)
        notes.extend(f"Media item {index + 1}: {note}" for note in about)
    notes.extend(_mention_notes(content, options, account))
    if prices := _prices(content):
        notes.append(prices)
    return notes


def _mention_notes(content: Content, options: Mapping[str, Any], account: Account) -> Iterator[str]:
    own = (account.username or "").casefold()
    named = {name.casefold(): name for name in weigh(content.text).mentions if name.casefold() != own}
    if len(named) <= (1 if reply_target(options) else 0):
        return
    names = [f"@{name}" for name in named.values()]
    more = f" and {len(names) - limits.NAMES_SHOWN} more" if len(names) > limits.NAMES_SHOWN else ""
    yield (
        f"The text mentions {', '.join(names[: limits.NAMES_SHOWN])}{more}. X's automation rules forbid unsolicited "
        "mentions. Since February 2026, X restricts mentions of accounts that have not contacted this account. "
        "X may refuse the post or restrict the account."
    )


def _video_notes(video: MediaFile, account: Account) -> Iterator[str]:
    """Warn about limits on which X's own pages disagree. X enforces them only when the post is created."""
    if video.alt:
        yield "X accepts alt text only for images and GIFs. socialpub leaves out the video's alt text."
    if limits.entitlement(account.facts) is limits.DEFAULT:
        yield from _notes_without_subscription(video)
    if video.mime_type == "video/webm":
        yield "X documents only MP4 and MOV videos and may fail to process WebM. Convert the video to be sure."
    else:
        yield from _codec_notes(video)
    yield from _format_notes(video)


def _notes_without_subscription(video: MediaFile) -> Iterator[str]:
    seconds = video.facts.get("duration_seconds")
    if seconds is not None and int(seconds) > limits.VIDEO_SURE_SECONDS:
        yield (
            f"X may refuse videos longer than {limits.VIDEO_SURE_SECONDS} seconds from accounts without a "
            f"subscription. This video lasts {seconds:.0f} seconds."
        )
    long_side, short_side = _sides(video)
    if long_side > limits.VIDEO_SURE_LONG_SIDE or short_side > limits.VIDEO_SURE_SHORT_SIDE:
        yield (
            f"X may refuse videos larger than {limits.VIDEO_SURE_LONG_SIDE}×{limits.VIDEO_SURE_SHORT_SIDE} pixels "
            f"from accounts without a subscription. This video has {long_side}×{short_side} pixels."
        )


def has_undocumented_format(video: MediaFile) -> bool:
    return video.mime_type == "video/webm" or any(_codec_notes(video)) or any(_format_notes(video))


def _codec_notes(video: MediaFile) -> Iterator[str]:
    """Warn about undocumented codecs. A codec that was not measured means nothing."""
    wanted = (("video_codec", limits.VIDEO_CODEC), ("audio_codec", limits.AUDIO_CODEC))
    others = [video.facts[key] for key, codec in wanted if video.facts.get(key, codec) != codec]
    if others:
        names = " and ".join(codec_name(codec) for codec in others)
        source = " iPhones record HEVC by default." if "hevc" in others else ""
        yield (
            f"X documents only {codec_name(limits.VIDEO_CODEC)} with {codec_name(limits.AUDIO_CODEC)}. This video has "
            f"{names}.{source} X may refuse the video after the upload. Convert the video to be sure."
        )


def _format_notes(video: MediaFile) -> Iterator[str]:
    """Warn about undocumented colors, pixels and channels. A value that was not measured means nothing."""
    facts = video.facts
    pixels = facts.get("pixel_format", limits.PIXEL_FORMATS[0])
    if pixels not in limits.PIXEL_FORMATS:
        named = _YUV.fullmatch(pixels)
        colors = f"{':'.join(named[1])} with {named[2] or 8} bits" if named else pixels
        yield (
            f"X documents only 4:2:0 color with 8 bits. This video has {colors}. X may refuse the video after the "
            "upload. Export the video again without HDR, or run `ffmpeg -i video.mp4 -pix_fmt yuv420p new.mp4`."
        )
    if "pixel_aspect" in facts:
        yield (
            f"X documents only square pixels. The pixels of this video have the aspect ratio {facts['pixel_aspect']}. "
            f"Export the video again with {facts.get('width')}×{facts.get('height')} square pixels to be sure."
        )
    channels = facts.get("audio_channels", limits.AUDIO_CHANNELS)
    if channels > limits.AUDIO_CHANNELS:
        yield (
            f"X documents only mono or stereo sound. This video has {channels} channels. X may refuse the video after "
            "the upload. Export the video again with stereo sound, or run `ffmpeg -i video.mp4 -c:v copy -ac 2 "
            "new.mp4`."
        )


def _image_notes(image: MediaFile) -> Iterator[str]:
    if image.animated and not needs_chunks(image):
        yield (
            "X shows animated GIFs but no other animated images. Only the first frame is published. Use a GIF or a "
            "video instead."
        )


def _prices(content: Content) -> str:
    """Return a note about the cost of this post beyond an ordinary post. Return "" without such a cost."""
    said = []
    urls = weigh(content.text).urls
    if urls:
        said.append(
            f"X charges {limits.POST_WITH_URL_PRICE} USD instead of {limits.POST_PRICE} USD for a post with a link "
            f"({_short(urls[0])})."
        )
    described = sum(1 for media in content.media if media.alt and media.kind == "image")
    if described:
        said.append(f"X charges {limits.ALT_TEXT_PRICE} USD for each alt text. This post has {described}.")
    if said:
        # Few posts are read back, so this price alone does not cause a note.
        said.append(
            f"If X does not respond, socialpub reads the account back. X charges {limits.OWN_LOOK_UP_PRICE} USD for "
            f"each post read, or {limits.LOOK_UP_PRICE} USD if the app belongs to another account."
        )
    return " ".join(said)


def _text(content: Content, weighed: Weighed, account: Account) -> Iterator[FieldError]:
    entitlement = limits.entitlement(account.facts)
    allowed = entitlement.text_length
    if not content.text.strip() and not content.media:
        yield FieldError(BODY, "X needs text or media. This post has neither.")
    if weighed.length > allowed:
        yield FieldError(
            BODY,
            f"X allows this account {allowed} characters and counts {weighed.length} in this text. Shorten the text by "
            f"{weighed.length - allowed}. X counts 23 for a link, and 2 for an emoji or a CJK character."
            f"{_more_with_premium(entitlement, account)}",
        )
    if weighed.invalid_characters:
        yield FieldError(BODY, "X refuses the characters U+FFFE, U+FEFF and U+FFFF. Remove them from the text.")
    cashtags = {tag.casefold() for tag in weighed.cashtags}
    if len(cashtags) > limits.CASHTAGS:
        tags = ", ".join(f"${tag}" for tag in sorted(weighed.cashtags)[:5])
        yield FieldError(
            BODY,
            f"X allows {limits.CASHTAGS} cashtag per post. This text has {len(cashtags)} ({tags}). Keep one cashtag.",
        )


def _more_with_premium(allowed: limits.Entitlement, account: Account) -> str:
    """Return what to do if the account has subscribed since its data was fetched. Return "" for a subscriber."""
    if allowed is not limits.DEFAULT:
        return ""
    how = commands.or_run("admin", "refresh-profile", account.profile_id) if account.profile_id else ""
    return (
        f" X Premium raises this limit. If this account has X Premium now, press “Refresh” on the profile's page{how}."
    )


def _media(content: Content, account: Account) -> Iterator[FieldError]:
    moving = [media for media in content.media if needs_chunks(media)]
    if len(content.media) > limits.PHOTOS:
        yield FieldError(
            ("media",), f"X accepts at most {limits.PHOTOS} images per post. This post has {len(content.media)} items."
        )
    if moving and len(content.media) > 1:
        kind = "video" if moving[0].kind == "video" else "animated GIF"
        yield FieldError(
            ("media",), f"X accepts one {kind} without other media. This post has {len(content.media)} media items."
        )
    for index, media in enumerate(content.media):
        path = ("media", index)
        if media.kind == "video":
            yield from (FieldError(path, message) for message in _video(media, account))
        elif needs_chunks(media):
            yield from (FieldError(path, message) for message in _gif(media))
        if media.alt and len(media.alt) > limits.ALT_LENGTH:
            yield FieldError(
                (*path, "alt"),
                f"X accepts alt text of at most {limits.ALT_LENGTH} characters. This alt text has {len(media.alt)}.",
            )


def _gif(gif: MediaFile) -> Iterator[str]:
    if gif.size_bytes > limits.GIF_BYTES:
        yield (
            f"X accepts animated GIFs of at most {units.size(limits.GIF_BYTES)}. This GIF has "
            f"{units.size(gif.size_bytes)}."
        )
    long_side, short_side = _sides(gif)
    if long_side > limits.GIF_LONG_SIDE or short_side > limits.GIF_SHORT_SIDE:
        yield (
            f"X accepts animated GIFs of at most {limits.GIF_LONG_SIDE}×{limits.GIF_SHORT_SIDE} pixels. "
            f"This GIF has {long_side}×{short_side} pixels."
        )
    frames = int(gif.facts.get("frames", 1))
    if frames > limits.GIF_FRAMES:
        yield f"X accepts animated GIFs of at most {limits.GIF_FRAMES} frames. This GIF has {frames}."
    pixels = long_side * short_side * frames
    if pixels > limits.GIF_PIXELS:
        yield (
            f"X accepts animated GIFs of at most {limits.GIF_PIXELS} pixels in all frames. This GIF has {pixels}. "
            "Make the GIF smaller or shorter, or convert it to a video."
        )


def _video(video: MediaFile, account: Account) -> Iterator[str]:
    allowed = limits.entitlement(account.facts)
    if video.size_bytes > allowed.video_bytes:
        yield (
            f"X allows this account videos of at most {units.size(allowed.video_bytes)}. This video has "
            f"{units.size(video.size_bytes)}.{_more_with_premium(allowed, account)}"
        )
    seconds = video.facts.get("duration_seconds")
    if seconds is not None and seconds < limits.VIDEO_MIN_SECONDS:
        yield f"X accepts videos of at least {limits.VIDEO_MIN_SECONDS} seconds. This video lasts {seconds:g} seconds."
    if seconds is not None and int(seconds) > allowed.video_seconds:
        yield (
            f"X allows this account videos of at most {allowed.video_seconds // 60} minutes. This video lasts "
            f"{seconds / 60:.1f} minutes. Shorten the video.{_more_with_premium(allowed, account)}"
        )
    rate = video.facts.get("frame_rate")
    # Containers round: cameras call 60.0x frames per second 60.
    if rate is not None and rate > limits.VIDEO_FRAME_RATE + 0.5:
        yield f"X accepts at most {limits.VIDEO_FRAME_RATE} frames per second. This video has {rate:g}."
    long_side, short_side = _sides(video)
    if not long_side or not short_side:
        return
    if short_side < limits.VIDEO_MIN_SIDE:
        yield (
            f"X accepts videos of at least {limits.VIDEO_MIN_SIDE}×{limits.VIDEO_MIN_SIDE} pixels. This video has "
            f"{long_side}×{short_side} pixels."
        )
    if long_side > short_side * limits.VIDEO_ASPECT:
        yield (
            f"X accepts videos with aspect ratios from 1:{limits.VIDEO_ASPECT} to {limits.VIDEO_ASPECT}:1. This video "
            f"has {long_side}×{short_side} pixels."
        )


def _scopes(content: Content, account: Account) -> Iterator[FieldError]:
    if account.scopes and "tweet.write" not in account.scopes:
        yield FieldError(("profiles",), "This connection lacks the scope tweet.write. Connect the account again.")
    if account.scopes and content.media and "media.write" not in account.scopes:
        yield FieldError(
            ("media",),
            "This connection lacks the scope media.write, which X requires for media. Connect the account again, or "
            "post without media.",
        )


def _sides(media: MediaFile) -> tuple[int, int]:
    """Return the long and the short side in pixels, zeros when not measured. X's limits apply to both orientations."""
    width, height = int(media.facts.get("width", 0)), int(media.facts.get("height", 0))
    return max(width, height), min(width, height)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
