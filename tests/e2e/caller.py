"""A caller of the API over a real connection, and the other side: what the sandbox counted."""

import ssl
from dataclasses import dataclass
from typing import Any

import httpx2

PATIENCE_SECONDS = 90.0
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without certificates: every call is plain HTTP, and reading them takes each caller a while."""
SETTLED_WITHIN_MINUTES = 4
IN_INBOX = "SEND_TO_USER_INBOX"


class Caller:
    """Speaks to the appliance, with a key unless it is empty. Its verbs expect to succeed; `ask` does not."""

    def __init__(self, url: str, key: str) -> None:
        self.client = httpx2.Client(
            base_url=url,
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(PATIENCE_SECONDS, connect=30.0),
            trust_env=False,
            verify=NO_CERTIFICATES,
        )

    def ask(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The answer of any status. Raises httpx2.TransportError when there is none."""
        return self.client.request(method, path, **request)

    def publish(
        self,
        body: str,
        *profiles: str,
        media: tuple[str, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> str:
        """Create a post to go out now; its id. `options` by provider."""
        payload: dict[str, Any] = {"post": {"body": body}, "profiles": list(profiles)}
        if media:
            payload["media"] = [{"artifactId": artifact_id} for artifact_id in media]
        if options:
            payload["providerOptions"] = options
        answer = self.ask("POST", "/api/v1/posts", json=payload)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["data"]["id"])

    def post(self, post_id: str, *, wait: int | None = None) -> dict[str, Any]:
        """The post; with `wait` once the post is settled or this number of seconds has passed."""
        answer = self.ask("GET", f"/api/v1/posts/{post_id}", params={"wait": wait} if wait else None)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["data"]
        return found

    def delivery(self, post_id: str, *, wait: int | None = None) -> dict[str, Any]:
        """The one delivery of a post: once it is settled, or as it is after `wait` seconds."""
        for _ in range(1 if wait is not None else SETTLED_WITHIN_MINUTES):
            post = self.post(post_id, wait=60 if wait is None else wait)
            if post["status"] in ("settled", "canceled"):
                break
        (delivery,) = post["deliveries"]
        return dict(delivery)

    def attempts(self, post_id: str) -> list[dict[str, Any]]:
        answer = self.ask("GET", f"/api/v1/posts/{post_id}/attempts")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])

    def posts(self, **query: Any) -> list[dict[str, Any]]:
        """All posts, page by page, newest first."""
        found: list[dict[str, Any]] = []
        while True:
            params = {"page": len(found) // 100, "perPage": 100, **query}
            answer = self.ask("GET", "/api/v1/posts", params=params)
            assert answer.status_code == 200, answer.text
            found += answer.json()["data"]
            if len(found) >= answer.json()["pagination"]["total"] or not answer.json()["data"]:
                return found

    def upload(self, content: bytes, name: str, mime_type: str) -> str:
        """Reserve, put, complete; the artifact's id."""
        reservation = self.ask(
            "POST", "/api/v1/uploads", json={"fileName": name, "mimeType": mime_type, "fileSize": len(content)}
        ).json()["data"]
        put = httpx2.put(
            reservation["uploadUrl"],
            content=content,
            headers=reservation["requiredHeaders"],
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=NO_CERTIFICATES,
        )
        assert put.status_code == 200, put.text
        done = self.ask("POST", "/api/v1/uploads/complete", json={"artifactId": reservation["artifactId"]})
        assert done.status_code == 200, done.text
        return str(done.json()["data"]["artifactId"])

    def close(self) -> None:
        self.client.close()


@dataclass(frozen=True)
class Effect:
    """Something that was made at a network. A draft has no id of a post."""

    post_id: str | None
    sha256: list[str]


class SandboxControl:
    """The sandbox's own word about one of its networks: what is public, and what was asked."""

    def __init__(self, url: str, network: str) -> None:
        self.network = network
        self._client = httpx2.Client(
            base_url=f"{url}/_control", timeout=PATIENCE_SECONDS, trust_env=False, verify=NO_CERTIFICATES
        )

    def show(self) -> dict[str, Any]:
        answer = self._client.get(f"/{self.network}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def posts(self) -> list[dict[str, Any]]:
        """What readers see (X, TikTok)."""
        return list(self.show()["posts"])

    def texts(self) -> list[str]:
        """Return the published texts, oldest first. A text published twice is listed twice."""
        return [post["text"] for post in self.posts()]

    def calls(self, endpoint: str) -> int:
        """How many calls of it have ended."""
        return int(self.show()["calls"].get(endpoint, 0))

    def in_flight(self) -> int:
        return int(self.show()["in_flight"])

    def held(self) -> int:
        """How many calls have met a scripted fault that never answers, and hang."""
        return int(self.show()["held"])

    def tell(self, action: str, **body: Any) -> Any:
        answer = self._client.post(f"/{self.network}/{action}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def script(self, endpoint: str, fault: str, *, skipping: int = 0, times: float = 1, **args: Any) -> None:
        """What the next call of `endpoint` meets."""
        self.tell("faults", endpoint=endpoint, fault=fault, skipping=skipping, times=times, args=args)

    def calm(self) -> None:
        assert self._client.delete(f"/{self.network}/faults").status_code == 200

    def grant(self, username: str) -> str:
        """Tokens for an account, as `import-profile` reads them."""
        answer = self._client.post(f"/{self.network}/grant", json={"username": username})
        assert answer.status_code == 200, answer.text
        return answer.text

    def close(self) -> None:
        self._client.close()


def effects(shown: dict[str, Any]) -> dict[str, Effect]:
    """Everything that somebody sees of a network, by the sandbox's own id: posts, pins, drafts in the inbox."""
    seen = {post["id"]: Effect(post["id"], _hashes(post["media"])) for post in shown.get("posts", ())}
    for pin in shown.get("pins", ()):
        seen[pin["id"]] = Effect(pin["id"], _hashes([pin["video"]] if pin["video"] else pin["pictures"]))
    for task in shown.get("tasks", ()):
        if task["status"] == IN_INBOX:
            seen[task["publish_id"]] = Effect(None, _hashes(task["media"]))
    return seen


def _hashes(media: list[dict[str, Any]]) -> list[str]:
    return [item.get("sha256", "") for item in media]
