"""How a task at TikTok stands: asked until TikTok has a verdict, and never taken for one before.

The publish_id is all that is needed, so a fresh token or another process goes on where the last one was. A post id is
no sign of success: only public posts get one, and late.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers import responses
from socialpub.providers.errors import NoAnswer, ProviderError
from socialpub.providers.job import Job
from socialpub.providers.outcomes import CannotTell, Done, Look, Outcome, Published, Refused, Wait
from socialpub.providers.tiktok import limits, talk
from socialpub.providers.tiktok.refusals import DAY_SECONDS, FAIL_REASONS, Rule, Then
from socialpub.providers.tiktok.steps import is_video, start_over

COMPLETE = "PUBLISH_COMPLETE"
IN_INBOX = "SEND_TO_USER_INBOX"
FAILED = "FAILED"

WAITING_IN_INBOX = "waiting in the TikTok inbox"
CADENCE_SECONDS = ((60.0, 5.0), (600.0, 15.0), (3600.0, 60.0))
"""Until so long after the commit, ask so often; later every quarter of an hour."""
SLOWEST_SECONDS = 900.0
PATIENT_SECONDS = 1800.0
"""After this long it is said that TikTok has not confirmed."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer about a task. A `status` that nobody knows means that it is still worked on."""

    status: str
    fail_reason: str | None = None
    post_ids: tuple[str, ...] = ()
    uploaded_bytes: int | None = None


def fetch(job: Job, section: TikTokSection) -> Told:
    """Ask how the task of this job stands. Raises as `talk.ask`, and `NoAnswer` when it is not said."""
    data = talk.ask(job, section, "post/publish/status/fetch/", {"publish_id": job.memo["publish_id"]})
    status = responses.text_at(data, "status")
    if status is None:
        raise NoAnswer("TikTok did not say how the post stands.", request_id=job.trace.request_id)
    uploaded = data.get("uploaded_bytes")
    return Told(
        status,
        responses.text_at(data, "fail_reason"),
        _post_ids(data),
        uploaded if type(uploaded) is int and uploaded >= 0 else None,
    )


def arrived(told: Told, total_bytes: int) -> bool:
    """Whether TikTok has every byte of the video, or is past that."""
    if told.status in (COMPLETE, IN_INBOX, FAILED):
        return True
    return told.uploaded_bytes is not None and told.uploaded_bytes >= total_bytes


def await_outcome(job: Job, section: TikTokSection) -> Outcome:
    """One look. Everything but a verdict means: look again later."""
    told = fetch(job, section)
    match told.status:
        case "PUBLISH_COMPLETE":
            return published(job, section, told)
        case "SEND_TO_USER_INBOX":
            note = f"It is {WAITING_IN_INBOX}: open the notification in TikTok's app and finish it there."
            job.trace.message = note
            return Done({**job.memo, "notes": [*job.memo.get("notes", ()), note]})
        case "FAILED":
            return _failed(job, told.fail_reason)
        case _:
            return _not_yet(job)


def settle_draft(job: Job, section: TikTokSection) -> Outcome:  # noqa: ARG001
    """The draft lies in the inbox; what the owner makes of it there is no business of ours."""
    return Published(None)


def look(job: Job, section: TikTokSection) -> Look | CannotTell | Done:
    """After an unknown commit: `Done` once all bytes are there, since then only TikTok's verdict counts."""
    if "publish_id" not in job.memo:
        return CannotTell(
            "TikTok has no way to look up a post whose publish_id it never told. Look at the profile, and at the inbox "
            "in TikTok's app, before you post it again."
        )
    told = fetch(job, section)
    lacking = told.uploaded_bytes is not None and not arrived(told, job.content.media[0].size_bytes)
    return Look(whole=False) if lacking else Done(job.memo)


def fill_in(job: Job, section: TikTokSection) -> Published | None:
    """Post id and address of a post that is published already; None while TikTok tells none, which may be for ever."""
    told = fetch(job, section)
    return published(job, section, told) if told.status == COMPLETE and told.post_ids else None


def published(job: Job, section: TikTokSection, told: Told) -> Published:
    """The first id counts when one draft became several posts."""
    if not told.post_ids:
        return Published(None)
    post_id = told.post_ids[0]
    url = _share_url(job, section, post_id)
    username = job.memo.get("creator", {}).get("username") or job.account.username
    if url is None and username and is_video(job.content):
        url = f"https://www.tiktok.com/@{username}/video/{post_id}"
    return Published(post_id, url)


def _share_url(job: Job, section: TikTokSection, post_id: str) -> str | None:
    """TikTok's own address of the post, when the connection may ask for it. Nothing depends on it."""
    if limits.SCOPE_LIST not in job.account.scopes:
        return None
    try:
        data = talk.ask(job, section, "video/query/?fields=id,share_url", {"filters": {"video_ids": [post_id]}})
    except ProviderError:
        return None
    videos = data.get("videos")
    for video in videos if isinstance(videos, list) else ():
        url = responses.text_at(video, "share_url") if isinstance(video, Mapping) else None
        if url is not None and str(video.get("id")) == post_id and re.fullmatch(r"https://[!-~]+", url):
            return url
    return None


def _failed(job: Job, reason: str | None) -> Outcome:
    """TikTok's verdict: nothing was published, whatever was sent."""
    code = reason or "failed"
    rule = FAIL_REASONS.get(code) or Rule(f"TikTok could not publish the post: {responses.shortened(code)}.")
    found = f" {_found(job)}" if code.endswith("_check_failed") else ""
    match rule.then:
        case Then.ANEW:
            refusal = Refused(f"{rule.advice} It was sent twice; create the post again later.", code, verdict=True)
            return start_over(job, f"{rule.advice} It is sent once more.", refusal, seconds=rule.rest_seconds)
        case Then.WAIT_A_DAY:
            refusal = Refused(f"{rule.advice} Create the post again later.", code, verdict=True)
            return start_over(job, f"{rule.advice} It is sent again then.", refusal, seconds=DAY_SECONDS)
        case _:
            reauth = rule.then is Then.RECONNECT
            connect = " Connect the account again, then create the post again." if reauth else ""
            message = f"{rule.advice}{found}{connect}"
            return Refused(message, code, reauth=reauth, rest_seconds=rule.rest_seconds, verdict=True)


def _not_yet(job: Job) -> Wait:
    waited = 0.0 if job.committed_at is None else (job.now - job.committed_at).total_seconds()
    pause = next((pause for until, pause in CADENCE_SECONDS if waited < until), SLOWEST_SECONDS)
    if waited >= PATIENT_SECONDS:
        reason = "TikTok has not confirmed the post yet; it may still appear"
    else:
        reason = f"TikTok is processing the {'video' if is_video(job.content) else 'photos'}"
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


def _post_ids(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Numbers of 19 digits or strings of them, under TikTok's spelling or the right one."""
    found = data.get("publicaly_available_post_id") or data.get("publicly_available_post_id")
    listed = found if isinstance(found, list) else [found]
    numbers = (str(one) for one in listed if isinstance(one, int | str) and not isinstance(one, bool))
    return tuple(number for number in numbers if re.fullmatch(r"[1-9][0-9]{0,30}", number))
