"""What is published and by whom, as every network is handed it.

Values only: nothing in here knows a network, and nothing changes after it was made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Options = dict[str, Any]
"""What an owner said about a post beyond its text and media, under the canonical camelCase keys of one network."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One media item. `facts` was measured at `complete`; keys that do not apply are missing.

    width, height (pixels, upright), frames, duration_seconds, frame_rate, has_audio, video_codec and audio_codec
    (FFmpeg's names)
    """

    position: int
    kind: str
    """`image` or `video`."""
    mime_type: str
    size_bytes: int
    path: Path
    file_name: str
    alt: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def animated(self) -> bool:
        return self.mime_type == "image/gif" and int(self.facts.get("frames", 1)) > 1


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    """The post's body, `""` when it has none."""
    media: tuple[MediaFile, ...] = ()
    option_files: Mapping[str, MediaFile] = field(default_factory=dict)
    """The verified artifacts that options name, by id. One that is not in here has no bytes."""
    served_from: str | None = None
    """The address from which a network fetches media that are not sent to it; None: not known."""

    @property
    def has_video(self) -> bool:
        return any(item.kind == "video" for item in self.media)


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What a fitted image must satisfy; `types` in order of preference."""

    types: tuple[str, ...]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that would make the network refuse. `message` names rule, limit and found value; `path` is that of
    the field in the body of `POST /posts`."""

    path: tuple[str | int, ...]
    message: str
    is_missing: bool = False
    """The field is needed and has no value. A form asks for it in its own words."""


@dataclass(frozen=True, slots=True)
class Account:
    """The profile as the network sees it. `facts` is what the network said at connect time (X: `subscription_type`)."""

    id: str
    username: str | None = None
    scopes: frozenset[str] = frozenset()
    """Granted scopes; empty when the network or the owner did not say: then nothing is concluded from it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    profile_id: str | None = None
    """The id of the profile here, for commands in messages."""


CODEC_NAMES: Mapping[str, str] = {
    "h264": "H.264",
    "hevc": "HEVC (H.265)",
    "vp8": "VP8",
    "vp9": "VP9",
    "av1": "AV1",
    "prores": "ProRes",
    "mpeg4": "MPEG-4 Part 2",
    "aac": "AAC",
    "opus": "Opus",
    "mp3": "MP3",
}
"""What people call the codecs that facts name as FFmpeg does."""


def codec_name(codec: str) -> str:
    """Return the name that people know; FFmpeg's own for a rare codec."""
    return CODEC_NAMES.get(codec, codec)


def utf16_units(text: str) -> int:
    """How long networks that count UTF-16 code units find a text: characters beyond the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)
