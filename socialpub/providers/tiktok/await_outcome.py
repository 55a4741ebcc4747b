"""Waiting for what becomes of a task: TikTok is asked until it has a verdict, and nothing else is taken for one."""

from collections.abc import Mapping
from typing import Any

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers.error_table import Action, ErrorBody, ErrorRow, find_row
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome, Published, Refused, Wait
from socialpub.providers.responses import shortened
from socialpub.providers.tiktok.errors import FAIL_REASONS
from socialpub.providers.tiktok.plan import start_over
from socialpub.providers.tiktok.status import fetch, published

WAITING_IN_INBOX = "waiting in the TikTok inbox"
CADENCE_SECONDS = ((60.0, 5.0), (600.0, 15.0), (3600.0, 60.0))
"""Until so long after the commit, ask so often; later every quarter of an hour."""
SLOWEST_SECONDS = 900.0
PATIENT_SECONDS = 1800.0
"""After this long it is said that TikTok has not confirmed."""


def await_outcome(job: Job, section: TikTokSection) -> Outcome:
    """One look. Everything but a verdict means: look again later."""
    task = fetch(job, section)
    match task.status:
        case "PUBLISH_COMPLETE":
            return published(job, section, task)
        case "SEND_TO_USER_INBOX":
            note = f"It is {WAITING_IN_INBOX}: open the notification in TikTok's app and finish it there."
            job.trace.message = note
            return Done({**job.memo, "notes": [*job.memo.get("notes", ()), note]})
        case "FAILED":
            return _failed(job, task.fail_reason)
        case _:
            return _not_yet(job)


def settle_draft(job: Job, section: TikTokSection) -> Outcome:  # noqa: ARG001
    """The draft lies in the inbox; what the owner makes of it there is no business of ours."""
    return Published(None)


def _failed(job: Job, reason: str | None) -> Outcome:
    """TikTok's verdict: nothing was published, whatever was sent."""
    code = reason or "failed"
    row = find_row(FAIL_REASONS, 200, ErrorBody("", code, {code}))
    row = row or ErrorRow(f"TikTok could not publish the post: {shortened(code)}.")
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
            return Refused(message, code, reauth=reauth, rest_seconds=row.rest_seconds, verdict=True)


def _not_yet(job: Job) -> Wait:
    waited = 0.0 if job.committed_at is None else (job.now - job.committed_at).total_seconds()
    pause = next((pause for until, pause in CADENCE_SECONDS if waited < until), SLOWEST_SECONDS)
    if waited >= PATIENT_SECONDS:
        reason = "TikTok has not confirmed the post yet; it may still appear"
    else:
        reason = f"TikTok is processing the {'video' if job.content.has_video else 'photos'}"
    return Wait(pause, reason, job.memo)


def _found(job: Job) -> str:
    """What was measured, beside the limits that TikTok names."""
    return f"Sent: {'; '.join(_measured(media.size_bytes, media.facts) for media in job.content.media[:5])}."


def _measured(size_bytes: int, facts: Mapping[str, Any]) -> str:
    parts = [f"{facts['width']}×{facts['height']}" if facts.get("width") and facts.get("height") else ""]
    parts.append(f"{facts['duration_seconds']:.1f} s" if "duration_seconds" in facts else "")
    parts.append(f"{facts['frame_rate']:g} frames a second" if "frame_rate" in facts else "")
    parts.append(f"{size_bytes} bytes")
    return ", ".join(filter(None, parts))
