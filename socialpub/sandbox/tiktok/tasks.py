"""TikTok's shares: how their bytes arrive, and how they end."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from socialpub.sandbox.media import FateQueue, dimensions, fetch, probe_video, sniff
from socialpub.sandbox.memory import from_facts, json_facts
from socialpub.sandbox.messages import KEPT_BYTES, StreamedBody
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.tiktok.models import (
    COMPLETE,
    COMPLETES,
    FAILED,
    FATES,
    FILE_UPLOAD,
    IN_INBOX,
    INBOX,
    NEVER_ENDS,
    PublishTask,
    TikTokAccount,
    TikTokMedia,
    TikTokPost,
    TikTokSwitches,
)

VIDEOS = ("video/mp4", "video/quicktime", "video/webm")
PHOTOS = ("image/jpeg", "image/webp")
PHOTO_BYTES = 20_000_000
PHOTO_SHORT_SIDE = 1080
FRAME_RATES = (23, 60)
SIDES = (360, 4096)


def check_video(head: bytes, data: bytes | None, longest_seconds: int, probe: bool) -> str:
    """Return a fail reason, or an empty text. `data` is None when it was not kept."""
    if sniff(head) not in VIDEOS:
        return "file_format_check_failed"
    if not probe or data is None:
        return ""
    found = probe_video(data)
    if found is None:
        return "file_format_check_failed"
    if found.seconds > longest_seconds + 0.5:
        return "duration_check_failed"
    if found.frame_rate and not FRAME_RATES[0] <= round(found.frame_rate) <= FRAME_RATES[1]:
        return "frame_rate_check_failed"
    if min(found.width, found.height) < SIDES[0] or max(found.width, found.height) > SIDES[1]:
        return "picture_size_check_failed"
    return ""


def check_photo(body: StreamedBody) -> tuple[str, int, int]:
    """Return a fail reason or an empty text, width, height."""
    data = body.data
    if data is None or body.size > PHOTO_BYTES or sniff(body.head) not in PHOTOS:
        return "file_format_check_failed", 0, 0
    width, height = dimensions(data)
    if not width:
        return "file_format_check_failed", 0, 0
    return ("picture_size_check_failed" if min(width, height) > PHOTO_SHORT_SIDE else ""), width, height


DAY = 86400
PULL_SECONDS = 3600
TEXTS = ("title", "description", "privacy_level")
JOURNALED = (
    "publish_id", "direct", "source", "open_id", "username", "client_key", "post_info", "fate", "size",
    "chunk_size", "chunk_count", "urls", "upload_token", "upload_expires_at", "status", "created_at",
)  # fmt: skip


class TaskStore:
    """All shares. Their bytes arrive in chunks (videos) or by a pull from their addresses (photos). They end by calls
    for their status, by time, by their user, or by their fate."""

    def __init__(self, switches: TikTokSwitches, network: SandboxNetwork[TikTokAccount]) -> None:
        self._switches = switches
        self._network = network
        self.all: dict[str, PublishTask] = {}
        """By publish_id, oldest first."""
        self.posts: list[TikTokPost] = []
        self.fates = FateQueue(FATES)
        """What happens to the next shares, before `tiktok.fate` counts again."""
        self._open: dict[str, PublishTask] = {}
        self._of: dict[str, list[PublishTask]] = {}
        self._by_token: dict[str, PublishTask] = {}
        self._pulls: set[asyncio.Task[None]] = set()

    # --- beginning -----------------------------------------------------------------------------------------------

    def begin(self, task: PublishTask) -> None:
        task.fate = self.fates.take(task.fate)
        self._keep(task)
        self._network.write("task", media=task.kind, **json_facts(task, JOURNALED))

    def _keep(self, task: PublishTask) -> None:
        self.all[task.publish_id] = task
        self._of.setdefault(task.open_id, []).append(task)
        if task.upload_token:
            self._by_token[task.upload_token] = task
        if task.is_open:
            self._open[task.publish_id] = task

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
        longest = self._network.accounts[task.open_id].max_duration
        task.finding = check_video(task.head, data, longest, self._switches.probes_video)
        mime_type = sniff(task.head) or "video/mp4"
        media = TikTokMedia(self._network.new_id(), mime_type, task.size, task.digest.hexdigest())
        self.all_bytes_arrived(task, (media,))
        if data is not None:
            self._network.cache.put(media.id, data)

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
            bodies.append(await loop.run_in_executor(None, fetch, url, self._switches.fetch))
            if bodies[-1] is None:
                break
        self._accept_photos(task, bodies)

    async def pull_all(self) -> None:
        for task in self.open_tasks():
            await self.pull(task)

    def catch_up(self) -> None:
        """Pull everything and end what is whole, as if enough time had passed. Blocks."""
        for task in self.open_tasks():
            if task.wants_pull:
                self._accept_photos(task, [fetch(url, self._switches.fetch) for url in task.urls])
            self.advance(task, at_once=True)

    def _accept_photos(self, task: PublishTask, fetched: list[StreamedBody | None]) -> None:
        task.fetching = False
        if not task.is_open:
            return
        bodies = [body for body in fetched if body is not None]
        task.received = sum(body.size for body in bodies)
        late = (self._network.now() - task.created_at).total_seconds() >= PULL_SECONDS
        if late or len(bodies) < len(task.urls):
            self.fail(task, "photo_pull_failed")
            return
        media = []
        for body in bodies:
            finding, width, height = check_photo(body)
            task.finding = task.finding or finding
            new_id = self._network.new_id()
            media.append(TikTokMedia(new_id, sniff(body.head), body.size, body.sha256, width, height))
        self.all_bytes_arrived(task, tuple(media))
        for item, body in zip(media, bodies, strict=True):
            if (data := body.data) is not None:
                self._network.cache.put(item.id, data)

    # --- progress ------------------------------------------------------------------------------------------------

    def all_bytes_arrived(self, task: PublishTask, media: tuple[TikTokMedia, ...]) -> None:
        task.media = media
        task.whole_at = self._network.now()
        self._network.write(
            "whole",
            publish_id=task.publish_id,
            at=task.whole_at.isoformat(),
            media=[asdict(item) for item in media],
            finding=task.finding,
        )
        self.advance(task)

    def poll(self, task: PublishTask) -> None:
        """Count one call for the status."""
        noticed_at = self._noticed_at(task)
        if noticed_at is not None and noticed_at <= self._network.now():
            task.polls += 1
        self.advance(task)

    def advance(self, task: PublishTask, *, at_once: bool = False) -> None:
        """End the share after enough calls for its status, or enough seconds."""
        noticed_at = self._noticed_at(task)
        if not task.is_open or noticed_at is None or task.fate == NEVER_ENDS:
            return
        waited = (self._network.now() - noticed_at).total_seconds()
        enough = task.polls >= self._switches.processing_ticks or waited >= self._switches.processing_seconds
        if not at_once and not enough:
            return
        reason = task.finding if task.fate in (COMPLETES, INBOX) else task.fate
        if reason:
            self.fail(task, reason)
        elif task.direct and task.fate != INBOX:
            self._complete(task, 1)
        else:
            self._end(task, IN_INBOX)

    def counted(self, task: PublishTask) -> int:
        """Return the number of bytes that the status shows. Chunks may be noticed late."""
        if task.source != FILE_UPLOAD or not task.is_open:
            return task.received
        return task.received_by(self._network.now() - timedelta(seconds=self._switches.count_lag_seconds))

    def _noticed_at(self, task: PublishTask) -> datetime | None:
        """Return when TikTok notices that all bytes are there, or None."""
        if task.whole_at is None or task.source != FILE_UPLOAD:
            return task.whole_at
        return task.whole_at + timedelta(seconds=self._switches.count_lag_seconds)

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
        return task.posts

    def remove_access(self, open_id: str) -> None:
        for task in self.open_tasks():
            if task.open_id == open_id:
                self.fail(task, "auth_removed")

    def _complete(self, task: PublishTask, posts: int) -> None:
        self._publish(task, [self._network.new_id() for _ in range(posts)], self._network.now())
        self._end(task, COMPLETE)

    def _publish(self, task: PublishTask, ids: list[str], at: datetime) -> None:
        info: dict[str, Any] = task.post_info
        privacy = info.get("privacy_level") or self._network.accounts[task.open_id].privacy_options[0]
        for post_id in ids:
            post = TikTokPost(
                post_id, task.publish_id, task.open_id, task.username, task.kind, info.get("title") or "",
                info.get("description") or "", privacy, task.media, at,
                {name: value for name, value in info.items() if name not in TEXTS}, task.client_key,
            )  # fmt: skip
            task.posts.append(post)
            self.posts.append(post)

    def fail(self, task: PublishTask, reason: str) -> None:
        task.fail_reason = reason
        self._end(task, FAILED)

    def _end(self, task: PublishTask, status: str) -> None:
        task.status = status
        task.ended_at = self._network.now()
        self._open.pop(task.publish_id, None)
        self._network.write(
            "ended",
            publish_id=task.publish_id,
            status=task.status,
            fail_reason=task.fail_reason,
            posts=[post.id for post in task.posts],
            privacy=task.post_info.get("privacy_level", ""),
            at=task.ended_at.isoformat(),
        )

    # --- counts --------------------------------------------------------------------------------------------------

    def direct_posts_today(self, open_id: str, up_to: int) -> int:
        """Count the direct posts of the last 24 hours that did not fail, up to a number."""
        return self._count(open_id, up_to, lambda task: task.direct and task.status != FAILED)

    def pending_today(self, open_id: str, up_to: int) -> int:
        """Count the drafts of the last 24 hours that their user has not posted, up to a number."""
        return self._count(open_id, up_to, lambda task: not task.direct and task.status not in (FAILED, COMPLETE))

    def _count(self, open_id: str, up_to: int, counts: Callable[[PublishTask], bool]) -> int:
        found, now = 0, self._network.now()
        for task in reversed(self._of.get(open_id, ())):
            if found >= up_to or (now - task.created_at).total_seconds() >= DAY:
                break
            found += counts(task)
        return found

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_task(self, media: str, **facts: Any) -> None:
        self._network.reserve_id(facts["publish_id"].rpartition(".")[2])
        self._keep(from_facts(PublishTask, facts | {"kind": media}))

    def replay_whole(self, publish_id: str, at: str, media: list[dict[str, Any]], finding: str) -> None:
        task = self.all[publish_id]
        task.media = tuple(TikTokMedia(**item) for item in media)
        for item in task.media:
            self._network.reserve_id(item.id)
        task.received = sum(item.size for item in task.media)
        task.whole_at, task.finding = datetime.fromisoformat(at), finding
        task.arrivals = [(task.whole_at, task.received)]

    def replay_ended(
        self, publish_id: str, status: str, fail_reason: str, posts: list[str], privacy: str, at: str
    ) -> None:
        task = self.all[publish_id]
        task.status, task.fail_reason, task.ended_at = status, fail_reason, datetime.fromisoformat(at)
        self._open.pop(task.publish_id, None)
        if privacy:
            task.post_info["privacy_level"] = privacy
        for post_id in posts:
            self._network.reserve_id(post_id)
        self._publish(task, posts, task.ended_at)
