"""The interface of a network: `Provider`, the content and job that it receives, and its outcomes.

Outcomes describe the post. Exceptions (`responses.py`) describe the call.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from socialpub.core.errors import FieldError
from socialpub.core.settings.networks import AppSection
from socialpub.providers import options
from socialpub.providers.auth import Account, Auth
from socialpub.providers.preview import Preview
from socialpub.providers.responses import HttpResponse

# --- content ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One media item. `facts` has the values measured at `complete`, without keys that do not apply (`Facts`)."""

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
        """Whether this is an image with several frames: GIF, WebP, PNG or AVIF."""
        return self.kind == "image" and int(self.facts.get("frames", 1)) > 1


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    media: tuple[MediaFile, ...] = ()
    option_files: Mapping[str, MediaFile] = field(default_factory=dict)
    """The verified artifacts that options name, by id, without those whose files were removed."""
    served_from: str | None = None
    """The URL from which networks fetch media. None: unknown."""

    @property
    def has_video(self) -> bool:
        return any(item.kind == "video" for item in self.media)


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The limits of a fitted image. `types` are in order of preference."""

    types: tuple[str, ...]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None


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
    "vorbis": "Vorbis",
    "mp3": "MP3",
    "ac3": "AC-3",
    "mjpeg": "Motion JPEG",
}


def codec_name(codec: str) -> str:
    return CODEC_NAMES.get(codec, codec)


# --- outcomes of a step and of a read-back ----------------------------------------------------------------------------

Memo = dict[str, Any]
"""A delivery's state between steps: JSON without secrets. `notes` has sentences for the owner."""
LINK_CARD = "link_card"
"""In the memo: the card that the owner sees before the approval, as `Provider.read_card` returns it. With `unread`, the
worker has not read the page yet."""
LABELS = "labels"
"""The key in the memo for the network's names of option values, by option key."""


@dataclass(frozen=True, slots=True)
class Done:
    """The step is complete. `memo` is stored for the next steps."""

    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class More:
    """The step continues at once (more chunks)."""

    memo: Memo


class Cause(StrEnum):
    """Why a step goes back. The engine counts the returns of a delivery by this code."""

    CARD_REFUSED = "card-refused"
    EXPIRED = "expired"
    FILE_MISSING = "file-missing"
    FORGOTTEN = "forgotten"
    INCONSISTENT = "inconsistent"
    INTERRUPTED = "interrupted"
    KEY_TAKEN = "key-taken"
    NOT_ACCEPTED = "not-accepted"
    NOT_PROCESSED = "not-processed"
    NOT_SENT = "not-sent"
    THUMBNAIL_REFUSED = "thumbnail-refused"
    TOO_LARGE = "too-large"
    TOO_LARGE_FOR_PROXY = "too-large-for-proxy"
    TOO_OLD = "too-old"


@dataclass(frozen=True, slots=True)
class Again:
    """Go back to an earlier step, at most `limit` times per delivery and `cause`; then `otherwise`.

    `cause` is a `Cause`, perhaps with the media item. An adapter reads the count with `Job.times`.
    """

    step: str
    memo: Memo
    cause: str
    reason: str
    limit: int = 1
    seconds: float = 0.0
    otherwise: "Outcome | None" = None
    """None: a refusal with `reason` as the message."""

    def after(self, times: int) -> "Outcome":
        if times < self.limit:
            return self
        return Refused(self.reason) if self.otherwise is None else self.otherwise


@dataclass(frozen=True, slots=True)
class Wait:
    """Run the same step again in `seconds`, without a failure. `reason` is shown ("X is processing the video")."""

    seconds: float
    reason: str
    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """The app is refused, not this post: hold the network and probe slowly.

    A query (read-back, poll) holds only queries. `this_step`: hold only the steps of this name.
    """

    reason: str
    code: str | None = None
    this_step: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """Exactly one post is public."""

    post_id: str | None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Definitely nothing was posted. `message` says what to change. `reauth`: the owner must connect again.

    `rest_seconds`: pause this profile for that long (a suspended or restricted account). `verdict`: the network
    reported that this post failed. A refusal from a poll after the commit counts only as a verdict. `content`: the
    network would refuse the same post again. `too_long`: the post may be too long for this account, so the account
    data is fetched again. `parent_missing`: the network does not show the post to which this post replies.
    """

    message: str
    code: str | None = None
    reauth: bool = False
    rest_seconds: float = 0.0
    verdict: bool = False
    content: bool = False
    too_long: bool = False
    parent_missing: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """The post may be public: read the account back. `memo` is stored for a second call."""

    message: str
    code: str | None = None
    memo: Memo | None = None


Outcome = Done | More | Again | Wait | Held | Published | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Readback:
    """The result of a read-back. A read-back without a readable response raises instead."""

    candidates: tuple[Published, ...] = ()
    """Every post on the account that could be this post, oldest first."""
    whole: bool = True
    """False: the read-back covers only one task, not the account."""
    similar: tuple[str, ...] = ()
    """Ids of posts of the same kind and time with other text. At a network without duplicate protection, they turn
    "absent" into "unknown", unless they belong to other deliveries."""
    vague: tuple[str, ...] = ()
    """Ids of candidates that do not show all of our text. A vague candidate of another delivery is only similar."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The network cannot decide. `hint` says where the owner can check."""

    hint: str


# --- steps and their kinds --------------------------------------------------------------------------------------------


class Kind(StrEnum):
    PREPARE = "prepare"
    """At worst an unused upload."""

    POLL = "poll"
    """None."""

    COMMIT = "commit"
    """A second public post. Each plan has exactly one commit of either kind."""

    REPEATABLE = "repeatable"
    """None: a commit whose key and content stay the same, so its repetition cannot create a second post. After an
    unknown outcome, the engine repeats the call at once and as often as necessary."""

    @property
    def commits(self) -> bool:
        """Whether this step makes the post public."""
        return self in (Kind.COMMIT, Kind.REPEATABLE)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class AppLimits:
    sentences: tuple[str, ...]
    why: str
    remedy: str


# --- one run of one step ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CallTrace:
    request_id: str | None = None
    code: str | None = None
    message: str | None = None
    """Shown with a successful step, or with one that goes back. Never a secret."""
    refused: bool = False
    """Whether `message` is a refusal that is not in the network's own form, and the step goes back because of it."""
    answered: bool = False
    """Whether the network answered a call. The engine sets this."""
    grant: bytes | None = field(default=None, repr=False)
    """The sealed access token of these calls. The engine sets this."""
    started_at: str | None = None
    """When the run began. The engine sets this."""


def _not_given(*_: object) -> Any:
    raise ValueError("this job was not given this function")


def _no_commit() -> datetime:
    raise ValueError("there is nothing to read back before a commit")


@dataclass(slots=True)
class Job:
    content: Content
    options: Mapping[str, Any]
    """The result of `read_options`: only canonical camelCase keys."""
    account: Account
    memo: Memo
    token: str = field(repr=False)
    call: Callable[..., HttpResponse]
    """`Http.call`. Raises `Withdrawn` when the profile has been disconnected or the post stopped."""
    fit: Callable[[MediaFile, ImageLimits], MediaFile]
    """Returns a version of the image within the limits and without metadata, or the same file. Raises `Unfit`."""
    wall_now: datetime
    """When this run began, on the wall clock: for everything that the network or its readers see or compare, such as
    the date of a record. The network's own dates are compared with `since` and with the `Date` of its responses."""
    even_now: datetime
    """The same moment on a clock that ignores changes of the wall clock: only for pauses and ages in the memo."""
    slice_over: Callable[[], bool]
    """Returns True after ten seconds: return `More` to continue in another run."""
    committed_at: datetime | None = None
    """When the commit was announced, on the clock of `even_now`. After an unknown outcome, the first of both."""
    since: Callable[[], datetime] = field(default=_no_commit, repr=False)
    """The earliest time, on the network's clock and with a margin, at which the network can have dated the post. The
    time becomes more exact after a response in this run, so call this function again then."""
    unknown_before: bool = False
    """An earlier run of the commit had an unknown outcome. A "duplicate" response then suggests that it succeeded."""
    public_url: Callable[[MediaFile], str] = field(default=_not_given, repr=False)
    """Returns a signed URL from which the network can fetch this original or fitted file. The URL is a secret: it is
    created for each call and never stored."""
    fetch: Callable[[str, int], "Fetched"] = field(default=_not_given, repr=False)
    """Returns at most this number of bytes of a page that the post links to. Only public hosts are fetched. Raises
    `NotFetched`."""
    fetch_image: Callable[[str, ImageLimits], MediaFile] = field(default=_not_given, repr=False)
    """Returns an image of such a page within the limits. It is removed with the delivery. Raises `NotFetched`."""
    kept_file: Callable[[str], Path] = field(default=_not_given, repr=False)
    """Returns the path of a fetched image by its file name. The file may be missing after a restore."""
    seal: Callable[[str], str] = field(default=_not_given, repr=False)
    """Encrypts a secret for the memo (a signed upload URL)."""
    open: Callable[[str], str] = field(default=_not_given, repr=False)
    """Decrypts the result of `seal`."""
    times_back: Mapping[str, int] = field(default_factory=dict)
    """The number of returns of this delivery to an earlier step, by cause."""
    trace: CallTrace = field(default_factory=CallTrace)

    def times(self, cause: str) -> int:
        return self.times_back.get(cause, 0)


class Withdrawn(Exception):
    """The call was not sent, because the profile was disconnected or the post stopped."""


class NotFetched(Exception):
    """A page or an image of a link could not be fetched. The message is a sentence for the owner."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The beginning of a page behind a link."""

    url: str
    """The URL after the redirects."""
    content_type: str
    charset: str | None
    body: bytes


class Unfit(Exception):
    """No version of this file is within the limits. The message names the limit and the value."""


# --- upload URLs -----------------------------------------------------------------------------------------------------
#
# The network returns the URL at run time, and the owner lists the hosts. The URL is a credential: messages show
# only its host and port.

UPLOAD_ADDRESS = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:[/?][!-~]*)?")
"""Stricter than URLs: no user, no backslash, nothing that two parsers could read differently."""

DEFAULT_PORTS = {"https": 443, "http": 80}


def refuse_upload_address(address: str, section: AppSection, name: str, label: str) -> Held | None:
    """Return a hold on all uploads to this network when this URL is not allowed, otherwise None.

    A simulated network may use plain http and another port, but only those of its `api_url`.
    """
    why = _upload_address_fault(address, section, name, label)
    return None if why is None else Held(why, "upload_host", this_step=True)


def _upload_address_fault(address: str, section: AppSection, name: str, label: str) -> str | None:
    match = UPLOAD_ADDRESS.fullmatch(address)
    if match is None:
        return (
            f"{label} returned an upload URL that is not a plain https URL. socialpub sent nothing to it. If "
            "this continues, report a bug in socialpub."
        )
    scheme, host, port = match[1], match[2], int(match[3] or DEFAULT_PORTS[match[1]])
    own = urlsplit(section.api_url)
    if scheme != "https" and not scheme == own.scheme == "http":
        return (
            f"{label} returned an upload URL at {host} without https. socialpub sent nothing to it. If this "
            "continues, report a bug in socialpub."
        )
    if not section.allows_upload_host(host):
        return (
            f"{label} returned the upload host {host}, which upload_hosts in [providers.{name}] does not list. "
            f"socialpub sent nothing to it. If the host belongs to {label}, add it to upload_hosts."
        )
    allowed = [DEFAULT_PORTS[scheme]]
    if section.api_url != section.OWN_API_URL and own.port not in (None, *allowed):
        allowed.append(own.port or 0)
    if port not in allowed:
        listed = " or ".join(map(str, allowed))
        return (
            f"{label} returned port {port} of the upload host {host}. upload_hosts in [providers.{name}] allows this "
            f"host only with port {listed}. socialpub sent nothing to it. If {label} now uses port {port}, report a "
            "bug in socialpub."
        )
    return None


# --- the network ------------------------------------------------------------------------------------------------------


class Provider(ABC):
    """One network. To add a network, implement this class.

    `run` and `recover` get a `Job`, make one exchange, and return an outcome or raise an error of `responses.py`. They
    do not sleep, retry, read a clock or keep state of a post.
    """

    name: ClassVar[str]
    """The name in the API: `x`, `tiktok`, `pinterest`, `bluesky`."""
    label: ClassVar[str]
    """The name for people: `X`, `TikTok`, `Pinterest`, `Bluesky`."""
    option_table: ClassVar[options.Table]
    auth: Auth

    @abstractmethod
    def account_url(self, account: Account | None) -> str:
        """Return the URL of the account's public page, or of the network's front page if the page is unknown."""

    def read_options(self, given: Mapping[str, Any]) -> tuple[options.Options, list[FieldError]]:
        """Return canonical options, and an error for each wrong option."""
        return options.read_options(self.name, self.option_table, given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> options.Options:
        """Return stored defaults overridden by a post's own keys in any spelling."""
        return options.merge_options(self.option_table, stored, own)

    @abstractmethod
    def check(self, content: Content, options: Mapping[str, Any], account: Account, /) -> list[FieldError]:
        """Return an error for each fault because of which the network would refuse this post. Pure."""

    @abstractmethod
    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None, /) -> list[str]:
        """Return warnings about a post without errors. Without an account, the rules of any account apply."""

    @abstractmethod
    def preview(self, content: Content, options: Mapping[str, Any], account: Account, /) -> Preview:
        """Return the post as readers would see it, and the length of its texts. Pure, for any content."""

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return labels and values for the owner about the account's limits."""
        return []

    def account_notes(self, account: Account) -> list[str]:  # noqa: ARG002
        """Return sentences about what this account cannot publish now."""
        return []

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:  # noqa: ARG002
        """Return the network's restrictions of this app, or of a post with the options `chosen`, or None."""
        return None

    def card_link(self, content: Content, options: options.Options, /) -> str | None:  # noqa: ARG002
        """Return the link of the post whose page becomes a card, or None. Pure."""
        return None

    def read_card(
        self, link: str, fetch: Callable[[str, int], Fetched], fetch_image: Callable[[str, ImageLimits], MediaFile], /
    ) -> Memo:
        """Return the card of `card_link` as JSON: `uri`, then `title`, `description` and `image`, or a `note`."""
        raise NotImplementedError

    @abstractmethod
    def plan(self, content: Content, options: Mapping[str, Any], /) -> Sequence[Step]:
        """Return the steps of this post. Pure."""

    @abstractmethod
    def run(self, step: str, job: Job) -> Outcome:
        """Run one step of the plan. Raises `ProviderError`, `Unfit`, and FileNotFoundError when a file is gone."""

    @abstractmethod
    def recover(self, job: Job) -> Readback | CannotTell | Done:
        """Read the account once after an unknown commit. Raises `ProviderError` without a readable response.

        `Done`: the commit definitely arrived, and the steps after it show the outcome.
        """
