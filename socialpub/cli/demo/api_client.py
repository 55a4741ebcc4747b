"""The demo's calls of the real HTTP API, from a file to a published post.

Each is shown as the `curl` line that does the same, and with what came of it.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2

from socialpub.cli.demo.transcript import Transcript, format_json
from socialpub.cli.errors import CommandError
from socialpub.cli.output import spinner

WAIT_SECONDS = 60
LABELS = {"x": "X", "tiktok": "TikTok", "pinterest": "Pinterest"}
PRIVATE = "for its owner alone (SELF_ONLY), so it has no public address"
DATA_OPTION = "  -d '"


class ApiClient:
    def __init__(self, url: str, transcript: Transcript) -> None:
        self._url = url
        self._transcript = transcript
        self._key = ""
        self._client = httpx2.Client(trust_env=False, timeout=WAIT_SECONDS + 30)

    def close(self) -> None:
        self._client.close()

    def use_key(self, key: str, folder: Path) -> None:
        """The key from now on; and show what the next commands take for granted."""
        self._key = key
        show = self._transcript
        show.result("made; it can read and write")
        show.note("To try what follows in another terminal, begin with these lines:")
        show.command(f"cd {folder}")
        show.command(f"API={self._url}/api/v1")
        show.command(f"AUTH='Authorization: Bearer {key}'")
        show.command("JSON='Content-Type: application/json'")

    def upload(self, content: bytes, file_name: str, mime_type: str) -> str:
        """Reserve, send, complete; the artifact's id."""
        body = {"fileName": file_name, "mimeType": mime_type, "fileSize": len(content)}
        reservation = self._call("POST", "/uploads", body)
        headers = dict(reservation["requiredHeaders"])
        given = "".join(f' -H "{name}: {value}"' for name, value in headers.items())
        self._transcript.command(f'curl{given} -T {file_name} "$uploadUrl"   # that of the answer')
        _check(self._client.put(reservation["uploadUrl"], content=content, headers=headers))
        artifact = self._call("POST", "/uploads/complete", {"artifactId": reservation["artifactId"]})
        facts = f"{artifact['kind']}, {artifact['mimeType']}, {artifact['sizeBytes']:,} bytes"
        self._transcript.result(f"{file_name} is examined: {facts}")
        return str(reservation["artifactId"])

    def publish(
        self, text: str, profiles: list[str], artifact_id: str, alt: str, options: Mapping[str, Mapping[str, Any]]
    ) -> str:
        """Create a post that goes out now; its id."""
        body = {
            "post": {"body": text},
            "profiles": profiles,
            "media": [{"artifactId": artifact_id, "alt": alt}],
            "providerOptions": options,
        }
        post = self._call("POST", "/posts", body)
        self._transcript.result(f"post {post['id']} is accepted, {post['status']}")
        return str(post["id"])

    def wait_for(self, post_id: str, kind: str) -> dict[str, Any]:
        """The post once every delivery has an outcome, or as it is when that takes too long."""
        path = f"/posts/{post_id}?wait={WAIT_SECONDS}"
        post: dict[str, Any] = self._call("GET", path, waiting_for=f"Publishing the {kind}")
        for delivery in post["deliveries"]:
            label = LABELS[delivery["provider"]]
            good = delivery["status"] == "published"
            otherwise = PRIVATE if good else delivery.get("errorMessage") or f"no outcome within {WAIT_SECONDS} seconds"
            outcome = delivery.get("url") or otherwise
            self._transcript.result(f"{kind:<7}  {label:<9}  {delivery['status']:<9}  {outcome}", good)
        return post

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, waiting_for: str = "") -> Any:
        given = "" if body is None else ' -H "$JSON"'
        data = "" if body is None else f" \\\n{DATA_OPTION}{format_json(body, len(DATA_OPTION))}'"
        self._transcript.command(f'curl -H "$AUTH"{given} "$API{path}"{data}')
        headers = {"authorization": f"Bearer {self._key}"}
        with spinner(waiting_for) if waiting_for else nullcontext():
            response = self._client.request(method, f"{self._url}/api/v1{path}", json=body, headers=headers)
        _check(response)
        return response.json()["data"]


def _check(response: httpx2.Response) -> None:
    if response.is_success:
        return
    try:
        problem = response.json()
        reasons = [error["message"] for error in problem.get("errors", ())]
        detail = "\n- ".join([problem["detail"], *reasons])
    except (ValueError, LookupError, TypeError):
        detail = response.text[:500]
    raise CommandError(f"The appliance answered {response.status_code}: {detail}", "Its log tells more.")
