"""Checks a post against Bluesky's rules before anything is sent. Pure.

The server checks a record only against its schema, so an empty post or a wrong facet would become public.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.core import commands, units
from socialpub.core.errors import FieldError
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, MediaFile, codec_name
from socialpub.providers.bluesky import limits, servers
from socialpub.providers.bluesky.graphemes import count_graphemes
from socialpub.providers.bluesky.options import is_reply
from socialpub.providers.bluesky.text import list_handles, sent_text

BODY = ("post", "body")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def unconfirmed_email(account: Account | None) -> str | None:
    """Return why the account cannot publish videos. None: it can, or its server does not say."""
    if account is None or account.facts.get(servers.EMAIL_CONFIRMED) is not False:
        return None
    how = commands.or_run("admin", "refresh-profile", account.profile_id) if account.profile_id else ""
    return (
        "The email address of this account is not confirmed, so Bluesky does not show its videos. Confirm the address "
        f"in the Bluesky app (Settings, Account), then press “Refresh” on the profile's page{how}."
    )


def list_problems(content: Content, options: Mapping[str, Any], account: Account) -> list[FieldError]:  # noqa: ARG001
    return [*_text(content), *_media(content, account)]


def list_notes(content: Content, options: Mapping[str, Any], account: Account | None = None) -> list[str]:
    email = None if content.has_video else unconfirmed_email(account)  # with a video, it is a problem
    notes = [] if email is None else [email]
    for item in content.media:
        about = _video_notes(item) if item.kind == "video" else _image_notes(item)
        notes.extend(f"Media item {item.position + 1}: {note}" for note in about)
    control = options.get("replyControl")
    if control and control != "everyone" and is_reply(options):
        notes.append("replyControl has no effect on a reply. The first post of the thread has this setting.")
    elif control == "mentioned" and not list_handles(content.text):
        notes.append("replyControl lets only mentioned accounts reply, but the text mentions no account.")
    return notes


def _text(content: Content) -> Iterator[FieldError]:
    text = sent_text(content.text)
    if not text.strip() and not content.media:
        yield FieldError(BODY, "Bluesky needs text or media. This post has neither.")
    graphemes, size = count_graphemes(text), len(text.encode(errors="replace"))
    if graphemes > limits.TEXT_GRAPHEMES:
        yield FieldError(
            BODY,
            f"Bluesky accepts at most {limits.TEXT_GRAPHEMES} characters. This text has {graphemes}. Shorten the text "
            f"by {graphemes - limits.TEXT_GRAPHEMES}.",
        )
    elif size > limits.TEXT_BYTES:
        yield FieldError(
            BODY,
            f"Bluesky accepts texts of at most {limits.TEXT_BYTES} bytes. This text has {size}, because some of its "
            "characters, such as joined emoji, have many bytes. Use fewer of them.",
        )
    if control := _CONTROLS.search(text):
        yield FieldError(BODY, f"The text contains the control character U+{ord(control[0]):04X}. Remove it.")


def _media(content: Content, account: Account) -> Iterator[FieldError]:
    videos = [item for item in content.media if item.kind == "video"]
    if len(content.media) > 1 and videos:
        yield FieldError(
            ("media",),
            f"Bluesky accepts one video without other media. This post has {len(content.media)} media items.",
        )
    elif len(content.media) > limits.IMAGES:
        yield FieldError(
            ("media",),
            f"Bluesky accepts at most {limits.IMAGES} images per post. This post has {len(content.media)} images.",
        )
    for item in content.media:
        if item.kind == "video":
            yield from (FieldError(("media", item.position), fault) for fault in _video(item, account))
        alt = count_graphemes(item.alt or "")
        if alt > limits.ALT_GRAPHEMES:
            yield FieldError(
                ("media", item.position, "alt"),
                f"Bluesky accepts alt text of at most {limits.ALT_GRAPHEMES} characters. This alt text has {alt}.",
            )


def _video(video: MediaFile, account: Account) -> Iterator[str]:
    if email := unconfirmed_email(account):
        yield email
    if video.mime_type not in limits.VIDEO_TYPES:
        yield f"Bluesky accepts only MP4 videos, not {video.mime_type}. Convert the video."
    allowed = limits.video_bytes(account.facts)
    if video.size_bytes > allowed:
        whose = "Bluesky accepts" if allowed == limits.VIDEO_BYTES else "The account's server accepts"
        yield f"{whose} videos of at most {units.size(allowed)}. This video has {units.size(video.size_bytes)}."
    seconds = video.facts.get("duration_seconds")
    if seconds is not None and int(seconds) > limits.VIDEO_SECONDS:
        yield (
            f"Bluesky accepts videos of at most {limits.VIDEO_SECONDS // 60} minutes. This video lasts "
            f"{seconds / 60:.1f} minutes. Shorten the video."
        )


def _video_notes(video: MediaFile) -> Iterator[str]:
    codec, audio = video.facts.get("video_codec"), video.facts.get("audio_codec")
    if codec is not None and codec not in limits.VIDEO_CODECS:
        yield (
            f"Bluesky converts each video after the post and may not be able to read {codec_name(codec)}. "
            f"{codec_name(limits.VIDEO_CODECS[0])} is safe."
        )
    if audio is not None and audio not in limits.AUDIO_CODECS:
        safe = codec_name(limits.AUDIO_CODECS[0])
        yield f"Bluesky may not be able to read {codec_name(audio)} audio. {safe} is safe."


def _image_notes(image: MediaFile) -> Iterator[str]:
    if image.animated:
        yield "Bluesky does not show animated images. Only the first frame is published. Use a video instead."
