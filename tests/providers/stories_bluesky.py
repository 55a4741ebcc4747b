"""The stories of Bluesky: a text, images, a post with reply control."""

from pathlib import Path

from socialpub.db.states import State
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers.grid import BODY, Network, Story
from tests.providers.sample_artifacts import sample_artifact
from tests.samples import media
from tests.support.sandbox_http import connect_bluesky


def text(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    return ()


def images(rt: Runtime, samples: Path) -> tuple[DraftMedia, ...]:
    one = sample_artifact(rt, samples / "one.jpg", "image/jpeg", media.jpeg)
    two = sample_artifact(rt, samples / "two.png", "image/png", media.png)
    return DraftMedia(one, "A red corner"), DraftMedia(two)


def made(world: World) -> list[str]:
    return [post.uri for post in world.bluesky.posts if post.value.get("text") == BODY]


BLUESKY = Network(
    "bluesky",
    {
        "text": Story(text, (), "put_record", read_back_by="get_record"),
        "images": Story(
            images,
            ("upload_blob", "upload_blob#2"),
            "put_record",
            read_back_by="get_record",
            every_fault=True,
            # The images are made smaller once, and the fault is over by then.
            otherwise={call: {"413": State.PUBLISHED} for call in ("upload_blob", "upload_blob#2", "put_record")},
        ),
        "two records": Story(
            text,
            (),
            "apply_writes",
            options={"replyControl": "followers"},
            read_back_by="get_record",
        ),
    },
    connect_bluesky,
    made,
    token_call="refresh_session",
    has_request_ids=False,
    is_repeatable=True,
)
