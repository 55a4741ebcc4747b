"""A backup made under load and restored elsewhere while the original runs: nothing is posted twice, and each
unreadable outcome is unknown."""

import shutil
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.samples import media

BEFORE = 25
"""Posts that are on their way when the copy is made."""
SOON_SECONDS = 1800.0
"""As the fast clock counts: when the copy has been made, the clock is put forward."""


class Load(threading.Thread):
    """Posts without a pause, each with words of its own."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(daemon=True)
        self.caller = Caller(installation.url, installation.key)
        self.profiles = installation.profiles[1:]
        self.posts: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        while not self.enough.is_set():
            number = len(self.posts)
            self.posts.append(self.caller.publish(f"Post {number}", self.profiles[number % 3]))
            self.enough.wait(0.02)

    def end(self) -> None:
        self.enough.set()
        self.join(120)
        self.caller.close()


@pytest.mark.endurance
def test_a_backup_made_under_load_and_restored_elsewhere_posts_nothing_twice(make_installation):
    original = make_installation()
    original.sandbox()
    original.start("serve")
    caller = original.caller()
    # Due after the copy and before the resume: on networks that can be read back, and on one that cannot.
    video = caller.upload(
        media.video_mp4(original.folder / "a.mp4", width=360, height=360).read_bytes(), "a.mp4", "video/mp4"
    )
    picture = caller.upload(media.png(original.folder / "a.png").read_bytes(), "a.png", "image/png")
    board = {"pinterest": {"boardId": original.board_id}}
    direct = {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}
    on_x = scheduled(original, caller, "Due meanwhile", "x", picture)
    on_pinterest = scheduled(original, caller, "Due meanwhile", "pinterest", picture, options=board)
    on_tiktok = scheduled(original, caller, "Due meanwhile", "tiktok", video, options=direct)
    later = scheduled(original, caller, "Due much later", "x", seconds=30 * 86400)

    load = Load(original)
    load.start()
    until(lambda: len(load.posts) >= BEFORE, "the load runs")
    copy = original.folder / "appliance.copy"
    original.run("backup", str(copy), "--with-secret")
    at_copy = len(load.posts)
    until(lambda: len(load.posts) >= at_copy + BEFORE, "the original goes on")
    load.end()
    original.forward(SOON_SECONDS)
    accepted = [*load.posts, on_x, on_pinterest, on_tiktok]
    told = {post: caller.delivery(post) for post in accepted}
    assert {delivery["status"] for delivery in told.values()} == {"published"}, told
    sent = public(original)
    assert max(Counter(sent["x"]).values()) == 1

    other = beside(original, make_installation)
    assert other.run("verify-backup", str(copy)).stdout.endswith("is complete and unchanged.\n")
    other.run("restore", str(copy))
    other.start("serve")
    mirror = other.fresh_caller()
    until(lambda: mirror.ask("GET", "/readyz").json()["status"] == "paused", "it is well, and paused")
    held = {post["id"]: post["status"] for post in mirror.posts()}
    assert {on_x, on_pinterest, on_tiktok, later} <= set(held)
    assert {status for post, status in held.items() if post in load.posts} >= {"settled"}
    assert len(set(load.posts) - set(held)) >= BEFORE - 1, "the original went on"
    other.admin("resume")
    for post in set(accepted) & set(held):
        delivery = mirror.delivery(post)
        if post == on_tiktok:
            assert delivery["errorMessage"].startswith("Outcome unknown: "), delivery
        else:
            assert delivery.get("providerPostId") == told[post]["providerPostId"], delivery
    assert mirror.post(later)["status"] == "scheduled"
    assert public(original) == sent, "not one more"
    fresh = mirror.publish("By the restored one", other.profiles[0])
    assert mirror.delivery(fresh)["status"] == "published"


@pytest.mark.endurance
def test_unsent_posts_fail_after_a_restore_and_unreadable_ones_are_unknown(make_installation):
    original = make_installation()
    original.sandbox()
    serve = original.start("serve")
    caller = original.caller()
    never = scheduled(original, caller, "Never sent", "x")
    unread = scheduled(original, caller, "It cannot be read back", "tiktok")
    copy = original.folder / "appliance.copy"
    original.run("backup", str(copy), "--with-secret")
    assert caller.ask("POST", f"/api/v1/posts/{never}/cancel").status_code == httpx2.codes.OK
    assert serve.stop() == 0
    original.forward(SOON_SECONDS)

    other = beside(original, make_installation)
    other.run("restore", str(copy))
    other.start("serve")
    mirror = other.fresh_caller()
    canceled = mirror.ask("POST", f"/api/v1/posts/{never}/cancel")
    assert canceled.status_code == httpx2.codes.CONFLICT, "whether it was sent is not known yet"
    other.admin("resume")
    lost = mirror.delivery(never)
    assert (lost["status"], lost["errorMessage"][:9]) == ("failed", "Not sent:")
    assert mirror.delivery(unread)["errorMessage"].startswith("Outcome unknown: ")
    assert public(original)["x"] == []


def public(installation: Installation) -> dict[str, list[str]]:
    """Everything that readers can see, by network."""
    pins = [str(pin["id"]) for pin in installation.pinterest.show()["pins"]]
    return {
        "x": installation.x.texts(),
        "tiktok": [str(post["id"]) for post in installation.tiktok.posts()],
        "pinterest": pins,
    }


def scheduled(
    installation: Installation,
    caller: Caller,
    body: str,
    network: str,
    artifact_id: str = "",
    *,
    seconds: float = SOON_SECONDS,
    options: dict[str, Any] | None = None,
) -> str:
    """Create a post that is due in `seconds` by the clock of the installation."""
    at = installation.now() + timedelta(seconds=seconds)
    create: dict[str, Any] = {
        "post": {"body": body, "scheduledAt": at.isoformat()},
        "profiles": [installation.profile_on[network]],
        "providerOptions": options or {},
    }
    if artifact_id:
        create["media"] = [{"artifactId": artifact_id}]
    answer = caller.ask("POST", "/api/v1/posts", json=create)
    assert answer.status_code == httpx2.codes.CREATED, answer.text
    return str(answer.json()["data"]["id"])


def beside(original: Installation, make_installation: MakeInstallation) -> Installation:
    """Another machine with the same networks, with nothing in its folder but a configuration."""
    other = make_installation()
    shutil.rmtree(other.data)
    other.sandbox_url = original.sandbox_url
    other.share_clock(original)
    other.configure()
    return other
