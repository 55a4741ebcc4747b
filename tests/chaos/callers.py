"""Callers of every kind: each is a thread that retries until it has an answer, and records the answer.

The answer 201 or 200 is a promise from then on. What has no answer is asked again under the same Idempotency-Key, or
read back, as a careful program would.
"""

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2

from tests.chaos.accounts import ChaosAccount, ChaosAccounts
from tests.chaos.promises import PromisedPost, Promises
from tests.chaos.samples import ChaosSamples
from tests.e2e.installation import Installation

PATIENCE_SECONDS = 60.0
BUSY = (409, 503)
"""The same request is still at work in a process that may be dead by now, or the appliance is stopping."""

KINDS = {
    "text": 30,
    "text to many": 8,
    "too long": 2,
    "picture": 14,
    "multipart": 6,
    "uploaded picture": 7,
    "video": 9,
    "photos": 3,
    "draft": 2,
    "scheduled": 14,
    "equal": 4,
    "retry": 3,
}
ON_BLUESKY = {"short": 24, "picture on bluesky": 10, "video on bluesky": 5, "everywhere": 6, "equal on bluesky": 4}
"""More kinds on an installation that has Bluesky."""


class ChaosCaller(threading.Thread):
    def __init__(
        self,
        installation: Installation,
        accounts: ChaosAccounts,
        samples: ChaosSamples,
        promises: Promises,
        number: int,
        seed: int,
        more: Callable[[], bool],
    ) -> None:
        super().__init__(daemon=True, name=f"caller {number}")
        self.error: BaseException | None = None
        self._installation, self._accounts, self._samples = installation, accounts, samples
        self._promises, self._number, self._more = promises, number, more
        self._dice = random.Random(f"{seed} {number}")
        self._api = installation.fresh_caller()
        self._kinds = KINDS | (ON_BLUESKY if accounts.on("bluesky") else {})
        self._made = 0
        self._recent: list[str] = []

    def run(self) -> None:
        try:
            while self._more():
                kind = self._dice.choices(list(self._kinds), list(self._kinds.values()))[0]
                self._made += 1
                self._act(kind, f"c{self._number}n{self._made:05}e")
        except BaseException as error:
            self.error = error
            raise

    # --- kinds ---------------------------------------------------------------------------------------------------

    def _act(self, kind: str, marker: str) -> None:
        match kind:
            case "text":
                self._create(kind, marker, [self._one("x")])
            case "text to many":
                self._create(kind, marker, self._dice.sample(self._accounts.on("x"), 3))
            case "too long":
                self._create(kind, marker, [self._one("x")], body=f"{marker} " + "too long " * 40)
            case "picture":
                to = [self._one("pinterest"), *self._dice.sample(self._accounts.on("x"), self._dice.choice((0, 1)))]
                self._create(kind, marker, to, media=[self._samples.picture])
            case "multipart":
                self._create(kind, marker, [self._one("x")], file=self._samples.png)
            case "uploaded picture":
                artifact = self._upload(self._samples.png, "one.png", "image/png")
                self._create(kind, marker, [self._one("x"), self._one("pinterest")], media=[artifact])
            case "video":
                to = [self._one(network) for network in ("tiktok", "pinterest", "x") if self._dice.random() < 0.5]
                to = to or [self._one("tiktok")]
                self._create(kind, marker, to, media=[self._samples.video], sha256=self._samples.video_sha256)
            case "photos":
                self._create(kind, marker, [self._one("tiktok")], media=[self._samples.photo])
            case "draft":
                content, sha256 = self._samples.unique_video(marker)
                artifact = self._upload(content, "draft.mp4", "video/mp4")
                draft = {"tiktok": {"mode": "draft"}}
                self._create(kind, marker, [self._one("tiktok")], media=[artifact], options=draft, sha256=sha256)
            case "scheduled":
                self._schedule(marker)
            case "short":
                self._create(kind, marker, [self._one("bluesky")])
            case "picture on bluesky":
                self._create(kind, marker, [self._one("bluesky")], media=[self._samples.picture])
            case "video on bluesky":
                video = self._samples.video
                self._create(kind, marker, [self._one("bluesky")], media=[video], sha256=self._samples.video_sha256)
            case "everywhere":
                to = [self._one(network) for network in ("x", "pinterest", "bluesky")]
                self._create(kind, marker, to, media=[self._samples.picture])
            case "equal" | "equal on bluesky":
                to = [self._one("bluesky" if "bluesky" in kind else "x")]
                self._create(kind, marker, to, key="first")
                self._create(kind, marker, to, key="second")
            case "retry":
                self._retry()
        if self._dice.random() < 0.1:
            self._look()

    def _one(self, network: str) -> ChaosAccount:
        return self._dice.choice(self._accounts.on(network))

    def _schedule(self, marker: str) -> None:
        """Its time comes within seconds of the run. Some are changed before, some canceled, some sent at once."""
        at = self._installation.now() + timedelta(seconds=self._dice.uniform(60, 400))
        to = [self._one(network) for network in ("x", "bluesky") if self._accounts.on(network)]
        post = self._create("scheduled", marker, [self._dice.choice(to)], at=at.isoformat())
        if post is None:
            return
        match self._dice.choices(("left", "edited", "canceled", "moved", "now"), (3, 4, 3, 1, 1))[0]:
            case "edited":
                body = f"{marker} edited"
                post.maybe_body = body
                if self._change(post, {"post": {"body": body}}):
                    post.body, post.maybe_body = body, None
                    self._promises.count("PATCH of the text")
            case "moved":
                at += timedelta(seconds=self._dice.uniform(20, 120))
                if self._change(post, {"post": {"scheduledAt": at.isoformat()}}):
                    post.scheduled_at = at.isoformat()
                    self._promises.count("PATCH of the time")
            case "now":
                if self._change(post, {"post": {"scheduledAt": None}}):
                    self._promises.count("PATCH to now")
                post.scheduled_at = None  # also a refusal may mean that our first request has done it
            case "canceled":
                if self._insist("POST", f"/api/v1/posts/{post.post_id}/cancel", (200, 409)).status_code == 200:
                    post.canceled = True
                    self._promises.count("canceled")
                elif self._get(post.post_id)["status"] == "canceled":
                    post.canceled = True  # by the first of our requests, whose answer was lost

    def _change(self, post: PromisedPost, changes: dict[str, Any]) -> bool:
        answer = self._insist("PATCH", f"/api/v1/posts/{post.post_id}", (200, 409, 400), json=changes)
        return answer.status_code == 200

    def _retry(self) -> None:
        """One that failed is published again."""
        listed = self._insist("GET", "/api/v1/posts", (200,), params={"deliveryStatus": "failed", "perPage": 50})
        found = [post for post in listed.json()["data"] if post["id"] in self._promises.posts]
        if not found:
            return
        first = self._promises.posts[self._dice.choice(found)["id"]]
        key = {"idempotency-key": f"retry {self._number} {self._made}"}
        answer = self._insist("POST", f"/api/v1/posts/{first.post_id}/retry", (201, 409, 400), headers=key)
        if answer.status_code == 201:
            data = answer.json()["data"]
            to = tuple(delivery["profileId"] for delivery in data["deliveries"])
            self._promises.accepted(
                PromisedPost(data["id"], first.marker, "retry", to, data["body"], sha256=first.sha256)
            )

    def _look(self) -> None:
        """Waits, lists and the log, as dashboards and scripts ask for them."""
        match self._dice.randrange(4):
            case 0 if self._recent:
                self._insist("GET", f"/api/v1/posts/{self._dice.choice(self._recent)}", (200,), params={"wait": 2})
                self._promises.count("waits")
            case 1:
                params = {"perPage": 20, "providers": self._dice.choice(self._installation.networks)}
                self._insist("GET", "/api/v1/posts", (200,), params=params)
                self._promises.count("lists")
            case 2 if self._recent:
                self._insist("GET", f"/api/v1/posts/{self._dice.choice(self._recent)}/attempts", (200,))
                self._promises.count("attempts")
            case _:
                self._insist("GET", "/api/v1/publish/logs", (200,), params={"limit": 20})
                self._promises.count("logs")

    # --- requests --------------------------------------------------------------------------------------------------

    def _create(
        self,
        kind: str,
        marker: str,
        to: list[ChaosAccount],
        *,
        body: str = "",
        key: str = "only",
        media: list[str] | None = None,
        file: bytes | None = None,
        options: dict[str, Any] | None = None,
        at: str | None = None,
        sha256: str | None = None,
    ) -> PromisedPost | None:
        """None when its time had passed before the appliance could be reached."""
        text = body or f"{marker} {kind}"
        payload: dict[str, Any] = {"post": {"body": text}, "profiles": [account.profile_id for account in to]}
        if at:
            payload["post"]["scheduledAt"] = at
        needed: dict[str, Any] = {name: value for one in to for name, value in one.options.items()}
        if needed | (options or {}):
            payload["providerOptions"] = needed | (options or {})
        if media:
            payload["media"] = [{"artifactId": artifact} for artifact in media]
        request: dict[str, Any] = {"json": payload}
        if file is not None:
            payload["media"] = [{"fileField": "picture"}]
            request = {"files": {"picture": ("one.png", file, "image/png")}, "data": {"payload": json.dumps(payload)}}
        request["headers"] = {"idempotency-key": f"{marker} {key}"}
        answer = self._insist("POST", "/api/v1/posts", (201, 400) if at else (201,), **request)
        if answer.status_code == 400:
            assert "scheduledAt must be in the future" in answer.text, answer.text
            return None
        data = answer.json()["data"]
        profiles = tuple(account.profile_id for account in to)
        post = PromisedPost(data["id"], marker, kind, profiles, text, at, sha256=sha256)
        self._promises.accepted(post)
        self._recent = [*self._recent[-20:], post.post_id]
        if self._dice.random() < 0.15:
            again = self._insist("POST", "/api/v1/posts", (201,), **request)
            if again.json()["data"]["id"] != post.post_id:
                self._promises.broken(f"repeated under its key it became another post: {post}, {again.text}")
            self._promises.count("repeats")
        if self._dice.random() < 0.2:
            self._get(post.post_id)
        return post

    def _get(self, post_id: str) -> dict[str, Any]:
        answer = self._insist("GET", f"/api/v1/posts/{post_id}", (200, 404))
        if answer.status_code == 404:
            self._promises.broken(f"a post answered with 201 is not found: {post_id}")
            return {"status": "lost"}
        found: dict[str, Any] = answer.json()["data"]
        return found

    def _upload(self, content: bytes, name: str, mime_type: str) -> str:
        wanted = {"fileName": name, "mimeType": mime_type, "fileSize": len(content)}
        key = {"idempotency-key": f"upload {self._number} {self._made}"}
        reserved = self._insist("POST", "/api/v1/uploads", (201,), json=wanted, headers=key).json()["data"]
        self._insist("PUT", reserved["uploadUrl"], (200,), content=content, headers=reserved["requiredHeaders"])
        done = {"artifactId": reserved["artifactId"]}
        self._insist("POST", "/api/v1/uploads/complete", (200,), json=done)
        self._promises.verified(reserved["artifactId"], hashlib.sha256(content).hexdigest())
        self._promises.count("uploads")
        return str(reserved["artifactId"])

    def _insist(self, method: str, path: str, expected: tuple[int, ...], **request: Any) -> httpx2.Response:
        """The answer with one of these statuses, however often the process is killed meanwhile."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._api.ask(method, path, **request)
            except httpx2.LocalProtocolError:
                raise
            except httpx2.TransportError:
                self._promises.count("answers lost")
            else:
                if answer.status_code in expected:
                    return answer
                if answer.status_code not in BUSY:
                    raise AssertionError(f"{method} {path} is answered with {answer.status_code}: {answer.text}")
                self._promises.count(f"answers {answer.status_code}")
            assert time.monotonic() < give_up_at, f"{method} {path} has no answer"
            time.sleep(0.05)
