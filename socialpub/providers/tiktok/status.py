"""How a task at TikTok stands, as TikTok says it.

The publish_id is all that is needed, so a fresh token or another process goes on where the last one was. A post id is
no sign of success: only public posts get one, and late.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.errors import NoAnswer, ProviderError
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Published
from socialpub.providers.responses import text_at
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.client import call

COMPLETE = "PUBLISH_COMPLETE"
IN_INBOX = "SEND_TO_USER_INBOX"
FAILED = "FAILED"

_LINK = re.compile(r"(https?)://[!-~]+")


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """An answer about a task. A `status` that nobody knows means that it is still worked on."""

    status: str
    fail_reason: str | None = None
    post_ids: tuple[str, ...] = ()
    uploaded_bytes: int | None = None


def fetch(job: Job, section: TikTokSection) -> TaskStatus:
    """Ask how the task of this job stands. Raises as `client.call`, and `NoAnswer` when it is not said."""
    data = call(job, section, "post/publish/status/fetch/", {"publish_id": job.memo["publish_id"]})
    status = text_at(data, "status")
    if status is None:
        raise NoAnswer("TikTok did not say how the post stands.", request_id=job.trace.request_id)
    uploaded = data.get("uploaded_bytes")
    return TaskStatus(
        status,
        text_at(data, "fail_reason"),
        _post_ids(data),
        uploaded if type(uploaded) is int and uploaded >= 0 else None,
    )


def arrived(task: TaskStatus, total_bytes: int) -> bool:
    """Whether TikTok has every byte of the video, or is past that."""
    if task.status in (COMPLETE, IN_INBOX, FAILED):
        return True
    return task.uploaded_bytes is not None and task.uploaded_bytes >= total_bytes


def count_of(task: TaskStatus, total_bytes: int) -> str:
    """TikTok's own count, as a sentence."""
    if task.uploaded_bytes is None:
        return "TikTok does not say how much of the video it has."
    return f"TikTok has {task.uploaded_bytes} of {total_bytes} bytes."


def published(job: Job, section: TikTokSection, task: TaskStatus) -> Published:
    """The first id counts when one draft became several posts."""
    if not task.post_ids:
        return Published(None)
    post_id = task.post_ids[0]
    url = _share_url(job, section, post_id)
    username = job.memo.get("creator", {}).get("username") or job.account.username
    if url is None and username:
        # That of photos stands in no document of TikTok's; people see posts under it.
        kind = "video" if job.content.has_video else "photo"
        url = f"{section.site_url}/@{username}/{kind}/{post_id}"
    return Published(post_id, url)


def _share_url(job: Job, section: TikTokSection, post_id: str) -> str | None:
    """TikTok's own address of the post, when the connection may ask for it. Nothing depends on it."""
    if limits.SCOPE_LIST not in job.account.scopes:
        return None
    try:
        data = call(job, section, "video/query/?fields=id,share_url", {"filters": {"video_ids": [post_id]}})
    except ProviderError:
        return None
    videos = data.get("videos")
    for video in videos if isinstance(videos, list) else ():
        url = text_at(video, "share_url") if isinstance(video, Mapping) else None
        if url is not None and str(video.get("id")) == post_id and _is_link(url, section):
            return url
    return None


def _is_link(url: str, section: TikTokSection) -> bool:
    """A stand-in for TikTok may show its posts by http."""
    match = _LINK.fullmatch(url)
    return match is not None and (match[1] == "https" or section.api_url != section.OWN_API_URL)


def _post_ids(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Numbers of 19 digits or strings of them, under TikTok's spelling or the right one."""
    found = data.get("publicaly_available_post_id") or data.get("publicly_available_post_id")
    listed = found if isinstance(found, list) else [found]
    numbers = (str(one) for one in listed if isinstance(one, int | str) and not isinstance(one, bool))
    return tuple(number for number in numbers if re.fullmatch(r"[1-9][0-9]{0,30}", number))
