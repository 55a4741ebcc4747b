"""The stories of Pinterest: an image, a carousel, a video with its upload host."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from socialpub.db.states import State
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import BODY, Means, Network, Story, scripted
from tests.providers.sample_artifacts import sample_artifact
from tests.samples import media
from tests.support.sandbox_http import connect_pinterest


def image(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    return (DraftMedia(sample_artifact(rt, samples / "pin.jpg", "image/jpeg", media.jpeg), "A red corner"),)


def carousel(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    one = sample_artifact(rt, samples / "first.jpg", "image/jpeg", media.jpeg)
    two = sample_artifact(rt, samples / "second.png", "image/png", media.png)
    return DraftMedia(one), DraftMedia(two), DraftMedia(one)


def video(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    make = partial(media.video_mp4, seconds=4.5)
    return (DraftMedia(sample_artifact(rt, samples / "pin.mp4", "video/mp4", make)),)


def made(world: World) -> list[str]:
    return [pin.id for pin in world.pinterest.pins if pin.description == BODY]


def board(world: World, username: str) -> Mapping[str, Any]:
    return {"boardId": world.pinterest.boards_of(username)[0].id}


PUBLISHED = State.PUBLISHED
APP = ("not approved", "missing scope")
CREATE = (*APP, "trial", "spam", "conflict", "switched off", "2787 and a pin", "2787 and no pin")
OPTIONS = {"title": "Poster no. 4", "link": "https://studio.example/poster-4"}

PINTEREST = Network(
    "pinterest",
    {
        "image": Story(
            image, ("read_board",), "create_pin", (), OPTIONS, "list_pins",
            own={"create_pin": ("413",)},
            # Not in Pinterest's form: read back, then sent again, smaller.
            otherwise={"create_pin": {"413": PUBLISHED}},
        ),
        "carousel": Story(
            carousel, ("read_board",), "create_pin", (), {}, "list_pins",
        ),
        "video": Story(
            video,
            ("read_board", "register_media", "upload_media", "media_status"),
            "create_pin",
            (),
            {"coverImageKeyFrameTime": 1},
            "list_pins",
            every_fault=True,
            own={
                "read_board": (*APP, "not readable"),
                "register_media": APP, "media_status": ("no such media",), "create_pin": ("no such media", *CREATE),
            },
            # A video that Pinterest or its storage does not know or accept is registered and sent again. This
            # 413 has no body and is not Pinterest's. After a refused read of the board, the pin decides.
            otherwise={
                "read_board": {"403": PUBLISHED, "413": PUBLISHED},
                "register_media": {"413": PUBLISHED},
                "upload_media": {"400": PUBLISHED, "403": PUBLISHED, "404": PUBLISHED, "413": PUBLISHED},
                "media_status": {"404": PUBLISHED, "413": PUBLISHED},
                "create_pin": {"404": PUBLISHED, "413": PUBLISHED},
            },
        ),
    },
    connect_pinterest,
    made,
    {
        "not approved": scripted(Means.PASSES, "refuses", "unapproved"),
        "missing scope": scripted(Means.REFUSED, "refuses", "missing_scope"),
        "not readable": scripted(Means.PASSES, "refuses", "pinner_data"),
        "trial": scripted(Means.PASSES, "refuses", "trial"),
        "spam": scripted(Means.REFUSED, "refuses", "spam"),
        "conflict": scripted(Means.PASSES, "refuses", "conflict"),
        "switched off": scripted(Means.PASSES, "refuses", "ramped_down"),
        "2787 and a pin": scripted(Means.OPEN, "refuses", "2787", after_effect=True),
        "2787 and no pin": scripted(Means.OPEN, "refuses", "2787"),
        "no such media": scripted(Means.PASSES, "refuses", "media_not_found"),
    },
    board,
)  # fmt: skip
