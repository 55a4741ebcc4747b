"""The stories of X: a text, images, a video."""

from pathlib import Path

from socialpub.db.states import State
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import BODY, Means, Network, Story, scripted
from tests.providers.sample_artifacts import sample_artifact
from tests.samples import media
from tests.support.sandbox_http import connect_x


def text(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    return ()


def images(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    one = sample_artifact(rt, samples / "one.jpg", "image/jpeg", media.jpeg)
    two = sample_artifact(rt, samples / "two.png", "image/png", media.png)
    return DraftMedia(one, "A red corner"), DraftMedia(two)


def video(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    return (DraftMedia(sample_artifact(rt, samples / "x.mp4", "video/mp4", media.video_mp4)),)


def made(world: World) -> list[str]:
    return [post.id for post in world.x.posts if post.text == BODY]


MONEY = ("402", "402 in its other shape")
PUBLISHED = State.PUBLISHED

X = Network(
    "x",
    {
        "text": Story(text, (), "create_post", read_back_by="list_posts"),
        "images": Story(
            images,
            ("upload_one_shot", "upload_one_shot#2", "metadata"),
            "create_post",
            read_back_by="list_posts",
            own={"upload_one_shot": MONEY},
            # An image without its alt text is still the right image.
            otherwise={"metadata": {"400": PUBLISHED, "time-out for ever": PUBLISHED}},
        ),
        "video": Story(
            video,
            ("upload_initialize", "upload_append", "upload_finalize", "upload_status"),
            "create_post",
            read_back_by="list_posts",
            every_fault=True,
            own={"upload_append": MONEY, "create_post": MONEY},
            # An upload that X refuses, or whose chunk is too large, restarts once.
            # In other calls, an empty 413 is no answer: the post is read back, other calls are repeated.
            otherwise={
                "upload_initialize": {"413": PUBLISHED},
                "upload_append": {"400": PUBLISHED, "404": PUBLISHED, "413": PUBLISHED},
                "upload_finalize": {"400": PUBLISHED, "404": PUBLISHED, "413": PUBLISHED},
                "upload_status": {"400": PUBLISHED, "404": PUBLISHED, "413": PUBLISHED},
                "create_post": {"413": PUBLISHED},
            },
        ),
    },
    connect_x,
    made,
    {
        "402": scripted(Means.PASSES, "credits_depleted"),
        "402 in its other shape": scripted(Means.PASSES, "credits_depleted", 2),
    },
)  # fmt: skip
