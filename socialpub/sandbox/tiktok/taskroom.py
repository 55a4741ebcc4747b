"""All shares of the network, and everything that moves them."""

import asyncio
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Call
from socialpub.sandbox.fetching import fetch
from socialpub.sandbox.inflow import KEPT_BYTES, Inflow
from socialpub.sandbox.shelf import Shelf
from socialpub.sandbox.sniff import sniff
from socialpub.sandbox.tiktok import looks
from socialpub.sandbox.tiktok.switches import COMPLETES, FATES, NEVER_ENDS
from socialpub.sandbox.tiktok.tasks import COMPLETE, FAILED, IN_INBOX, VIDEO, Media, Post, Task

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

PULL_SECONDS = 3600
DAY = 86400
TEXTS = ("title", "description", "privacy_level")


class TaskRoom:
    def __init__(self, tiktok: "TikTok") -> None:
        self._tiktok = tiktok
        self.shelf = Shelf()
        """Films and pictures, by media id; chunks on their way, by publish_id and number."""
        self.media: dict[str, Media] = {}
        self.all: dict[str, Task] = {}
        """By publish_id, oldest first."""
        self.posts: list[Post] = []
        self.fates: deque[str] = deque()
        """What becomes of the next shares, before `tiktok.fate` counts again."""
        self._open: dict[str, Task] = {}
        self._of: dict[str, list[Task]] = {}
        self._by_token: dict[str, Task] = {}
        self._pulls: set[asyncio.Task[None]] = set()

    # --- beginning -----------------------------------------------------------------------------------------------

    def begin(self, task: Task) -> None:
        if self.fates:
            task.fate = self.fates.popleft()
        if task.fate not in FATES:
            raise ValueError(f"tiktok.fate is one of {', '.join(FATES)}, not {task.fate!r}")
        self.keep(task)
        if self._tiktok.world.serving and task.wants_pull:
            pull = asyncio.get_running_loop().create_task(self.pull(task))
            self._pulls.add(pull)
            pull.add_done_callback(self._pulls.discard)

    def keep(self, task: Task) -> None:
        self.all[task.publish_id] = task
        self._of.setdefault(task.open_id, []).append(task)
        if task.upload_token:
            self._by_token[task.upload_token] = task
        if task.is_open:
            self._open[task.publish_id] = task

    def next_fate(self, fate: str, times: int = 1) -> None:
        """What becomes of the next share begun: a fail reason, `never_ends` or `completes`."""
        if fate not in FATES:
            raise ValueError(f"no such fate: {fate!r} (known: {', '.join(FATES)})")
        self.fates.extend([fate] * times)

    # --- bytes ---------------------------------------------------------------------------------------------------

    def of_token(self, token: str) -> Task | None:
        return self._by_token.get(token)

    def take_chunk(self, task: Task, flow: Inflow) -> None:
        """A chunk that came whole and fits the plan."""
        if not task.received:
            task.head = flow.head
        task.digest = flow.digest
        if task.size <= KEPT_BYTES and (data := flow.data) is not None:
            self.shelf.put((task.publish_id, len(task.puts)), data)
        task.received += flow.size
        if task.received == task.size:
            self._film_is_whole(task)

    def _film_is_whole(self, task: Task) -> None:
        keys = [(task.publish_id, number) for number in range(len(task.puts) + 1)]
        pieces = [piece for key in keys if (piece := self.shelf.take(key)) is not None]
        data = b"".join(pieces) if sum(map(len, pieces)) == task.size else None
        self._take_film(task, task.head, data, task.size, task.digest.hexdigest())

    def _take_film(self, task: Task, head: bytes, data: bytes | None, size: int, sha256: str) -> None:
        tiktok = self._tiktok
        task.finding = looks.at_film(head, data, tiktok.users[task.open_id].max_duration, tiktok.probes_video)
        media = Media(tiktok.world.new_id(), sniff(head) or "video/mp4", size, sha256)
        self._is_whole(task, (media,))
        if data is not None:
            self.shelf.put(media.id, data)

    def _is_whole(self, task: Task, media: tuple[Media, ...]) -> None:
        task.media = media
        self.media |= {item.id: item for item in media}
        task.whole_at = self._tiktok.world.now()
        self._tiktok.journal_whole(task)
        self.advance(task)

    # --- pulls ---------------------------------------------------------------------------------------------------

    async def pull(self, task: Task) -> None:
        """Fetch what the task points to, on other threads; nothing when somebody does so already."""
        if not task.wants_pull:
            return
        task.fetching = True
        loop = asyncio.get_running_loop()
        flows: list[Inflow | None] = []
        for url in task.urls:
            flows.append(await loop.run_in_executor(None, fetch, url, self._tiktok.fetch))
            if flows[-1] is None:
                break
        self._took(task, flows)

    async def pull_for_look(self, call: Call) -> None:
        """Before a look at the status: what it will be about."""
        try:
            publish_id = call.json().get("publish_id")
        except (ValueError, AttributeError):
            return
        task = self.all.get(publish_id) if isinstance(publish_id, str) else None
        if task is not None:
            await self.pull(task)

    def _took(self, task: Task, flows: list[Inflow | None]) -> None:
        task.fetching = False
        if not task.is_open:
            return
        late = (self._tiktok.world.now() - task.created_at).total_seconds() >= PULL_SECONDS
        got = [flow for flow in flows if flow is not None]
        task.received = sum(flow.size for flow in got)
        if late or len(got) < len(task.urls):
            self._fail(task, "video_pull_failed" if task.kind == VIDEO else "photo_pull_failed")
        elif task.kind == VIDEO:
            self._take_film(task, got[0].head, got[0].data, got[0].size, got[0].sha256)
        else:
            self._take_photos(task, got)

    def _take_photos(self, task: Task, flows: list[Inflow]) -> None:
        media = []
        for flow in flows:
            finding, width, height = looks.at_photo(flow)
            task.finding = task.finding or finding
            new_id = self._tiktok.world.new_id()
            media.append(Media(new_id, sniff(flow.head), flow.size, flow.sha256, width, height))
        self._is_whole(task, tuple(media))
        for item, flow in zip(media, flows, strict=True):
            if (data := flow.data) is not None:
                self.shelf.put(item.id, data)

    # --- how it goes on ------------------------------------------------------------------------------------------

    def look(self, task: Task) -> None:
        if task.whole_at is not None:
            task.looks += 1
        self.advance(task)

    def advance(self, task: Task, *, at_once: bool = False) -> None:
        """End the task when it is time: enough looks, enough seconds."""
        tiktok = self._tiktok
        if not task.is_open or task.whole_at is None or task.fate == NEVER_ENDS:
            return
        waited = (tiktok.world.now() - task.whole_at).total_seconds()
        if at_once or task.looks >= tiktok.processing_ticks or waited >= tiktok.processing_seconds:
            reason = task.finding if task.fate == COMPLETES else task.fate
            if reason:
                self._fail(task, reason)
            elif task.direct:
                self._complete(task, 1)
            else:
                self._end(task, IN_INBOX)

    def advance_all(self) -> None:
        for task in list(self._open.values()):
            self.advance(task)

    def catch_up(self) -> None:
        """As if enough time had passed: what can be pulled is pulled, what is whole ends. Blocks."""
        for task in list(self._open.values()):
            if task.wants_pull:
                self._took(task, [fetch(url, self._tiktok.fetch) for url in task.urls])
            self.advance(task, at_once=True)

    async def pull_all(self) -> None:
        for task in list(self._open.values()):
            await self.pull(task)

    def finish_draft(self, publish_id: str, posts: int = 1, privacy: str = "") -> list[Post]:
        """The user opens the draft in the app and posts it, once or several times; ValueError when it lies there no
        more."""
        task = self.all.get(publish_id)
        if task is None or task.status != IN_INBOX:
            raise ValueError(f"no draft {publish_id} waits in an inbox")
        if privacy:
            task.post_info["privacy_level"] = privacy
        self._complete(task, posts)
        return task.posts

    def cancel(self, task: Task) -> None:
        self._fail(task, "publish_cancelled")

    def remove_access(self, open_id: str) -> None:
        """The user takes the app's permission back while something is on its way."""
        for task in list(self._open.values()):
            if task.open_id == open_id:
                self._fail(task, "auth_removed")

    def _complete(self, task: Task, posts: int) -> None:
        now = self._tiktok.world.now()
        new_ids = [self._tiktok.world.new_id() for _ in range(posts)]
        self.publish(task, new_ids, now)
        self._end(task, COMPLETE)

    def publish(self, task: Task, ids: list[str], at: datetime) -> None:
        user = self._tiktok.users[task.open_id]
        info: dict[str, Any] = task.post_info
        privacy = info.get("privacy_level") or user.privacy_options[0]
        for post_id in ids:
            post = Post(
                post_id, task.publish_id, task.open_id, task.username, task.kind, info.get("title") or "",
                info.get("description") or "", privacy, task.media, at,
                {name: value for name, value in info.items() if name not in TEXTS}, task.client_key,
            )  # fmt: skip
            task.posts.append(post)
            self.posts.append(post)

    def _fail(self, task: Task, reason: str) -> None:
        task.fail_reason = reason
        self._end(task, FAILED)

    def _end(self, task: Task, status: str) -> None:
        task.status = status
        task.ended_at = self._tiktok.world.now()
        self._open.pop(task.publish_id, None)
        self._tiktok.journal_ended(task)

    def forget_open(self, task: Task) -> None:
        self._open.pop(task.publish_id, None)

    # --- what is counted -----------------------------------------------------------------------------------------

    def direct_posts_today(self, open_id: str, up_to: int) -> int:
        """Direct posts of the last 24 hours that did not fail, counted up to a number."""
        return self._count(open_id, up_to, lambda task: task.direct and task.status != FAILED)

    def pending_today(self, open_id: str, up_to: int) -> int:
        """Drafts of the last 24 hours that their user has not posted."""
        return self._count(open_id, up_to, lambda task: not task.direct and task.status not in (FAILED, COMPLETE))

    def _count(self, open_id: str, up_to: int, counts: Any) -> int:
        found, now = 0, self._tiktok.world.now()
        for task in reversed(self._of.get(open_id, ())):
            if found >= up_to or (now - task.created_at).total_seconds() >= DAY:
                break
            found += bool(counts(task))
        return found
