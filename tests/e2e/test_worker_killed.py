"""The worker is killed at every boundary of every plan: what was begun ends once, and truthfully.

A call is held before or after its effect, the worker is killed with it in the air, and the next worker takes over. To
be quick, one kill falls into a call to each network.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import pytest

from tests.e2e.caller import effects
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.e2e.videos import video_bytes
from tests.samples import media
from tests.support.oracle import UNKNOWN, Stated, find_untruths

NETWORKS = ("x", "tiktok", "pinterest")
PACE = 60.0
DEADLINE_SECONDS = 60.0
"""No call is given up before the kill."""
CHUNKED_BYTES = 65_000_000
"""TikTok takes 64,000,000 bytes in one piece; this goes in six."""
SMALL_BYTES = 3 * 1024 * 1024
"""Three pieces for X."""

PLANS: dict[tuple[str, str], tuple[tuple[str, int], ...]] = {
    ("x", "video"): (
        ("upload_initialize", 0),
        ("upload_append", 1),
        ("upload_finalize", 0),
        ("upload_status", 0),
        ("create_post", 0),
    ),
    ("tiktok", "video"): (("creator_info", 0), ("video_init", 0), ("upload_chunk", 0), ("status_fetch", 0)),
    ("tiktok", "long video"): (("upload_chunk", 2), ("upload_chunk", 5)),
    ("tiktok", "draft"): (("inbox_init", 0),),
    ("tiktok", "photo"): (("content_init", 0),),
    ("pinterest", "video"): (
        ("read_board", 0),
        ("register_media", 0),
        ("upload_media", 0),
        ("media_status", 0),
        ("create_pin", 0),
    ),
    ("pinterest", "photo"): (("create_pin", 0),),
}
"""The endpoints that a plan calls, and how many calls go by before the one that is held."""
QUESTIONS = ("upload_status", "creator_info", "status_fetch", "read_board", "media_status")
"""They change nothing: before and after are one."""


@dataclass(frozen=True)
class Cell:
    network: str
    what: str
    endpoint: str
    skipping: int
    when: str

    def __str__(self) -> str:
        return f"{self.network} {self.what}, {self.when} {self.endpoint} {self.skipping + 1}"


COMMITS = ("create_post", "upload_chunk", "create_pin")
CELLS = [
    Cell(network, what, endpoint, skipping, when)
    for (network, what), calls in PLANS.items()
    for endpoint, skipping in calls
    for when in (("before",) if endpoint in QUESTIONS else ("before", "after"))
]
# A commit that did not happen is looked for a while: the rounds with one come together.
QUICK_LAST = sorted(CELLS, key=lambda cell: cell.endpoint not in COMMITS or cell.when == "after")
ROUNDS = [
    tuple(filter(None, cells))
    for cells in zip_longest(*([cell for cell in QUICK_LAST if cell.network == name] for name in NETWORKS))
]


@dataclass
class WorkerSetup:
    """One installation for all of them. `artifacts` are what was uploaded, `hashes` those of the videos."""

    installation: Installation
    worker: Process
    artifacts: dict[str, str]
    hashes: dict[str, str]

    def publish(self, cell: Cell) -> str:
        options: dict[str, Any] = {}
        if cell.network == "tiktok":
            options["tiktok"] = {"mode": "draft"} if cell.what == "draft" else {"privacyLevel": "PUBLIC_TO_EVERYONE"}
        if cell.network == "pinterest":
            options["pinterest"] = {"boardId": self.installation.board_id}
        media = (self.artifacts[cell.what],)
        profile = self.installation.profile_on[cell.network]
        return self.installation.caller().publish(str(cell), profile, media=media, options=options)


@pytest.fixture(scope="module")
def setup(prepared: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerSetup]:
    installation = Installation(tmp_path_factory.mktemp("appliance"), pace=PACE, deadline_seconds=DEADLINE_SECONDS)
    try:
        installation.copy_from(prepared)
        installation.sandbox()
        installation.start("web")
        setup = WorkerSetup(installation, installation.start("worker"), {}, {})
        for what, size in (("video", SMALL_BYTES), ("long video", CHUNKED_BYTES)):
            content = video_bytes(size)
            setup.artifacts[what] = installation.caller().upload(content, "video.mp4", "video/mp4")
            setup.hashes[what] = hashlib.sha256(content).hexdigest()
        setup.artifacts["draft"], setup.hashes["draft"] = setup.artifacts["video"], setup.hashes["video"]
        photo = media.jpeg(installation.folder / "photo.jpg").read_bytes()
        setup.artifacts["photo"] = installation.caller().upload(photo, "photo.jpg", "image/jpeg")
        yield setup
    finally:
        installation.close()


IN_EVERY_RUN = ROUNDS[::6]
"""They kill before and after a call of each network. `tests/providers/test_grid_workers.py` has more deaths in one
process, and `make endurance` has all rounds."""


@pytest.mark.parametrize(
    "cells",
    [pytest.param(cells, marks=() if cells in IN_EVERY_RUN else pytest.mark.endurance) for cells in ROUNDS],
    ids=lambda cells: "; ".join(map(str, cells)),
)
def test_a_worker_killed_during_a_call_leaves_one_post_and_a_true_outcome(setup, cells):
    caller = setup.installation.caller()
    before = {cell: setup.installation.control(cell.network).show() for cell in cells}
    posts = {}
    for cell in cells:
        control = setup.installation.control(cell.network)
        control.calm()
        control.script(cell.endpoint, f"times_out_{cell.when}_effect", skipping=cell.skipping)
        posts[cell] = setup.publish(cell)
    for cell in cells:
        until(setup.installation.control(cell.network).held, f"{cell}: held")
    setup.worker.kill()
    assert {caller.delivery(post, wait=0)["status"] for post in posts.values()} == {"pending"}
    setup.worker = setup.installation.start("worker")

    for cell, post in posts.items():
        shown = setup.installation.control(cell.network).show
        delivery = caller.delivery(post)
        made = [effect for key, effect in effects(shown()).items() if key not in effects(before[cell])]
        assert not list(find_untruths([Stated.from_api(delivery)], [effect.post_id for effect in made]))
        if cell.endpoint == "content_init":
            # TikTok knows no way to find a task whose name was lost: it is said so, and nothing is sent again.
            assert delivery["status"] == "failed"
            assert delivery["errorMessage"].startswith(UNKNOWN), delivery
            assert shown()["calls"][cell.endpoint] == before[cell]["calls"].get(cell.endpoint, 0) + 1
            continue
        assert delivery["status"] == "published", (cell, delivery)
        assert delivery.get("providerPostId") == made[0].post_id
        if cell.what in setup.hashes:
            assert made[0].sha256 == [setup.hashes[cell.what]]
    assert "unexpectedly" not in setup.worker.output
