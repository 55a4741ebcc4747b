"""TikTok's accounts, shares and posts: how the bytes of a share arrive, and how it ends."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Field

from socialpub.sandbox.media import fetch, sniff
from socialpub.sandbox.memory import Table
from socialpub.sandbox.messages import KEPT_BYTES, StreamedBody

PUBLIC, FOLLOWERS, FRIENDS, ONLY_ME = (
    "PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY",
)  # fmt: skip
VIDEO, PHOTO = "VIDEO", "PHOTO"
FILE_UPLOAD, PULL_FROM_URL = "FILE_UPLOAD", "PULL_FROM_URL"
UPLOADING, DOWNLOADING = "PROCESSING_UPLOAD", "PROCESSING_DOWNLOAD"
IN_INBOX, COMPLETE, FAILED = "SEND_TO_USER_INBOX", "PUBLISH_COMPLETE", "FAILED"
OPEN = (UPLOADING, DOWNLOADING)


@dataclass(slots=True)
class TikTokAccount:
    open_id: str
    union_id: str
    username: str
    display_name: str
    private: bool = False
    comment_disabled: bool = False
    duet_disabled: bool = False
    stitch_disabled: bool = False
    max_duration: int = 600
    """Seconds."""
    banned: bool = False
    app_version: str = "36.1.0"
    """Of the TikTok app on the user's phone."""
    picture: str = ""

    @property
    def id(self) -> str:
        return self.open_id

    @property
    def privacy_options(self) -> list[str]:
        return [FOLLOWERS if self.private else PUBLIC, FRIENDS, ONLY_ME]


@dataclass(frozen=True, slots=True)
class TikTokMedia:
    """One video or photo."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int = 0
    height: int = 0


@dataclass(slots=True)
class TikTokPost:
    id: str
    """In the API for public posts only."""
    publish_id: str
    open_id: str
    username: str
    kind: str
    """`VIDEO` or `PHOTO`."""
    title: str
    description: str
    privacy: str
    media: tuple[TikTokMedia, ...]
    created_at: datetime
    options: dict[str, Any] = field(default_factory=dict)
    """The other fields of `post_info`."""
    client_key: str | None = None

    @property
    def is_public(self) -> bool:
        return self.privacy == PUBLIC


@dataclass(slots=True)
class ChunkPut:
    """One PUT: its range as sent, and the status of the response."""

    content_range: str
    size: int
    status: int


@dataclass(slots=True)
class PublishTask:
    """A share. It advances with calls for its status or with time, and ends once. A lost response changes nothing."""

    publish_id: str
    kind: str
    direct: bool
    source: str
    """`FILE_UPLOAD` or `PULL_FROM_URL`."""
    open_id: str
    username: str
    client_key: str | None
    post_info: dict[str, Any]
    created_at: datetime
    fate: str
    """What happens to it: empty, a fail reason, `never_ends`, `inbox`."""
    size: int = 0
    chunk_size: int = 0
    chunk_count: int = 0
    urls: tuple[str, ...] = ()
    upload_token: str = field(default="", repr=False)
    upload_expires_at: float = 0
    status: str = UPLOADING
    fail_reason: str = ""
    received: int = 0
    arrivals: Annotated[list[tuple[datetime, int]], Field(exclude=True)] = field(default_factory=list)
    """When each number of bytes was there."""
    puts: list[ChunkPut] = field(default_factory=list)
    media: tuple[TikTokMedia, ...] = ()
    finding: str = ""
    """The fail reason that the bytes gave."""
    whole_at: datetime | None = None
    """When all bytes were there."""
    polls: int = 0
    """Calls for the status since then."""
    ended_at: datetime | None = None
    posts: list[str] = field(default_factory=list)
    fetching: Annotated[bool, Field(exclude=True)] = False
    digest: Annotated[Any, Field(exclude=True)] = field(default_factory=hashlib.sha256, repr=False)
    head: Annotated[bytes, Field(exclude=True)] = b""

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def wants_pull(self) -> bool:
        return self.is_open and self.source == PULL_FROM_URL and self.whole_at is None and not self.fetching

    def chunk_at(self, first: int) -> tuple[int, int]:
        """Return first and last index of the chunk that begins there, by the declared plan."""
        number = first // self.chunk_size
        return first, self.size - 1 if number >= self.chunk_count - 1 else first + self.chunk_size - 1


DAY = 86400
PULL_SECONDS = 3600
TEXTS = ("title", "description", "privacy_level")


class TaskStore:
    """All shares. Their bytes arrive in chunks (videos) or by a pull from their addresses (photos). They end by calls
    for their status, by time, by their user, or by their fate."""

    def __init__(self, network: Any) -> None:  # TikTokSandbox, which imports this file
        self._network = network
        by_id = attrgetter("publish_id")
        self.all: Table[PublishTask] = network.table("tasks", PublishTask, key=by_id, on_keep=self._index)
        """By publish_id, oldest first."""
        self.posts: Table[TikTokPost] = network.table("posts", TikTokPost)
        self._open: dict[str, PublishTask] = {}
        self._of: dict[str, dict[str, PublishTask]] = {}
        self._by_token: dict[str, PublishTask] = {}
        self._pulls: set[asyncio.Task[None]] = set()

    def _index(self, task: PublishTask) -> None:
        self._of.setdefault(task.open_id, {})[task.publish_id] = task
        if task.upload_token:
            self._by_token[task.upload_token] = task
        if task.is_open:
            self._open[task.publish_id] = task
        else:
            self._open.pop(task.publish_id, None)

    def of_token(self, upload_token: str) -> PublishTask | None:
        return self._by_token.get(upload_token)

    def open_tasks(self) -> list[PublishTask]:
        return list(self._open.values())

    # --- bytes ---------------------------------------------------------------------------------------------------

    def accept_chunk(self, task: PublishTask, body: StreamedBody) -> None:
        """Add a chunk that arrived whole and fits the plan."""
        if not task.received:
            task.head = body.head
        task.digest = body.digest
        if task.size <= KEPT_BYTES and (data := body.data) is not None:
            self._network.cache.put((task.publish_id, len(task.puts)), data)
        task.received += body.size
        task.arrivals.append((self._network.now(), task.received))
        if task.received == task.size:
            self._accept_video(task)

    def _accept_video(self, task: PublishTask) -> None:
        keys = [(task.publish_id, number) for number in range(len(task.puts) + 1)]
        pieces = [piece for key in keys if (piece := self._network.cache.take(key)) is not None]
        data = b"".join(pieces) if sum(map(len, pieces)) == task.size else None
        task.finding = self._network.check_video(task, data)
        mime_type = sniff(task.head) or "video/mp4"
        self._all_bytes_arrived(
            task, [(TikTokMedia(self._network.new_id(), mime_type, task.size, task.digest.hexdigest()), data)]
        )

    def pull_in_background(self, task: PublishTask) -> None:
        if task.wants_pull:
            pull = asyncio.get_running_loop().create_task(self.pull(task))
            self._pulls.add(pull)
            pull.add_done_callback(self._pulls.discard)

    async def pull(self, task: PublishTask) -> None:
        """Fetch the photos of a share on other threads, unless this happens already."""
        if not task.wants_pull:
            return
        task.fetching = True
        loop = asyncio.get_running_loop()
        bodies: list[StreamedBody | None] = []
        for url in task.urls:
            bodies.append(await loop.run_in_executor(None, fetch, url, self._network.fetch))
            if bodies[-1] is None:
                break
        self.accept_photos(task, bodies)

    def accept_photos(self, task: PublishTask, fetched: list[StreamedBody | None]) -> None:
        task.fetching = False
        if not task.is_open:
            return
        bodies = [body for body in fetched if body is not None]
        task.received = sum(body.size for body in bodies)
        if self._network.seconds_since(task.created_at) >= PULL_SECONDS or len(bodies) < len(task.urls):
            self.fail(task, "photo_pull_failed")
            return
        arrived = []
        for body in bodies:
            finding, width, height = self._network.check_photo(body)
            task.finding = task.finding or finding
            photo = TikTokMedia(self._network.new_id(), sniff(body.head), body.size, body.sha256, width, height)
            arrived.append((photo, body.data))
        self._all_bytes_arrived(task, arrived)

    # --- progress ------------------------------------------------------------------------------------------------

    def _all_bytes_arrived(self, task: PublishTask, arrived: list[tuple[TikTokMedia, bytes | None]]) -> None:
        task.media, task.whole_at = tuple(media for media, _ in arrived), self._network.now()
        self.all.save(task)
        self.advance(task)
        for media, data in arrived:
            if data is not None:
                self._network.cache.put(media.id, data)

    def poll(self, task: PublishTask) -> None:
        """Count one call for the status."""
        noticed_at = self._network.noticed_at(task)
        if noticed_at is not None and noticed_at <= self._network.now():
            task.polls += 1
        self.advance(task)

    def advance(self, task: PublishTask, *, at_once: bool = False) -> None:
        """End the share after enough calls for its status, or enough seconds."""
        noticed_at = self._network.noticed_at(task)
        if not task.is_open or noticed_at is None or task.fate == "never_ends":
            return
        waited = self._network.seconds_since(noticed_at)
        enough = task.polls >= self._network.processing_ticks or waited >= self._network.processing_seconds
        if not at_once and not enough:
            return
        reason = task.finding if task.fate in ("", "inbox") else task.fate
        if reason:
            self.fail(task, reason)
        elif task.direct and task.fate != "inbox":
            self._complete(task, 1)
        else:
            self._end(task, IN_INBOX)

    def advance_all(self) -> None:
        for task in self.open_tasks():
            self.advance(task)

    def finish_draft(self, publish_id: str, posts: int = 1, privacy: str = "") -> list[TikTokPost]:
        """Post a draft as its user does in the app, once or several times. Raise ValueError if there is none."""
        task = self.all.get(publish_id)
        if task is None or task.status != IN_INBOX:
            raise ValueError(f"no draft {publish_id} waits in an inbox")
        if privacy:
            task.post_info["privacy_level"] = privacy
        self._complete(task, posts)
        return [self.posts[post_id] for post_id in task.posts]

    def _complete(self, task: PublishTask, count: int) -> None:
        info = task.post_info
        privacy = info.get("privacy_level") or self._network.accounts[task.open_id].privacy_options[0]
        for _ in range(count):
            post = TikTokPost(
                self._network.new_id(), task.publish_id, task.open_id, task.username, task.kind,
                info.get("title") or "", info.get("description") or "", privacy, task.media, self._network.now(),
                {name: value for name, value in info.items() if name not in TEXTS}, task.client_key,
            )  # fmt: skip
            task.posts.append(post.id)
            self.posts.save(post)
        self._end(task, COMPLETE)

    def fail(self, task: PublishTask, reason: str) -> None:
        task.fail_reason = reason
        self._end(task, FAILED)

    def _end(self, task: PublishTask, status: str) -> None:
        task.status, task.ended_at = status, self._network.now()
        self.all.save(task)

    def count_today(self, open_id: str, up_to: int, counts: Callable[[PublishTask], bool]) -> int:
        """Count the shares of the last 24 hours, up to a number."""
        count = 0
        for task in reversed(self._of.get(open_id, {}).values()):
            if count >= up_to or self._network.seconds_since(task.created_at) >= DAY:
                break
            count += counts(task)
        return count


def is_direct_post(task: PublishTask) -> bool:
    return task.direct and task.status != FAILED
