"""A network as the rest of socialpub sees it: the content and the job that it is given, its outcomes, and `Provider`.

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
from socialpub.core.settings.networks import NetworkSection
from socialpub.providers import options
from socialpub.providers.oauth import OAuth
from socialpub.providers.preview import Preview
from socialpub.providers.responses import HttpResponse

# --- what is published, and by whom -----------------------------------------------------------------------------------


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
    """The limits of a fitted image; `types` in order of preference."""

    types: tuple[str, ...]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None


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


def codec_name(codec: str) -> str:
    return CODEC_NAMES.get(codec, codec)


# --- outcomes of a step and of a read-back ----------------------------------------------------------------------------

Memo = dict[str, Any]
"""A delivery's state between steps: JSON, no secrets. `notes` has sentences for the owner. `LABELS` has the network's
names for the values of options, by key."""
LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Done:
    """The step is through; `memo` is kept for the next ones."""

    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class More:
    """The step goes on at once (more chunks)."""

    memo: Memo


@dataclass(frozen=True, slots=True)
class Again:
    """Back to an earlier step, at most `limit` times per delivery for this `reason`; then `otherwise`.

    The engine counts per `reason`, word by word also across an upgrade, and an adapter asks `Job.times`."""

    step: str
    memo: Memo
    reason: str
    limit: int = 1
    seconds: float = 0.0
    otherwise: "Outcome | None" = None
    """None: refused, with `reason` as the message."""

    def after(self, times: int) -> "Outcome":
        """Return the outcome for a delivery that went back `times` times for this reason."""
        if times < self.limit:
            return self
        return Refused(self.reason) if self.otherwise is None else self.otherwise


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask the same step again in `seconds`; waiting is not failing. `reason` is shown ("X is processing the video")."""

    seconds: float
    reason: str
    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """The app, not this post: hold the whole network and probe slowly. From a query (read-back, poll) it holds queries
    only. `this_step`: hold only the steps of this name."""

    reason: str
    code: str | None = None
    this_step: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """Exactly one post is up."""

    post_id: str | None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Certain that nothing was posted. `message` says what to change. `reauth`: the owner must connect again.

    `rest_seconds`: leave this profile alone for that long (a suspended or cooling account). `verdict`: the network
    said of this very post that it failed; only then does it count from a poll after the commit. `content`: the post
    itself was refused, so the same post would be refused again. `too_long`: it may be too long for this account, so
    the account data is fetched again."""

    message: str
    code: str | None = None
    reauth: bool = False
    rest_seconds: float = 0.0
    verdict: bool = False
    content: bool = False
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may be up: read the account back. `memo` is kept for a second call, should the account not show it."""

    message: str
    code: str | None = None
    memo: Memo | None = None


Outcome = Done | More | Again | Wait | Held | Published | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Readback:
    """An answered, readable read-back of the account. A read-back that was not answered raises instead."""

    candidates: tuple[Published, ...] = ()
    """Everything on the account that could be this post, oldest first. The caller decides what an empty one means."""
    whole: bool = True
    """False: only one task was asked about, not the account."""
    similar: tuple[str, ...] = ()
    """Ids of posts of the same kind and time with other words. If the network has no duplicate protection, they turn
    "absent" into "cannot tell", unless they belong to other deliveries."""
    vague: tuple[str, ...] = ()
    """Ids of candidates that do not show all of our words. One that another delivery may have made is only similar."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The network cannot answer. `hint` says where the owner can check."""

    hint: str


# --- steps and their kinds --------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What running a step twice would do."""

    PREPARE = "prepare"
    """An orphaned upload at worst."""

    POLL = "poll"
    """Nothing."""

    COMMIT = "commit"
    """A second public post. Exactly one per plan."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class AppLimits:
    """The network's restrictions of this app."""

    sentences: tuple[str, ...]
    why: str
    remedy: str


# --- one run of one step ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CallTrace:
    """Details of the last call, for the attempt's row."""

    request_id: str | None = None
    code: str | None = None
    message: str | None = None
    """Shown with a step that went well; never a secret."""
    answered: bool = False
    """Whether any call was answered; noted by the engine."""
    grant: bytes | None = field(default=None, repr=False)
    """The sealed access token of these calls; noted by the engine."""
    started_at: str | None = None
    """When the run began; noted by the engine."""


Call = Callable[..., HttpResponse]
"""`Http.call` with the gate before it."""


def _not_given(_: object) -> str:
    raise ValueError("this job was not given this function")


def _no_commit() -> datetime:
    raise ValueError("there is nothing to read back before a commit")


@dataclass(slots=True)
class Job:
    """Everything one run of one step may know and use."""

    content: Content
    options: Mapping[str, Any]
    """As accepted by the adapter's `read_options`: canonical camelCase keys only."""
    account: Account
    memo: Memo
    token: str = field(repr=False)
    call: Call
    """Raises `Withdrawn` when the profile was disconnected or the post stopped meanwhile."""
    fit: Callable[[MediaFile, ImageLimits], MediaFile]
    """A version of the image within the limits and without metadata (the file itself when it is so). Raises `Unfit`."""
    now: datetime
    """When this run began, on a clock that ignores changes of the wall clock: for pauses and ages in the memo. Dates of
    the network are compared with `since` and with the `Date` of its answers."""
    slice_over: Callable[[], bool]
    """True when this run has had its ten seconds: return `More` and come back."""
    committed_at: datetime | None = None
    """When the commit was announced, on the clock of `now`; where its outcome is unknown, the first of the two."""
    since: Callable[[], datetime] = field(default=_no_commit, repr=False)
    """The earliest moment, on the network's own clock, at which what the commit made can be dated; a margin is in it.
    It becomes narrower once the network has answered in this run: ask again after the answer."""
    unknown_before: bool = False
    """The commit has run once before with an unknown outcome (a "duplicate" answer is then good news)."""
    public_url: Callable[[MediaFile], str] = field(default=_not_given, repr=False)
    """A signed address under which the network can fetch exactly this file, an original or a fitted version. It is a
    secret: created for each call and never stored."""
    seal: Callable[[str], str] = field(default=_not_given, repr=False)
    """Encrypts what must wait in the memo although it is a secret (a signed upload address)."""
    open: Callable[[str], str] = field(default=_not_given, repr=False)
    """The text of `seal`."""
    times_back: Mapping[str, int] = field(default_factory=dict)
    """How often this delivery went back to an earlier step, per reason."""
    trace: CallTrace = field(default_factory=CallTrace)

    def times(self, reason: str) -> int:
        return self.times_back.get(reason, 0)


class Withdrawn(Exception):
    """Nothing may be sent any more: the profile was disconnected or the post stopped."""


class Unfit(Exception):
    """No version of this file satisfies the limits; the message says which limit and the found value."""


# --- where the bytes of a video may go -------------------------------------------------------------------------------
#
# The network names the address at run time, and the owner lists the hosts. The address is a credential: messages show
# only its host and port.

UPLOAD_ADDRESS = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:[/?][!-~]*)?")
"""Stricter than URLs are: no user, no backslash, nothing that two readers could read in two ways."""

DEFAULT_PORTS = {"https": 443, "http": 80}


def refuse_upload_address(address: str, section: NetworkSection, name: str, label: str) -> Held | None:
    """Return the hold on all uploads to this network when no bytes may be sent to this address; None when they may.

    A simulated network may use plain http and another port, but only those that its `api_url` has.
    """
    why = _upload_address_fault(address, section, name, label)
    return None if why is None else Held(why, "upload_host", this_step=True)


def _upload_address_fault(address: str, section: NetworkSection, name: str, label: str) -> str | None:
    match = UPLOAD_ADDRESS.fullmatch(address)
    if match is None:
        return f"{label} named an upload address that is no plain https address. Nothing was sent there."
    scheme, host, port = match[1], match[2], int(match[3] or DEFAULT_PORTS[match[1]])
    own = urlsplit(section.api_url)
    if scheme != "https" and not scheme == own.scheme == "http":
        return f"{label} named an upload address at {host} without https. Nothing was sent there."
    if not section.allows_upload_host(host):
        return (
            f"{label} named the upload host {host}, which upload_hosts of [providers.{name}] does not list. Nothing "
            f"was sent there. If the host is {label}'s, add it to upload_hosts."
        )
    allowed = [DEFAULT_PORTS[scheme]]
    if section.api_url != section.OWN_API_URL and own.port not in (None, *allowed):
        allowed.append(own.port or 0)
    if port not in allowed:
        listed = " or ".join(map(str, allowed))
        return (
            f"{label} named port {port} of the upload host {host}. upload_hosts of [providers.{name}] allows this "
            f"host, but only with port {listed}. Nothing was sent there. If {label} now uses port {port}, report this "
            "as a fault of socialpub."
        )
    return None


# --- the network ------------------------------------------------------------------------------------------------------


class Provider(ABC):
    """One network. To add a network, write one class with all of this.

    A method gets a `Job`, makes one exchange, and returns an outcome or raises an error of `responses.py`. It does not
    sleep, retry or read a clock, and it keeps no state of a post.
    """

    name: ClassVar[str]
    """As in the API: `x`, `tiktok`, `pinterest`."""
    label: ClassVar[str]
    """As people write it: `X`, `TikTok`, `Pinterest`."""
    option_table: ClassVar[options.Table]
    """What an owner may say about a post on this network."""
    oauth: OAuth

    @abstractmethod
    def account_url(self, username: str | None) -> str:
        """Return where people see what an account shows; the network's front page when its name is not known."""

    # --- before a post is accepted -----------------------------------------------------------------------------------

    def read_options(self, given: Mapping[str, Any]) -> tuple[options.Options, list[FieldError]]:
        """Return canonical options and what is wrong with the given ones (paths start with `providerOptions`)."""
        return options.read(self.name, self.option_table, given)

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> options.Options:
        """Return stored defaults under a post's own keys, which win in any spelling."""
        return options.merge(self.option_table, stored, own)

    @abstractmethod
    def check(self, content: Content, options: Mapping[str, Any], account: Account, /) -> list[FieldError]:
        """Return everything about this post that the network would refuse. Pure: `validate` and the engine ask it."""

    @abstractmethod
    def notes(self, content: Content, options: Mapping[str, Any], account: Account | None = None, /) -> list[str]:
        """Return what the owner may like to know although nothing is wrong. Without an account, the rules for any
        account apply."""

    @abstractmethod
    def preview(self, content: Content, options: Mapping[str, Any], account: Account, /) -> Preview:
        """Return the post as readers would see it, and how long the network finds its texts. Pure, for any content."""

    def account_facts(self, facts: Mapping[str, Any]) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return what the network's facts about an account mean for its posts, as labels and values for the owner."""
        return []

    def app_limits(self, chosen: Mapping[str, Any] | None = None) -> AppLimits | None:  # noqa: ARG002
        """Return what the network does to this app, or with `chosen` to a post with these options; None: nothing."""
        return None

    # --- publishing --------------------------------------------------------------------------------------------------

    @abstractmethod
    def plan(self, content: Content, options: Mapping[str, Any], /) -> Sequence[Step]:
        """Return the steps of this post. Pure: the row stores the plan."""

    @abstractmethod
    def run(self, step: str, job: Job) -> Outcome:
        """Run one step of the plan. Raises `ProviderError`, `Unfit`, and FileNotFoundError when a file is gone."""

    @abstractmethod
    def recover(self, job: Job) -> Readback | CannotTell | Done:
        """Read the account once after an unknown commit. `Done`: the commit certainly arrived, and the steps after it
        show what becomes of the post. Raises `ProviderError` when the read-back was not answered."""
