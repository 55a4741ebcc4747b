"""`make upgrade-samples`: runs every former version against today's sandbox, and kills it in the middle of its work.

Each version is used as its owner would, by commands, requests and signals, so that what lies in its folder is what it
wrote. What it publishes is seen by the sandbox, whose journal goes into the sample: a post that was made there before
the kill must not be made again by the next version.
"""

import os
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import av
import httpx2
from PIL import Image

from socialpub.core.clock import stamp
from socialpub.db import upgrade
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.samples import media
from tests.upgrades import former_versions, sample
from tests.upgrades.former_versions import FormerVersion
from tests.upgrades.sample import SampleFacts

PEOPLE = ("ada", "ben", "cleo", "dan", "eva")


class FormerInstallation(Installation):
    """The appliance is that of another checkout, in an environment of its own; the sandbox is ours."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        super().__init__(folder, pace=0)
        self.config.write_text(self.config.read_text().replace("[rate_limit]\nrequests_per_minute = 1000000\n", ""))
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        self._program = (str(environment / "bin" / "python"), "-m", "socialpub", "--config", str(self.config))
        (packages,) = environment.glob("lib/python*/site-packages")
        # What it needs is that of this environment, which has hardly changed; the checkout comes first.
        (packages / "former.pth").write_text(f"{checkout}\n{sysconfig.get_path('purelib')}\n")

    def admin(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._program, "admin", *arguments],
            input=stdin,
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def serve(self) -> Process:
        # Python looks first into the folder that it is started in.
        log = self.folder / "serve.log"
        process = Process("serve", log=log, env=self.env, program=self._program, cwd=self.folder)
        self._processes.append(process)
        until(self._answers, "it answers", 60)
        assert process.running, process.output
        return process

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


def make(version: FormerVersion) -> Path:
    with (
        tempfile.TemporaryDirectory(prefix="former-") as name,
        former_versions.checked_out(version, Path(name, "checkout")) as checkout,
    ):
        at = FormerInstallation(Path(name, "at"), checkout)
        try:
            at.create()
            facts = live(at)
        finally:
            at.close()
        with closing(sqlite3.connect(at.data / "socialpub.db")) as connection:
            applied = set(upgrade.list_applied(connection))
        ours = {path.stem for path in checkout.glob("socialpub/*/migrations/0*.py")}
        assert applied == ours, f"another version has worked here: {applied ^ ours}"
        return sample.pack(version.schema, at.data, at.journal, facts)


def live(at: FormerInstallation) -> SampleFacts:
    """A life up to the moment in which its power is cut."""
    sandbox = at.sandbox()
    at.key = at.admin("create-key", "samples")
    at.admin("create-key", "reader", "--scope", "read")
    x = {name: at.admin("import-profile", "x", stdin=at.x.grant(name)) for name in PEOPLE}
    pinterest = at.admin("import-profile", "pinterest", stdin=at.pinterest.grant("ada"))
    tiktok = at.admin("import-profile", "tiktok", stdin=at.tiktok.grant("ada"))
    process = at.serve()
    caller = at.caller()
    picture = caller.upload(media.jpeg(at.folder / "sunset.jpg").read_bytes(), "sunset.jpg", "image/jpeg")
    video = caller.upload(still_film(at.folder / "waves.mp4").read_bytes(), "waves.mp4", "video/mp4")
    size = {"fileName": "never.jpg", "mimeType": "image/jpeg", "fileSize": 1000}
    reserved = caller.ask("POST", "/api/v1/uploads", json=size).json()["data"]["artifactId"]
    posts: dict[str, str] = {}

    def publish(body: str, *profiles: str, **more: object) -> str:
        post_id = caller.publish(body, *profiles, **more)  # type: ignore[arg-type]
        posts[post_id] = body
        return post_id

    once = {"idempotency-key": "the-first"}
    first = publish("Published before", x["ada"], headers=once)
    board = {"pinterest": {"boardId": at.board_id}}
    pin = publish("Published twice over", x["ada"], pinterest, media=(picture,), options=board)
    for post_id in (first, pin):
        assert caller.post(post_id, wait=60)["status"] == "settled"
    at.x.script("create_post", "fails_with", status=403)
    refused = publish("Refused before", x["ada"])
    caller.post(refused, wait=60)
    at.x.calm()
    for body, days in (("Goes out tomorrow", 1), ("Canceled before", 1)):
        answer = caller.ask(
            "POST",
            "/api/v1/posts",
            json={
                "post": {"body": body, "scheduledAt": stamp(datetime.now(UTC) + timedelta(days=days))},
                "profiles": [x["ada"]],
                "media": [{"artifactId": picture, "alt": "A sunset"}],
            },
        )
        assert answer.status_code == 201, answer.text
        posts[answer.json()["data"]["id"]] = body
    canceled = next(post_id for post_id, body in posts.items() if body == "Canceled before")
    assert caller.ask("POST", f"/api/v1/posts/{canceled}/cancel").status_code == 200

    in_the_middle(at, publish, x, pinterest, tiktok, picture, video, board)
    process.kill(children=True)
    taken_at = stamp(datetime.now(UTC))
    assert sandbox.stop() == 0
    return SampleFacts(taken_at, at.sandbox_url, at.key, {"the-first": first}, reserved, "eva", posts)


def in_the_middle(at, publish, x, pinterest, tiktok, picture, video, board) -> None:  # type: ignore[no-untyped-def]
    """Everything that can be half-way when the power is cut."""
    calls = at.x.calls
    at.x.script("create_post", "rate_limited", seconds=600)
    publish("Uploaded, and told to wait", x["ben"], media=(picture,))
    reach(lambda: calls("create_post") >= 4, "X has told it to wait")

    at.x.script("create_post", "times_out_after_effect")
    publish("Made, and nobody heard of it", x["cleo"])
    reach(lambda: at.x.held() >= 1, "the first call hangs")
    at.x.script("create_post", "times_out_before_effect")
    publish("Asked for, and never made", x["dan"])
    reach(lambda: at.x.held() >= 2, "the second call hangs")

    at.x.tell("tokens", username="eva", end="removed")
    lapsed = publish("Waits for its owner", x["eva"])
    at.caller().post(lapsed, wait=3)

    at.pinterest.script("create_pin", "drops_connection_after_effect")
    publish("Pinned, and cut off", pinterest, media=(picture,), options=board)
    reach(lambda: at.pinterest.calls("create_pin") >= 2, "the pin is made")

    at.tiktok.script("upload_chunk", "times_out_before_effect")
    publish("Half of a film", tiktok, media=(video,), options={"tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}})
    reach(lambda: at.tiktok.held() >= 1, "the film hangs")


def reach(true: Callable[[], object], what: str) -> None:
    """Wait for it; a version that does not come so far leaves another folder, which is a sample as well."""
    try:
        until(true, what, 20)
    except AssertionError:
        print(f"not with this version: {what}", flush=True)


def still_film(path: Path) -> Path:
    """Four seconds of one colour: the samples are kept for good, and nothing compresses better."""
    with av.open(str(path), "w", format="mp4") as container:
        track = container.add_stream("libx264", rate=24)
        track.width, track.height, track.pix_fmt, track.thread_count = 640, 360, "yuv420p", 1
        image = Image.new("RGB", (640, 360), media.BLUE)
        for number in range(96):
            frame = av.VideoFrame.from_image(image)
            frame.pts, frame.time_base = number, Fraction(1, 24)
            container.mux(track.encode(frame))
        container.mux(track.encode(None))
    return path


def main(wanted: Sequence[str]) -> None:
    sample.SAMPLES.mkdir(exist_ok=True)
    for version in former_versions.find():
        missing = version.schema not in sample.names()
        if version.schema in wanted or (not wanted and missing):
            path = make(version)
            print(
                f"{path.relative_to(Path.cwd())}: {path.stat().st_size:,} bytes, of {version.commit[:10]}", flush=True
            )


if __name__ == "__main__":
    os.umask(0o077)
    main(sys.argv[1:])
