"""The demo's tour: everything a caller does from a picture to a published post, through the real HTTP API.

Each step shows what it did as the `curl` line that does the same, and what came of it.
"""

import json
from dataclasses import dataclass
from typing import Any

import httpx2
from rich.console import Console
from rich.text import Text

from socialpub.cli.failure import Failure

WAIT_SECONDS = 60


@dataclass
class Tour:
    url: str
    key: str
    console: Console

    def __post_init__(self) -> None:
        self._client = httpx2.Client(trust_env=False, timeout=WAIT_SECONDS + 30)

    def upload(self, picture: bytes, file_name: str) -> str:
        """Reserve, send, complete; the artifact's id."""
        self._step("Reserve an upload")
        body = {"fileName": file_name, "mimeType": "image/png", "fileSize": len(picture)}
        reservation = self._ask("POST", "/api/v1/uploads", body)
        artifact_id = str(reservation["artifactId"])
        self._came(f"artifact {artifact_id}")

        self._step(f"Send its {len(picture):,} bytes to the signed URL")
        headers = "".join(f' -H "{name}: {value}"' for name, value in reservation["requiredHeaders"].items())
        self._curl(f"curl -T {file_name}{headers} '{reservation['uploadUrl']}'")
        answer = self._client.put(
            reservation["uploadUrl"], content=picture, headers=dict(reservation["requiredHeaders"])
        )
        self._check(answer)
        self._came("stored")

        self._step("Have it examined")
        artifact = self._ask("POST", "/api/v1/uploads/complete", {"artifactId": artifact_id})
        self._came(f"{artifact['kind']}, {artifact['mimeType']}, {artifact['sizeBytes']:,} bytes")
        return artifact_id

    def publish(self, text: str, profiles: list[str], artifact_id: str, alt: str) -> str:
        """Create a post that goes out now; its id."""
        self._step("Create a post")
        media = [{"artifactId": artifact_id, "alt": alt}]
        post = self._ask("POST", "/api/v1/posts", {"post": {"body": text}, "profiles": profiles, "media": media})
        self._came(f"accepted: post {post['id']}, {post['status']}")
        return str(post["id"])

    def wait(self, post_id: str) -> dict[str, Any]:
        """The post once every delivery has an outcome, or as it is when that takes too long."""
        self._step("Wait for the outcome")
        post: dict[str, Any] = self._ask("GET", f"/api/v1/posts/{post_id}?wait={WAIT_SECONDS}")
        for delivery in post["deliveries"]:
            said = delivery.get("url") or delivery.get("errorMessage") or ""
            good = delivery["status"] == "published"
            self._came(f"{delivery['provider']} “{delivery['profileName']}”: {delivery['status']} {said}", good)
        return post

    def close(self) -> None:
        self._client.close()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = "" if body is None else f" \\\n     -H 'Content-Type: application/json' -d '{json.dumps(body)}'"
        verb = "" if method == "GET" else f" -X {method}"
        self._curl(f"curl{verb} -H \"Authorization: Bearer $KEY\" '{self.url}{path}'{data}")
        answer = self._client.request(
            method, self.url + path, json=body, headers={"authorization": f"Bearer {self.key}"}
        )
        self._check(answer)
        return answer.json()["data"]

    def _check(self, answer: httpx2.Response) -> None:
        if answer.is_success:
            return
        try:
            problem = answer.json()
            reasons = [error["message"] for error in problem.get("errors", ())]
            detail = "\n- ".join([problem["detail"], *reasons])
        except (ValueError, LookupError, TypeError):
            detail = answer.text[:500]
        raise Failure(f"The appliance answered {answer.status_code}: {detail}", "Its log says more.")

    def _step(self, text: str) -> None:
        self.console.print()
        self.console.print(Text(text, style="bold"))

    def _curl(self, line: str) -> None:
        self.console.print(Text(f"   {line}", style="dim"), soft_wrap=True)

    def _came(self, text: str, good: bool = True) -> None:
        sign = ("✓ ", "green") if good else ("✗ ", "red")
        self.console.print(Text.assemble("   ", sign, text), soft_wrap=True)
