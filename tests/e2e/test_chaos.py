"""Everything at once, from a fixed seed: faults of the network, processes killed in turn, callers that try again.

When it is calm again nothing is lost, nothing is twice, and every outcome is what the sandbox itself counted.
"""

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.samples import media

SEED = 20260922
FAULTS = 0.25
WRITERS, EACH = 4, 8
KILLS = 6
LAG_SECONDS = 40
"""How late the account's own list shows a post; the first looks after an unknown outcome do not find it."""


def test_after_all_the_chaos_every_outcome_is_true(make_installation: MakeInstallation, tmp_path: Path) -> None:
    installation = make_installation(deadline_seconds=3.0)
    installation.sandbox()
    dice = random.Random(SEED)
    processes = {role: installation.start(role) for role in ("web", "worker")}
    picture = installation.fresh_caller().upload(media.png(tmp_path / "one.png").read_bytes(), "one.png", "image/png")
    installation.x.tell("chaos", seed=SEED, rate=FAULTS)
    installation.x.tell("settings", list_lag_seconds=LAG_SECONDS)

    writers = [Writer(installation, number, picture) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    caller = installation.fresh_caller()
    for role in ("worker", "web") * (KILLS // 2):
        # One more call whose answer is lost, for the kill to fall into: chance alone seldom hits the moment.
        installation.x.script("create_post", "times_out_after_effect", skipping=dice.randrange(3))
        until(lambda: in_the_air(installation, caller) or not lively(writers), "a moment to kill at", 300)
        processes[role].kill()
        processes[role] = installation.start(role)
    for writer in writers:
        writer.join(300)
        assert writer.error is None and not writer.is_alive()

    installation.x.calm()
    until(lambda: not caller.posts(status="pending"), "everything is settled", 300)
    accepted = {post_id: text for writer in writers for text, post_id in writer.accepted.items()}
    posts = caller.posts()
    assert {post["id"]: post["body"] for post in posts} == accepted
    assert_every_outcome_is_true(posts, installation.x.posts())
    # The test has told something only when accounts had to be read back, and most came through all the same.
    assert installation.x.calls("list_posts") > 0
    published = [post for post in posts if post["deliveries"][0]["status"] == "published"]
    assert len(published) > len(posts) / 2


def assert_every_outcome_is_true(posts: list[dict[str, Any]], public: list[dict[str, Any]]) -> None:
    up = Counter(post["text"] for post in public)
    ids = {post["text"]: post["id"] for post in public}
    for post in posts:
        (delivery,) = post["deliveries"]
        count = up[post["body"]]
        match delivery["status"]:
            case "published":
                assert count == 1, (post, count)
                assert delivery["providerPostId"] == ids[post["body"]]
            case "failed" if delivery["errorMessage"].startswith("Outcome unknown:"):
                assert count <= 1, (post, count)
            case "failed":
                assert count == 0, (post, count)
            case other:
                raise AssertionError(f"{other} is no outcome: {post}")
    assert set(up) <= {post["body"] for post in posts}


def in_the_air(installation: Installation, caller: Caller) -> bool:
    """Whether something is up that the appliance does not know of, and a call is on its way."""
    shown = installation.x.show()
    pending = {post["body"] for post in caller.posts(status="pending")}
    return shown["in_flight"] > 0 and any(post["text"] in pending for post in shown["posts"])


def lively(writers: list["Writer"]) -> bool:
    return any(writer.is_alive() for writer in writers)


class Writer(threading.Thread):
    """A caller that does not give up: it sends every post, under an Idempotency-Key, until it has its 201."""

    def __init__(self, installation: Installation, number: int, picture: str) -> None:
        super().__init__(daemon=True)
        self.accepted: dict[str, str] = {}
        self.error: BaseException | None = None
        self._caller: Caller = installation.fresh_caller()
        self._profile = installation.profiles[number % len(installation.profiles)]
        self._number = number
        self._picture = picture

    def run(self) -> None:
        try:
            for number in range(EACH):
                text = f"Writer {self._number} says {number}"
                media = (self._picture,) if number % 3 == 0 else ()
                self.accepted[text] = self._insist(text, media)
        except BaseException as error:
            self.error = error
            raise

    def _insist(self, text: str, media: tuple[str, ...]) -> str:
        give_up_at = time.monotonic() + 300
        while True:
            try:
                return self._caller.publish(text, self._profile, media=media, headers={"idempotency-key": text})
            except httpx2.TransportError:
                assert time.monotonic() < give_up_at, "the web process did not come back"
                time.sleep(0.05)
