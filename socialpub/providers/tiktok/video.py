"""Opening a task for a video: its description, and how its bytes will come.

No bytes have left when TikTok answers, so an answer that was lost costs a place in its rate limit and nothing more.
"""

from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers import upload_address
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Outcome
from socialpub.providers.responses import text_at
from socialpub.providers.tiktok import chunk_put, chunks, limits
from socialpub.providers.tiktok.client import call
from socialpub.providers.tiktok.creator import disabled
from socialpub.providers.tiktok.options import INTERACTIONS


def init_video(job: Job, section: TikTokSection) -> Outcome:
    body = {"post_info": post_info(job), "source_info": source_info(job)}
    return _init(job, section, "post/publish/video/init/", body)


def init_draft(job: Job, section: TikTokSection) -> Outcome:
    return _init(job, section, "post/publish/inbox/video/init/", {"source_info": source_info(job)})


def post_info(job: Job) -> dict[str, Any]:
    """What the owner says about a direct video. The two brand marks are always sent: TikTok calls them required."""
    chosen = job.options
    info: dict[str, Any] = {"privacy_level": chosen["privacyLevel"]}
    if job.content.text:
        info["title"] = job.content.text
    info.update({f"disable_{name}": disabled(job, name) for name in INTERACTIONS})
    if "videoCoverTimestampMs" in chosen:
        info["video_cover_timestamp_ms"] = chosen["videoCoverTimestampMs"]
    info.update(brands(job))
    info["is_aigc"] = bool(chosen.get("isAigc"))
    return info


def brands(job: Job) -> dict[str, bool]:
    return {
        "brand_content_toggle": bool(job.options.get("brandContentToggle")),
        "brand_organic_toggle": bool(job.options.get("brandOrganicToggle")),
    }


def source_info(job: Job) -> dict[str, Any]:
    cut = chunks.plan(job.content.media[0].size_bytes)
    return {
        "source": "FILE_UPLOAD",
        "video_size": cut.total_bytes,
        "chunk_size": cut.chunk_bytes,
        "total_chunk_count": cut.count,
    }


def _init(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> Outcome:
    data = call(job, section, path, body)
    publish_id = text_at(data, "publish_id")
    address = text_at(data, "upload_url")
    if publish_id is None or address is None:
        raise NoAnswer("TikTok took the request but named no upload.", request_id=job.trace.request_id)
    complaint = chunk_put.address_complaint(address, section)
    if complaint is not None:
        return upload_address.hold(complaint)
    job.trace.message = f"publish_id {publish_id}"
    upload = {
        "address": job.seal(address),
        "ends_at": job.now.timestamp() + limits.UPLOAD_SECONDS - limits.UPLOAD_MARGIN_SECONDS,
        "sent": 0,
        "out": False,
    }
    return Done({**job.memo, "publish_id": publish_id, "upload": upload})
