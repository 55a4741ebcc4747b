"""The demo's calls of the HTTP API. Each is shown as the `curl` line that does the same, with its result."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import httpx2

from socialpub.cli.output import CommandError, Part, print_styled, spinner
from socialpub.providers.registry import LABELS

WAIT_SECONDS = 60
PRIVATE = "for its owner alone (SELF_ONLY), so it has no public address"
DATA_OPTION = "  -d '"


MARGIN = "   "
LINE_WIDTH = 93
"""Characters of a line of JSON, without the margin."""


class Transcript:
    """Numbered steps, each with its commands and results."""

    def __init__(self, file: IO[str] | None = None) -> None:
        """Write to `file`; None is stdout."""
        self._file = file
        self._number = 0
        self._hides_commands = False

    def step(self, title: str) -> None:
        """Print a numbered heading."""
        self._number += 1
        self._print()
        self._print((f"{self._number}", "bold cyan"), "  ", (title, "bold"))

    def command(self, line: str) -> None:
        if self._hides_commands:
            return
        for one in line.split("\n"):
            self._print((MARGIN + one, "dim"))

    def note(self, text: str) -> None:
        self._print(MARGIN + text)

    def result(self, text: str, good: bool = True) -> None:
        sign = ("✓ ", "green") if good else ("✗ ", "red")
        self._print(MARGIN, sign, text)

    @contextmanager
    def hiding_commands(self) -> Iterator[None]:
        """Show results only, for commands that were shown before."""
        self._hides_commands = True
        try:
            yield
        finally:
            self._hides_commands = False

    def _print(self, *parts: Part) -> None:
        print_styled(*parts, file=self._file)


def format_json(value: Any, before: int = 0, depth: int = 2) -> str:
    """Return JSON on one line if it fits behind `before` characters, otherwise with one member a line."""
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= LINE_WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    indent = "  " * depth
    if isinstance(value, list):
        inner = [format_json(item, len(indent), depth + 1) for item in value]
    else:
        names = [json.dumps(name) + ": " for name in value]
        members = zip(names, value.values(), strict=True)
        inner = [name + format_json(item, len(indent) + len(name), depth + 1) for name, item in members]
    first, last = ("[", "]") if isinstance(value, list) else ("{", "}")
    joined = f",\n{indent}".join(inner)
    return f"{first}\n{indent}{joined}\n{'  ' * (depth - 1)}{last}"


class ApiClient:
    def __init__(self, url: str, transcript: Transcript) -> None:
        self._url = url
        self._transcript = transcript
        self._key = ""
        self._client = httpx2.Client(trust_env=False, timeout=WAIT_SECONDS + 30)

    def close(self) -> None:
        self._client.close()

    def use_key(self, key: str, folder: Path) -> None:
        """Use this key from now on, and show the shell variables of the next commands."""
        self._key = key
        show = self._transcript
        show.result("made; it can read and write")
        show.note("To try what follows in another terminal, begin with these lines:")
        show.command(f"cd {folder}")
        show.command(f"API={self._url}/api/v1")
        show.command(f"AUTH='Authorization: Bearer {key}'")
        show.command("JSON='Content-Type: application/json'")

    def upload(self, content: bytes, file_name: str, mime_type: str) -> str:
        """Reserve, send and complete an upload. Return the artifact's id."""
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
        """Create a post that is published now. Return its id."""
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
        """Return the post once every delivery has an outcome, or after a timeout."""
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
