"""How the bytes of a share reach TikTok: in chunks that are sent to it, or pulled from an address."""

import asyncio

from socialpub.sandbox.context import SandboxContext
from socialpub.sandbox.fetch import fetch
from socialpub.sandbox.sniff import sniff
from socialpub.sandbox.streamed_body import KEPT_BYTES, StreamedBody
from socialpub.sandbox.tiktok.media_checks import check_photo, check_video
from socialpub.sandbox.tiktok.models import VIDEO, PublishTask, TikTokAccount, TikTokMedia
from socialpub.sandbox.tiktok.switches import TikTokSwitches
from socialpub.sandbox.tiktok.task_store import TaskStore

PULL_SECONDS = 3600


class MediaIntake:
    def __init__(
        self,
        switches: TikTokSwitches,
        context: SandboxContext,
        accounts: dict[str, TikTokAccount],
        tasks: TaskStore,
    ) -> None:
        self._switches = switches
        self._context = context
        self._accounts = accounts
        self._tasks = tasks
        self._pulls: set[asyncio.Task[None]] = set()

    # --- chunks --------------------------------------------------------------------------------------------------

    def take_chunk(self, task: PublishTask, body: StreamedBody) -> None:
        """A chunk that came whole and fits the plan."""
        if not task.received:
            task.head = body.head
        task.digest = body.digest
        if task.size <= KEPT_BYTES and (data := body.data) is not None:
            self._tasks.cache.put((task.publish_id, len(task.puts)), data)
        task.received += body.size
        task.arrivals.append((self._context.clock.now(), task.received))
        if task.received == task.size:
            self._take_chunked_video(task)

    def _take_chunked_video(self, task: PublishTask) -> None:
        keys = [(task.publish_id, number) for number in range(len(task.puts) + 1)]
        pieces = [piece for key in keys if (piece := self._tasks.cache.take(key)) is not None]
        data = b"".join(pieces) if sum(map(len, pieces)) == task.size else None
        self._take_video(task, task.head, data, task.size, task.digest.hexdigest())

    # --- pulls ---------------------------------------------------------------------------------------------------

    def pull_in_background(self, task: PublishTask) -> None:
        if task.wants_pull:
            pull = asyncio.get_running_loop().create_task(self.pull(task))
            self._pulls.add(pull)
            pull.add_done_callback(self._pulls.discard)

    async def pull(self, task: PublishTask) -> None:
        """Fetch what the task points to, on other threads; nothing when somebody does so already."""
        if not task.wants_pull:
            return
        task.fetching = True
        loop = asyncio.get_running_loop()
        bodies: list[StreamedBody | None] = []
        for url in task.urls:
            bodies.append(await loop.run_in_executor(None, fetch, url, self._switches.fetch))
            if bodies[-1] is None:
                break
        self._take_pulled(task, bodies)

    async def pull_all(self) -> None:
        for task in self._tasks.open_tasks():
            await self.pull(task)

    def catch_up(self) -> None:
        """As if enough time had passed: what can be pulled is pulled, what is whole ends. Blocks."""
        for task in self._tasks.open_tasks():
            if task.wants_pull:
                self._take_pulled(task, [fetch(url, self._switches.fetch) for url in task.urls])
            self._tasks.advance(task, at_once=True)

    def _take_pulled(self, task: PublishTask, bodies: list[StreamedBody | None]) -> None:
        task.fetching = False
        if not task.is_open:
            return
        late = (self._context.clock.now() - task.created_at).total_seconds() >= PULL_SECONDS
        got = [body for body in bodies if body is not None]
        task.received = sum(body.size for body in got)
        if late or len(got) < len(task.urls):
            self._tasks.fail(task, "video_pull_failed" if task.kind == VIDEO else "photo_pull_failed")
        elif task.kind == VIDEO:
            self._take_video(task, got[0].head, got[0].data, got[0].size, got[0].sha256)
        else:
            self._take_photos(task, got)

    # --- what arrived --------------------------------------------------------------------------------------------

    def _take_video(self, task: PublishTask, head: bytes, data: bytes | None, size: int, sha256: str) -> None:
        longest = self._accounts[task.open_id].max_duration
        task.finding = check_video(head, data, longest, self._switches.probes_video)
        media = TikTokMedia(self._context.ids.new(), sniff(head) or "video/mp4", size, sha256)
        self._tasks.all_bytes_arrived(task, (media,))
        if data is not None:
            self._tasks.cache.put(media.id, data)

    def _take_photos(self, task: PublishTask, bodies: list[StreamedBody]) -> None:
        media = []
        for body in bodies:
            finding, width, height = check_photo(body)
            task.finding = task.finding or finding
            new_id = self._context.ids.new()
            media.append(TikTokMedia(new_id, sniff(body.head), body.size, body.sha256, width, height))
        self._tasks.all_bytes_arrived(task, tuple(media))
        for item, body in zip(media, bodies, strict=True):
            if (data := body.data) is not None:
                self._tasks.cache.put(item.id, data)
