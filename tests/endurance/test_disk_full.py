"""Every kind of write meets a full disk: the error is clear, no data is damaged, and free space is enough."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.e2e.small_disk import SmallDisk
from tests.samples import media

pytestmark = pytest.mark.endurance

MakeSmallDisk = Callable[[Installation], SmallDisk]
LATE = "2031-05-01T12:00:00Z"


@dataclass
class FullDiskStory:
    installation: Installation
    disk: SmallDisk
    accepted: set[str] = field(default_factory=set)

    @property
    def caller(self) -> Caller:
        return self.installation.caller()

    def exhaust(self) -> None:
        """Fill the disk, and use the space that the database reserved."""
        self.disk.fill()
        create = {"post": {"body": "Is there room?", "scheduledAt": LATE}, "profiles": [self.installation.profiles[3]]}
        while (answer := self.caller.ask("POST", "/api/v1/posts", json=create)).status_code == httpx2.codes.CREATED:
            self.accepted.add(answer.json()["data"]["id"])
            assert len(self.accepted) < 20_000
        assert_told(answer)

    def check(self) -> None:
        """Whole, and with every post that was answered with 201."""
        assert self.disk.rows("PRAGMA integrity_check") == [["ok"]]
        found = {row[0] for row in self.disk.rows("SELECT id FROM post")}
        assert self.accepted <= found


@pytest.fixture
def story(make_installation: MakeInstallation, make_small_disk: MakeSmallDisk) -> FullDiskStory:
    installation = make_installation(settings='[health]\ndisk_floor_bytes = "100kB"\n', deadline_seconds=40.0)
    return FullDiskStory(installation, make_small_disk(installation))


def assert_told(answer: httpx2.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unavailable"
    assert "disk" in answer.json()["detail"].lower()
    assert int(answer.headers["retry-after"]) > 0


# --- the API ---------------------------------------------------------------------------------------------------------


def requests_of_every_kind(story: FullDiskStory) -> Iterator[tuple[str, Callable[[], httpx2.Response]]]:
    """Everything that writes, prepared while there is room."""
    caller, profile = story.caller, story.installation.profiles[0]
    picture = media.png(story.installation.folder / "one.png", noise=True, width=64, height=64).read_bytes()
    later = [
        caller.ask("POST", "/api/v1/posts", json={"post": {"body": b, "scheduledAt": LATE}, "profiles": [profile]})
        for b in ("to be changed", "to be canceled")
    ]
    changed, canceled = (answer.json()["data"]["id"] for answer in later)
    wanted = {"fileName": "one.png", "mimeType": "image/png", "fileSize": len(picture)}

    def reserve() -> dict[str, Any]:
        return dict(caller.ask("POST", "/api/v1/uploads", json=wanted).json()["data"])

    def put(reserved: dict[str, Any]) -> httpx2.Response:
        return caller.ask("PUT", reserved["uploadUrl"], content=picture, headers=reserved["requiredHeaders"])

    to_put, to_complete = reserve(), reserve()
    assert put(to_complete).status_code == 200
    payload = {"post": {"body": "In one"}, "profiles": [profile], "media": [{"fileField": "one"}]}
    yield "PUT", lambda: put(to_put)
    yield (
        "multipart",
        lambda: caller.ask(
            "POST",
            "/api/v1/posts",
            files={"one": ("one.png", picture, "image/png")},
            data={"payload": json.dumps(payload)},
        ),
    )
    done = {"artifactId": to_complete["artifactId"]}
    yield "complete", lambda: caller.ask("POST", "/api/v1/uploads/complete", json=done)
    yield "reserve", lambda: caller.ask("POST", "/api/v1/uploads", json=wanted)
    yield "change", lambda: caller.ask("PATCH", f"/api/v1/posts/{changed}", json={"post": {"body": "changed " * 500}})
    yield "cancel", lambda: caller.ask("POST", f"/api/v1/posts/{canceled}/cancel")
    yield "disconnect", lambda: caller.ask("POST", f"/api/v1/profiles/{story.installation.profiles[2]}/disconnect")


def test_every_request_that_writes_says_so_and_succeeds_once_there_is_room(story):
    story.installation.sandbox()
    web = story.installation.start("web")
    kinds = dict(requests_of_every_kind(story))
    story.exhaust()
    refused = {kind: ask() for kind, ask in kinds.items()}
    for answer in refused.values():
        assert_told(answer)
    # Reading goes on.
    assert story.caller.ask("GET", "/api/v1/posts").status_code == 200
    ready = story.caller.ask("GET", "/readyz")
    assert (ready.status_code, "disk" in ready.text) == (503, True), ready.text
    assert story.caller.ask("GET", "/metrics").status_code == 200
    assert not [path for path in (story.disk.path / "media").rglob("*.part") if path.stat().st_size], "left behind"

    story.disk.empty()
    for kind, ask in kinds.items():
        answer = ask()
        assert answer.status_code < 300, (kind, answer.text)
    assert web.running
    story.check()


# --- the worker ------------------------------------------------------------------------------------------------------


def test_an_outcome_that_cannot_be_written_is_kept_and_nothing_is_sent_twice(story):
    """The disk fills while calls are in the air: their answers come when no row can be written."""
    installation = story.installation
    sandbox = installation.sandbox()
    installation.start("web")
    worker = installation.start("worker")
    people = installation.profiles[:3]
    warm = [story.caller.publish(f"before {number}", profile) for number, profile in enumerate(people)]
    assert {story.caller.delivery(post)["status"] for post in warm} == {"published"}
    sandbox.suspend()
    posts = [
        story.caller.publish(f"in the air {number} {profile}", profile) for number in range(2) for profile in people
    ]
    until(lambda: announced(story) == len(people), "the calls are on their way")
    story.exhaust()
    sandbox.go_on()
    until(lambda: len(installation.x.texts()) >= len(warm) + len(people), "the network has them")
    story.disk.empty()
    outcomes = [story.caller.delivery(post) for post in posts]
    assert {outcome["status"] for outcome in outcomes} == {"published"}, outcomes
    assert len(installation.x.texts()) == len(set(installation.x.texts())) == len(warm) + len(posts)
    assert installation.x.calls("create_post") == len(warm) + len(posts)
    assert installation.x.calls("list_posts") == 0, "what was answered is known, and not asked again"
    until(lambda: story.caller.ask("GET", "/readyz").status_code == 200, "ready again")
    assert worker.running
    story.check()


def announced(story: FullDiskStory) -> int:
    ((count,),) = story.disk.rows("SELECT count(*) FROM delivery WHERE state = 'running'")
    return int(count)


def test_media_are_fitted_and_shown_once_there_is_room(story):
    """A picture that has to be made smaller for its network needs room for the smaller one."""
    installation = story.installation
    installation.sandbox()
    installation.start("web")
    large = media.jpeg(installation.folder / "large.jpg", 1500, 1300, noise=True, quality=80).read_bytes()
    artifact = story.caller.upload(large, "large.jpg", "image/jpeg")
    worker = installation.start("worker")
    due = {"body": "A picture", "scheduledAt": (installation.now() + timedelta(hours=2)).isoformat()}
    create = {"post": due, "profiles": [installation.profiles[0]], "media": [{"artifactId": artifact}]}
    post = story.caller.ask("POST", "/api/v1/posts", json=create).json()["data"]["id"]
    story.exhaust()
    installation.forward(2 * 3600 + 60)
    until(lambda: "disk is full" in worker.output.lower(), "the worker says that the disk is full")
    story.disk.empty()
    assert story.caller.delivery(post)["status"] == "published"
    assert len(installation.x.texts()) == 1
    assert worker.running
    story.check()


# --- commands and starts ---------------------------------------------------------------------------------------------


def assert_one_sentence(process: Any) -> None:
    assert process.stderr.startswith("Error: "), process.stderr
    assert "disk" in process.stderr.lower() or "space" in process.stderr.lower(), process.stderr
    assert "Traceback" not in process.stderr


def test_commands_say_it_in_a_sentence_and_leave_nothing_half_done(story):
    installation = story.installation
    installation.start("web")
    story.caller.upload(
        media.png(installation.folder / "n.png", 300, 300, noise=True).read_bytes(), "n.png", "image/png"
    )
    whole = installation.folder / "whole.tar"
    installation.run("backup", str(whole))
    story.exhaust()
    copy = installation.data / "copy.tar"
    assert_one_sentence(installation.run("backup", str(copy), code=1))
    assert not (story.disk.path / "copy.tar").exists()
    assert_one_sentence(installation.run("admin", "create-key", "one more", code=1))
    installation.run("doctor", code=1)
    story.disk.empty()
    installation.run("backup", str(copy))
    installation.run("admin", "create-key", "one more")
    story.check()


def test_a_restore_and_a_first_start_without_room_can_be_done_again(story, make_installation, make_small_disk):
    web = story.installation.start("web")
    picture = media.png(story.installation.folder / "n.png", 300, 300, noise=True).read_bytes()
    story.caller.upload(picture, "n.png", "image/png")
    whole = story.installation.folder / "whole.tar"
    story.installation.run("backup", str(whole), "--with-secret")
    assert web.stop() == 0

    other = make_installation()
    for path in other.data.iterdir():
        if path.name != "secret.key":
            path.unlink() if path.is_file() else shutil.rmtree(path)
    disk = make_small_disk(other)
    for room in (0, 100_000, 300_000):
        disk.fill(but=room)
        assert_one_sentence(other.run("restore", str(whole), code=1))
        left = {str(path.relative_to(disk.path)) for path in disk.path.iterdir()}
        assert left <= {"filler", "run", "secret.key"}, left
    disk.empty()
    other.run("restore", str(whole))
    other.start("web")
    assert "paused" in other.caller().ask("GET", "/readyz").text


def test_a_start_without_room_ends_with_a_sentence_or_waits_for_it(story):
    for path in story.disk.path.glob("socialpub.db*"):
        path.unlink()
    for room in (0, 4096, 65_536):
        story.disk.fill(but=room)
        for role in ("web", "worker"):
            process: Process = story.installation.begin(role)
            assert process.wait(60) == 1
            assert "Error: The disk " in process.output, process.output
            assert "Hint: Free some space" in process.output
            assert "Traceback" not in process.output
    story.disk.empty()
    story.installation.start("web")
    story.installation.start("worker")
    story.check()
