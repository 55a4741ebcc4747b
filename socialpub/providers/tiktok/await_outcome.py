"""Waiting for what becomes of a task: TikTok is asked until it has a verdict.

Nothing else is taken for one, but for this: a video whose last chunk nobody saw arrive, and of which TikTok still
counts too few bytes long after the address for them has lapsed, can become no post any more.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.error_table import Action, ErrorBody, ErrorRow, find_row
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome, Published, Refused, Wait
from socialpub.providers.responses import shortened
from socialpub.providers.tiktok import limits
from socialpub.providers.tiktok.errors import FAIL_REASONS
from socialpub.providers.tiktok.options import is_draft
from socialpub.providers.tiktok.plan import start_over
from socialpub.providers.tiktok.status import IN_INBOX, TaskStatus, arrived, count_of, fetch, published

INBOX_NOTE = "It is waiting in the TikTok inbox: open the notification in TikTok's app and finish it there."
IN_INBOX_KEY = "in_inbox"
"""In the memo: the owner is notified of what waits there."""
CADENCE_SECONDS = ((60.0, 5.0), (600.0, 15.0), (3600.0, 60.0))
"""Until so long after the commit, ask so often; later every quarter of an hour."""
SLOWEST_SECONDS = 900.0
PATIENT_SECONDS = 1800.0
"""After this long it is said that TikTok has not confirmed."""
SETTLED_SECONDS = 3600.0
"""So long after the end of its address a count of bytes stands still before it is believed: it may lag by minutes, and
a last chunk that was begun in time may have gone on."""


def await_outcome(job: Job, section: TikTokSection) -> Outcome:
    """One look. Everything but a verdict means: look again later."""
    task = fetch(job, section)
    match task.status:
        case "PUBLISH_COMPLETE":
            return published(job, section, task)
        case status if status == IN_INBOX:
            return _in_inbox(job)
        case "FAILED":
            return _failed(job, task.fail_reason)
        case _:
            return _missing_end(job, task) or _not_yet(job)


def settle_draft(job: Job, section: TikTokSection) -> Outcome:  # noqa: ARG001
    """The draft lies in the inbox; what the owner makes of it there is no business of ours."""
    return Published(None)


def _in_inbox(job: Job) -> Outcome:
    """Delivered. A direct post may end there too: then no step follows, and its note is kept before it ends."""
    notes = job.memo.get("notes", ())
    if INBOX_NOTE in notes:
        return Done(job.memo) if is_draft(job.options) else Published(None)
    memo = {**job.memo, "notes": [*notes, INBOX_NOTE], IN_INBOX_KEY: True}
    if not is_draft(job.options):
        return Wait(1.0, INBOX_NOTE, memo)
    job.trace.message = INBOX_NOTE
    return Done(memo)


def _missing_end(job: Job, task: TaskStatus) -> Outcome | None:
    """What to make of a video whose end perhaps never arrived; None while that is not the question."""
    upload, total_bytes = job.memo.get("upload", {}), job.content.media[0].size_bytes
    if not upload.get("watched") or task.uploaded_bytes is None or arrived(task, total_bytes):
        return None
    now, count = job.now.timestamp(), count_of(task, total_bytes)
    reason = f"{count} The end of the video may still come in; this is certain an hour after its upload has lapsed"
    if now < upload["ends_at"] + limits.UPLOAD_MARGIN_SECONDS:
        return Wait(_pause(job), reason, job.memo)
    since, counted = upload.get("short", (now, task.uploaded_bytes))
    if counted != task.uploaded_bytes:
        since = now
    if now - since >= SETTLED_SECONDS:
        message = f"{upload['watched']} {count} Its upload has lapsed: nothing was posted. Create the post again."
        return Refused(message, "upload_failed", verdict=True)
    return Wait(_pause(job), reason, {**job.memo, "upload": {**upload, "short": [since, task.uploaded_bytes]}})


def _failed(job: Job, reason: str | None) -> Outcome:
    """TikTok's verdict: nothing was published, whatever was sent."""
    code = reason or "failed"
    row = find_row(FAIL_REASONS, 200, ErrorBody("", code, {code}))
    row = row or ErrorRow(f"TikTok could not publish the post: {shortened(code)}.", content=False)
    found = f" {_found(job)}" if code.endswith("_check_failed") else ""
    match row.action:
        case Action.RESTART:
            refusal = Refused(f"{row.advice} It was sent twice; create the post again later.", code, verdict=True)
            return start_over(job, f"{row.advice} It is sent once more.", refusal, seconds=row.wait_seconds or 0.0)
        case Action.WAIT:
            refusal = Refused(f"{row.advice} Create the post again later.", code, verdict=True)
            return start_over(job, f"{row.advice} It is sent again then.", refusal, seconds=row.wait_seconds or 0.0)
        case _:
            reauth = row.action is Action.RECONNECT
            connect = " Connect the account again, then create the post again." if reauth else ""
            message = f"{row.advice}{found}{connect}"
            content = row.refuses_content
            return Refused(message, code, reauth=reauth, rest_seconds=row.rest_seconds, verdict=True, content=content)


def _not_yet(job: Job) -> Wait:
    if _waited(job) >= PATIENT_SECONDS:
        reason = "TikTok has not confirmed the post yet; it may still appear"
    else:
        reason = f"TikTok is processing the {'video' if job.content.has_video else 'photos'}"
    return Wait(_pause(job), reason, job.memo)


def _waited(job: Job) -> float:
    return 0.0 if job.committed_at is None else (job.now - job.committed_at).total_seconds()


def _pause(job: Job) -> float:
    waited = _waited(job)
    return next((pause for until, pause in CADENCE_SECONDS if waited < until), SLOWEST_SECONDS)


def _found(job: Job) -> str:
    """What was measured, beside the limits that TikTok names."""
    return f"Sent: {'; '.join(_measured(media.size_bytes, media.facts) for media in job.content.media[:5])}."


def _measured(size_bytes: int, facts: Mapping[str, Any]) -> str:
    parts = [f"{facts['width']}×{facts['height']}" if facts.get("width") and facts.get("height") else ""]
    parts.append(f"{facts['duration_seconds']:.1f} s" if "duration_seconds" in facts else "")
    parts.append(f"{facts['frame_rate']:g} frames a second" if "frame_rate" in facts else "")
    parts.append(f"{size_bytes} bytes")
    return ", ".join(filter(None, parts))
