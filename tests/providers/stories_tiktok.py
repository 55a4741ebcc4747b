"""The stories of TikTok: videos in one chunk and in several, photos, and drafts of both."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from socialpub.db.states import State
from socialpub.providers.tiktok import limits
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.sandbox.tiktok.tasks import IN_INBOX
from tests.providers.grid import Means, Network, Story, scripted
from tests.providers.sample_artifacts import sample_artifact
from tests.samples import media
from tests.support.sandbox_http import connect_tiktok

LARGE_BYTES = 11_000_000


def video(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    make = partial(media.video_mp4, width=360, height=360)
    return (DraftMedia(sample_artifact(rt, samples / "tiktok.mp4", "video/mp4", make)),)


def large_video(rt: Runtime, samples: Path, size: int = LARGE_BYTES) -> tuple[DraftMedia, ...]:
    make = partial(media.video_mp4, width=360, height=360, size=size)
    return (DraftMedia(sample_artifact(rt, samples / f"tiktok-{size}.mp4", "video/mp4", make)),)


def photos(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    one = sample_artifact(rt, samples / "photo.jpg", "image/jpeg", media.jpeg)
    two = sample_artifact(rt, samples / "photo.png", "image/png", media.png)
    return DraftMedia(one), DraftMedia(two)


def small_chunks() -> AbstractContextManager[Any]:
    """Use TikTok's smallest chunks, so that a small video has several."""
    return mock.patch.multiple(limits, ONE_CHUNK_BYTES=10_000_000, CHUNK_BYTES=5_000_000)


def made(world: World) -> list[str]:
    drafts = [task.publish_id for task in world.tiktok.tasks.values()]
    posts = [post.id for post in world.tiktok.catch_up()]
    return posts + [one for one in drafts if world.tiktok.tasks[one].status == IN_INBOX]


DIRECT = {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}
DRAFT = {"mode": "draft"}
PUBLISHED, FAILED = State.PUBLISHED, State.FAILED
INIT = ("the app's cap", "the account's cap", "banned", "scope missing")
STATUS = ("scope missing", "unknown publish_id")
NOT_TIKTOKS = {"413": PUBLISHED}
"""An empty body is not TikTok's, so the call is repeated."""

LAST_CHUNK = {
    # A refusal of the last chunk may follow its effect, so the same bytes go to the same task again.
    **dict.fromkeys(("400", "403", "404", "413"), PUBLISHED),
    # A fault of both tries ends when the upload URL has definitely expired.
    **dict.fromkeys(("503 three times", "unreadable 2xx three times", "cut three times"), FAILED),
    **dict.fromkeys(("503 for ever", "time-out for ever"), FAILED),
}

TIKTOK = Network(
    "tiktok",
    {
        "video": Story(
            video,
            ("creator_info", "video_init"),
            "upload_chunk",
            ("status_fetch",),
            DIRECT,
            # The first poll is part of the commit.
            "status_fetch#2",
            every_fault=True,
            own={"creator_info": INIT, "video_init": INIT, "status_fetch": STATUS},
            otherwise={
                **dict.fromkeys(("creator_info", "video_init", "status_fetch"), NOT_TIKTOKS),
                "upload_chunk": LAST_CHUNK,
            },
        ),
        "video in chunks": Story(
            large_video,
            ("status_fetch", "upload_chunk"),
            "upload_chunk#2",
            ("status_fetch#2",),
            DIRECT,
            "status_fetch",
            own={"status_fetch": STATUS},
            otherwise={
                "status_fetch": {"unknown publish_id": PUBLISHED}, "upload_chunk#2": LAST_CHUNK,
            },
            under=small_chunks,
        ),
        "draft": Story(
            video, ("inbox_init",), "upload_chunk", ("status_fetch",), DRAFT, "status_fetch",
            own={"inbox_init": ("too many drafts", *INIT)}, otherwise={"upload_chunk": LAST_CHUNK},
        ),
        "photos": Story(
            photos, ("creator_info",), "content_init", ("status_fetch",), DIRECT,
            own={"content_init": ("unverified", *INIT)},
        ),
        "photo draft": Story(
            photos, (), "content_init", ("status_fetch",), DRAFT,
            own={"content_init": ("too many drafts",)},
        ),
    },
    connect_tiktok,
    made,
    {
        "the app's cap": scripted(Means.PASSES, "refuses", "reached_active_user_cap"),
        "the account's cap": scripted(Means.PASSES, "refuses", "spam_risk_too_many_posts"),
        "too many drafts": scripted(Means.PASSES, "refuses", "spam_risk_too_many_pending_share"),
        "banned": scripted(Means.REFUSED, "refuses", "spam_risk_user_banned_from_posting"),
        "scope missing": scripted(Means.REFUSED, "refuses", "scope_not_authorized"),
        "unverified": scripted(Means.REFUSED, "refuses", "url_ownership_unverified"),
        "unknown publish_id": scripted(Means.REFUSED, "refuses", "invalid_publish_id"),
    },
)  # fmt: skip
