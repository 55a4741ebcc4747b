"""Reads the outcome of a task: TikTok has no list of posts, so socialpub polls by publish_id until TikTok's verdict.

The publish_id is enough, so a new token or another process can continue. A post id is not a sign of success: only
public posts get one, and late. One other case counts as a verdict. If TikTok still counts too few bytes long after the
upload URL has expired, the video can no longer become a post.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Again, CannotTell, Done, Job, Outcome, Published, Readback, Refused, Wait
from socialpub.providers.error_table import Action, ErrorBody, ErrorRow, find_row
from socialpub.providers.responses import NoAnswer, ProviderError, shortened, text_at
from socialpub.providers.tiktok import limits, options
from socialpub.providers.tiktok.client import FAIL_REASONS, call
from socialpub.providers.tiktok.options import is_draft

COMPLETE = "PUBLISH_COMPLETE"
IN_INBOX = "SEND_TO_USER_INBOX"
FAILED = "FAILED"

INBOX_NOTE = "The post is in the TikTok inbox. Open the notification in TikTok's app and finish the post there."
IN_INBOX_KEY = "in_inbox"
"""In the memo: the owner gets a notification."""
CADENCE_SECONDS = ((60.0, 5.0), (600.0, 15.0), (3600.0, 60.0))
"""Age of the commit, and the pause between two polls until that age."""
SLOWEST_SECONDS = 900.0
UNCONFIRMED_AFTER_SECONDS = 1800.0
"""The age at which the reason says that TikTok has not confirmed."""
SETTLED_SECONDS = 3600.0
"""How long TikTok's byte count must stay the same after the upload URL expires. The count may lag by minutes, and
TikTok may still accept a last chunk that began in time."""

_LINK = re.compile(r"(https?)://[!-~]+")


# --- the state of a task ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """TikTok's state of a task. An unknown `status` means that TikTok is still working on it."""

    status: str
    fail_reason: str | None = None
    post_ids: tuple[str, ...] = ()
    uploaded_bytes: int | None = None

    def has_all(self, total_bytes: int) -> bool:
        if self.status in (COMPLETE, IN_INBOX, FAILED):
            return True
        return self.uploaded_bytes is not None and self.uploaded_bytes >= total_bytes

    def describe_count(self, total_bytes: int) -> str:
        if self.uploaded_bytes is None:
            return "TikTok does not report how many bytes of the video arrived."
        return f"TikTok has {self.uploaded_bytes} of {total_bytes} bytes."


def fetch_status(job: Job, section: TikTokSection) -> TaskStatus:
    """Return the state of this job's task. Raises as `client.call`, and `NoAnswer` when the response has no state."""
    data = call(job, section, "post/publish/status/fetch/", {"publish_id": job.memo["publish_id"]})
    status = text_at(data, "status")
    if status is None:
        raise NoAnswer("TikTok did not report the state of the post.", request_id=job.trace.request_id)
    uploaded = data.get("uploaded_bytes")
    return TaskStatus(
        status,
        text_at(data, "fail_reason"),
        _post_ids(data),
        uploaded if type(uploaded) is int and uploaded >= 0 else None,
    )


def read_published(job: Job, section: TikTokSection, task: TaskStatus) -> Published:
    """Return the post. If one draft became several posts, the first id counts."""
    if not task.post_ids:
        return Published(None)
    post_id = task.post_ids[0]
    url = _share_url(job, section, post_id)
    username = job.memo.get("creator", {}).get("username") or job.account.username
    if url is None and username:
        # TikTok does not document a URL for photos, but this URL works.
        kind = "video" if job.content.has_video else "photo"
        url = f"{section.site_url}/@{username}/{kind}/{post_id}"
    return Published(post_id, url)


def _share_url(job: Job, section: TikTokSection, post_id: str) -> str | None:
    """Return TikTok's own URL of the post, or None without the permission or after any error."""
    if limits.SCOPE_LIST not in job.account.scopes:
        return None
    try:
        data = call(job, section, "video/query/?fields=id,share_url", {"filters": {"video_ids": [post_id]}})
    except ProviderError:
        return None
    videos = data.get("videos")
    for video in videos if isinstance(videos, list) else ():
        url = text_at(video, "share_url") if isinstance(video, Mapping) else None
        if url is None or str(video.get("id")) != post_id or not (link := _LINK.fullmatch(url)):
            continue
        # A simulated TikTok may show its posts by http.
        if link[1] == "https" or section.api_url != section.OWN_API_URL:
            return url
    return None


def _post_ids(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids: numbers or digit strings, under TikTok's misspelled key or the correct key."""
    ids = data.get("publicaly_available_post_id") or data.get("publicly_available_post_id")
    listed = ids if isinstance(ids, list) else [ids]
    numbers = (str(post_id) for post_id in listed if isinstance(post_id, int | str) and not isinstance(post_id, bool))
    return tuple(number for number in numbers if re.fullmatch(r"[1-9][0-9]{0,30}", number))


# --- after an unknown commit, and after a published one ---------------------------------------------------------------


def check_account(job: Job, section: TikTokSection) -> Readback | CannotTell | Done:
    """Read a task back after an unknown commit. Return `Done` when all bytes arrived: then only the verdict counts."""
    if "publish_id" not in job.memo:
        return CannotTell(
            "TikTok did not return a publish_id, and socialpub cannot find the post without this id. Check the profile "
            "and the inbox in TikTok's app before you create the post again."
        )
    task = fetch_status(job, section)
    lacking = task.uploaded_bytes is not None and not task.has_all(job.content.media[0].size_bytes)
    return Readback(whole=False) if lacking else Done(job.memo)


def fill_in(job: Job, section: TikTokSection) -> Published | None:
    """Return the id and the URL of a published post. None: TikTok has not reported them, and may never do so."""
    task = fetch_status(job, section)
    return read_published(job, section, task) if task.status == COMPLETE and task.post_ids else None


# --- the verdict ------------------------------------------------------------------------------------------------------


def await_outcome(job: Job, section: TikTokSection) -> Outcome:
    task = fetch_status(job, section)
    match task.status:
        case status if status == COMPLETE:
            return read_published(job, section, task)
        case status if status == IN_INBOX:
            return _in_inbox(job)
        case status if status == FAILED:
            return _failed(job, task.fail_reason)
        case _:
            return _check_byte_count(job, task) or _not_yet(job)


def settle_draft(job: Job, section: TikTokSection) -> Outcome:  # noqa: ARG001
    return Published(None)


def _in_inbox(job: Job) -> Outcome:
    """End a delivered draft. TikTok may also put a direct post into the inbox: store the note first, then end."""
    notes = job.memo.get("notes", ())
    if INBOX_NOTE in notes:
        return Done(job.memo) if is_draft(job.options) else Published(None)
    memo = {**job.memo, "notes": [*notes, INBOX_NOTE], IN_INBOX_KEY: True}
    if not is_draft(job.options):
        return Wait(1.0, INBOX_NOTE, memo)
    job.trace.message = INBOX_NOTE
    return Done(memo)


def _check_byte_count(job: Job, task: TaskStatus) -> Outcome | None:
    """Decide about a video whose last chunk may not have arrived; None for any other video."""
    upload, total_bytes = job.memo.get("upload", {}), job.content.media[0].size_bytes
    if not upload.get("watched") or task.uploaded_bytes is None or task.has_all(total_bytes):
        return None
    now, count = job.even_now.timestamp(), task.describe_count(total_bytes)
    reason = f"{count} The rest may still arrive. The outcome is known one hour after the upload URL expires"
    if now < upload["ends_at"] + limits.UPLOAD_MARGIN_SECONDS:
        return Wait(_pause(job), reason, job.memo)
    since, counted = upload.get("short", (now, task.uploaded_bytes))
    if counted != task.uploaded_bytes:
        since = now
    if now - since >= SETTLED_SECONDS:
        message = f"{upload['watched']} {count} The upload URL has expired, so TikTok posted nothing. "
        message += "Create the post again."
        return Refused(message, "upload_failed", verdict=True)
    return Wait(_pause(job), reason, {**job.memo, "upload": {**upload, "short": [since, task.uploaded_bytes]}})


def _failed(job: Job, reason: str | None) -> Outcome:
    code = reason or "failed"
    row = find_row(FAIL_REASONS, 200, ErrorBody("", code, {code}))
    row = row or ErrorRow(f"TikTok could not publish the post: {shortened(code)}.", content=False)
    sent = "; ".join(_describe_media(media.size_bytes, media.facts) for media in job.content.media[:5])
    size = f" Sent: {sent}." if code.endswith("_check_failed") else ""
    match row.action:
        case Action.RESTART:
            message = f"{row.advice} socialpub sent the post twice. Create the post again later."
            again = f"{row.advice} socialpub sends the post again."
        case Action.WAIT:
            message = f"{row.advice} Create the post again later."
            again = f"{row.advice} After that, socialpub sends the post again."
        case _:
            reauth = row.action is Action.RECONNECT
            connect = " Connect the account again, then create the post again." if reauth else ""
            message = f"{row.advice}{size}{connect}"
            content = row.refuses_content
            return Refused(message, code, reauth=reauth, rest_seconds=row.rest_seconds, verdict=True, content=content)
    otherwise = Refused(message, code, verdict=True)
    return start_over(job, min(map(str, row.codes)), again, otherwise, seconds=row.wait_seconds or 0.0)


def _not_yet(job: Job) -> Wait:
    if _waited_seconds(job) >= UNCONFIRMED_AFTER_SECONDS:
        reason = "TikTok has not confirmed the post yet. The post may still appear"
    else:
        reason = f"TikTok is processing the {'video' if job.content.has_video else 'photos'}"
    return Wait(_pause(job), reason, job.memo)


def _waited_seconds(job: Job) -> float:
    return 0.0 if job.committed_at is None else (job.even_now - job.committed_at).total_seconds()


def _pause(job: Job) -> float:
    waited = _waited_seconds(job)
    return next((pause for until, pause in CADENCE_SECONDS if waited < until), SLOWEST_SECONDS)


def _describe_media(size_bytes: int, facts: Mapping[str, Any]) -> str:
    parts = [f"{facts['width']}×{facts['height']}" if facts.get("width") and facts.get("height") else ""]
    parts.append(f"{facts['duration_seconds']:.1f} s" if "duration_seconds" in facts else "")
    parts.append(f"{facts['frame_rate']:g} frames per second" if "frame_rate" in facts else "")
    parts.append(f"{size_bytes} bytes")
    return ", ".join(filter(None, parts))


OF_ONE_TASK = ("publish_id", "upload")
"""The keys of one task in the memo. A new task must not have them."""


def start_over(job: Job, cause: str, reason: str, otherwise: Refused, *, seconds: float = 0.0) -> Again:
    """Go back to the first step for a new task, once for this cause; then end with `otherwise`.

    Only for tasks that TikTok reports as failed, or whose last byte cannot have left. Any other new task is a second
    post.
    """
    memo = {key: value for key, value in job.memo.items() if key not in OF_ONE_TASK}
    first = options.plan_steps(job.content, job.options)[0].name
    return Again(first, memo, cause, reason, seconds=seconds, otherwise=otherwise)
