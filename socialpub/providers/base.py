"""What a network is to the rest of the house: content in, steps, outcomes.

An adapter sleeps nowhere, retries nothing, reads no clock and keeps no state. It is handed a `Job`, holds one
conversation, and returns an outcome or raises one of `errors.py`. Whoever runs it decides what to do with either.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from socialpub.providers.http import Answer, Http

Options = dict[str, Any]
Memo = dict[str, Any]
"""What a delivery remembers between steps: JSON, no secrets. Sentences under `notes` are shown with the post."""


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


# --- what is published -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One media item. `facts` was measured at `complete`; keys that do not apply are missing.

    width, height (pixels, upright), frames, duration_seconds, frame_rate, has_audio, video_codec (FFmpeg's name)
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


# --- who publishes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Account:
    """The profile as the network sees it. `facts` is what the network said at connect time (X: `subscription_type`)."""

    id: str
    username: str | None = None
    scopes: frozenset[str] = frozenset()
    """Granted scopes; empty when the network or the owner did not say: then nothing is concluded from it."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Identity:
    account_id: str
    username: str | None
    name: str | None
    picture_url: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A token answer. `None` means the network did not say; an absent refresh token never overwrites a stored one."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_in_seconds: int | None = None
    refresh_expires_in_seconds: int | None = None
    scopes: frozenset[str] | None = None


class OAuth(Protocol):
    """One network's side of tokens. Errors: `errors.py`; a refused refresh raises `Rejected`, with `reauth` set when
    the owner has to consent again."""

    @property
    def refresh_early_seconds(self) -> int:
        """Refresh when the access token has less than this left."""
        ...

    @property
    def idle_refresh_seconds(self) -> int:
        """Refresh a pair that nobody has used for this long, before the network forgets it."""
        ...

    @property
    def revokes_every_grant(self) -> bool:
        """Whether giving one token back may end what another consent of the same account brought."""
        ...

    def authorize_url(self, redirect_uri: str, state: str, verifier: str) -> str:
        """The consent page for one connection. `verifier` is PKCE's, 43 to 128 characters."""
        ...

    def exchange(self, http: "Http", code: str, redirect_uri: str, verifier: str) -> Tokens:
        """Trade the code of a consent for tokens, once and at once. `redirect_uri` is the very one of the consent.

        Raises `Rejected` with `reauth` when the owner must begin again, without it when the app's settings are wrong.
        """
        ...

    def identify(self, http: "Http", access_token: str, scopes: frozenset[str]) -> Identity: ...

    def refresh(self, http: "Http", refresh_token: str) -> Tokens: ...

    def revoke(self, http: "Http", access_token: str, refresh_token: str | None) -> None: ...

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        """What this grant cannot do, as sentences; empty when nothing is missing or nothing is known."""
        ...

    def can_publish(self, scopes: frozenset[str]) -> bool:
        """Whether one way of publishing remains."""
        ...


# --- how it went -----------------------------------------------------------------------------------------------------


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
    """Back to an earlier step, counted by the caller: at most `limit` times per delivery for this `reason`."""

    step: str
    memo: Memo
    reason: str
    limit: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask the same step again in `seconds`; waiting is not failing. `reason` is shown ("X is processing the video")."""

    seconds: float
    reason: str
    memo: Memo = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """The app, not this post: hold the whole network and probe slowly."""

    reason: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Exactly one post is up."""

    post_id: str | None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Certain that nothing was posted. `message` says what to change. `reauth`: the owner must connect again.

    `rest_seconds`: leave this profile alone for that long (a suspended or cooling account). `verdict`: the network
    said of this very post that it failed; only then does it count from a poll after the commit."""

    message: str
    code: str | None = None
    reauth: bool = False
    rest_seconds: float = 0.0
    verdict: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may be up: read the account back."""

    message: str
    code: str | None = None


Outcome = Done | More | Again | Wait | Held | Published | Refused | Unknown


# --- reading back ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """One answered, readable look at the account: everything there that could be this post, oldest first.

    An empty `candidates` says "not there at this moment"; only the caller decides when that has been seen often
    enough. A look that was not answered raises instead."""

    candidates: tuple[Published, ...] = ()
    whole: bool = True
    """False: only one task was asked about, not the account. Another one may hold the post, if somebody else began
    another one."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The network offers no way to find out. `hint` says where the owner can look."""

    hint: str


# --- the job ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Seen:
    """What the last call showed, for the attempt's row."""

    request_id: str | None = None
    code: str | None = None
    message: str | None = None
    """Shown with a step that went well; never a secret."""
    answered: bool = False
    """Whether any call was answered; noted by the engine."""


class Caller(Protocol):
    """`Http.call` with the gate before it: see `http.py` for the arguments."""

    def __call__(self, method: str, url: str, **kwargs: Any) -> "Answer": ...


def _no_key(_: str) -> str:
    raise ValueError("this job was given no key to seal with")


def _no_address(_: "MediaFile") -> str:
    raise ValueError("this job was given no address to serve files from")


@dataclass(slots=True)
class Job:
    """Everything one run of one step may know and use."""

    content: Content
    options: Mapping[str, Any]
    """As accepted by the adapter's `read_options`: canonical camelCase keys only."""
    account: Account
    memo: Memo
    token: str = field(repr=False)
    call: Caller
    """Raises `Withdrawn` when the profile was disconnected or the post stopped meanwhile."""
    fit: Callable[[MediaFile, ImageLimits], MediaFile]
    """A version of the image within the limits (the file itself when it fits). Raises `Unfit`."""
    now: datetime
    """When this run began."""
    slice_over: Callable[[], bool]
    """True when this run has had its ten seconds: return `More` and come back."""
    committed_at: datetime | None = None
    """When the commit was announced; set in `recover`."""
    unknown_before: bool = False
    """The commit has run once before with an unknown outcome (a "duplicate" answer is then good news)."""
    public_url: Callable[[MediaFile], str] = field(default=_no_address, repr=False)
    """A signed address under which the network can fetch exactly this file, an original or a fitted version. It is a
    secret: made anew for each call and never kept."""
    seal: Callable[[str], str] = field(default=_no_key, repr=False)
    """Encrypts what must wait in the memo although it is a secret (a signed upload address)."""
    open: Callable[[str], str] = field(default=_no_key, repr=False)
    """The text of `seal`."""
    seen: Seen = field(default_factory=Seen)


class Withdrawn(Exception):
    """Nothing may be sent any more: the profile was disconnected or the post stopped."""


class Unfit(Exception):
    """No version of this file satisfies the limits; the message says which limit and the found value."""


class Provider(Protocol):
    @property
    def name(self) -> str:
        """As in the API: `x`, `tiktok`, `pinterest`."""
        ...

    @property
    def label(self) -> str:
        """As people write it: `X`, `TikTok`, `Pinterest`."""
        ...

    @property
    def oauth(self) -> OAuth: ...

    def read_options(self, given: Mapping[str, Any]) -> tuple[Options, list[Problem]]:
        """Canonical options and what is wrong with the given ones (paths start with `providerOptions`)."""
        ...

    def merge_options(self, stored: Mapping[str, Any], own: Mapping[str, Any]) -> Options:
        """Stored defaults under a post's own keys, which win in whatever spelling they come."""
        ...

    def check(self, content: Content, options: Mapping[str, Any], account: Account) -> list[Problem]:
        """Everything about this post that the network would refuse. Pure; `validate` and the engine ask the same."""
        ...

    def notes(self, content: Content, options: Mapping[str, Any]) -> list[str]:
        """What the owner may like to know although nothing is wrong."""
        ...

    def plan(self, content: Content, options: Mapping[str, Any]) -> Sequence[Step]: ...

    def run(self, step: str, job: Job) -> Outcome: ...

    def recover(self, job: Job) -> Look | CannotTell | Done:
        """One look at the account after an unknown commit. `Done`: the commit certainly arrived, and the steps after
        it tell what becomes of the post."""
        ...


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key that a misspelt one was probably meant to be."""
    import difflib

    matches = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None
