"""The promises to callers: every accepted post, with its request and its later answers."""

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class PromisedPost:
    """A post that was answered with 201. Those of equal content, and a retry of one, have the same `marker`."""

    post_id: str
    marker: str
    kind: str
    profiles: tuple[str, ...]
    body: str
    """What the last answer said. Until a PATCH has its answer, also `maybe_body` may hold."""
    scheduled_at: str | None = None
    maybe_body: str | None = None
    canceled: bool = False
    sha256: str | None = None
    """Of its video, which reaches every network unchanged."""


@dataclass
class Promises:
    """Filled by many threads at once."""

    posts: dict[str, PromisedPost] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    """The hashes of those that were answered as verified, by their ids."""
    asked: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def accepted(self, post: PromisedPost) -> None:
        with self._lock:
            if post.post_id in self.posts:
                self.violations.append(f"two requests were answered with the same post: {post}")
            self.posts[post.post_id] = post
            self.asked[post.kind] += 1

    def verified(self, artifact_id: str, sha256: str) -> None:
        with self._lock:
            self.artifacts[artifact_id] = sha256

    def count(self, what: str) -> None:
        with self._lock:
            self.asked[what] += 1

    def broken(self, account: str) -> None:
        """Record a broken promise."""
        with self._lock:
            self.violations.append(account)

    def deliveries(self) -> int:
        with self._lock:
            return sum(len(post.profiles) for post in self.posts.values())
