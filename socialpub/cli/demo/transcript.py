"""The demo's tour: everything a caller does from a file to a published post, through the real HTTP API.

Each step shows what it did as the `curl` line that does the same, and what came of it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from rich.console import Console
from rich.text import Text

from socialpub.cli.errors import Failure
from socialpub.cli.output import working
from socialpub.providers.registry import LABELS

WAIT_SECONDS = 60
MARGIN = "   "
PRIVATE = "for its owner alone (SELF_ONLY), so it has no public address"
DATA = "  -d '"
LINE = 93
"""Characters that a line of JSON may have before it is broken, without the margin."""


class Tour:
    """What is shown and done. `addresses` are the networks' own beginnings of addresses and where the same posts lie
    on the stand-ins."""

    def __init__(self, url: str, addresses: Mapping[str, str], console: Console) -> None:
        self.key = ""
        self._url = url
        self._addresses = addresses
        self._console = console
        self._client = httpx2.Client(trust_env=False, timeout=WAIT_SECONDS + 30)
        self._number = 0
        self._is_quiet = False

    def close(self) -> None:
        self._client.close()

    # --- what is done ------------------------------------------------------------------------------------------------

    def use(self, key: str, folder: Path) -> None:
        """The key from now on, and what the commands to come take for granted."""
        self.key = key
        self.came("made; it can read and write")
        self.show("To try what follows in another terminal, begin with these lines:")
        self.command(f"cd {folder}")
        self.command(f"API={self._url}/api/v1")
        self.command(f"AUTH='Authorization: Bearer {key}'")
        self.command("JSON='Content-Type: application/json'")

    def upload(self, content: bytes, file_name: str, mime_type: str) -> str:
        """Reserve, send, complete; the artifact's id."""
        body = {"fileName": file_name, "mimeType": mime_type, "fileSize": len(content)}
        reservation = self._ask("POST", "/uploads", body)
        headers = dict(reservation["requiredHeaders"])
        given = "".join(f' -H "{name}: {value}"' for name, value in headers.items())
        self.command(f'curl{given} -T {file_name} "$uploadUrl"   # that of the answer')
        self._check(self._client.put(reservation["uploadUrl"], content=content, headers=headers))
        artifact = self._ask("POST", "/uploads/complete", {"artifactId": reservation["artifactId"]})
        self.came(
            f"{file_name} is examined: {artifact['kind']}, {artifact['mimeType']}, {artifact['sizeBytes']:,} bytes"
        )
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
        post = self._ask("POST", "/posts", body)
        self.came(f"post {post['id']} is accepted, {post['status']}")
        return str(post["id"])

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Show only what comes of the calls: the like of them has been shown before."""
        self._is_quiet = True
        try:
            yield
        finally:
            self._is_quiet = False

    def wait(self, post_id: str, kind: str) -> dict[str, Any]:
        """The post once every delivery has an outcome, or as it is when that takes too long."""
        post: dict[str, Any] = self._ask(
            "GET", f"/posts/{post_id}?wait={WAIT_SECONDS}", waiting=f"Publishing the {kind}"
        )
        for delivery in post["deliveries"]:
            label = LABELS[delivery["provider"]]
            good = delivery["status"] == "published"
            otherwise = PRIVATE if good else delivery.get("errorMessage") or f"no outcome within {WAIT_SECONDS} seconds"
            said = self._on_the_stand_in(delivery["url"]) if delivery.get("url") else otherwise
            self.came(f"{kind:<7}  {label:<9}  {delivery['status']:<9}  {said}", good)
        return post

    def _on_the_stand_in(self, url: str) -> str:
        """Where the post lies on this machine."""
        for beginning, address in self._addresses.items():
            if url.startswith(beginning):
                return address + url.removeprefix(beginning)
        return url

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, waiting: str = "") -> Any:
        given = "" if body is None else ' -H "$JSON"'
        data = "" if body is None else f" \\\n{DATA}{_laid_out(body, len(DATA))}'"
        self.command(f'curl -H "$AUTH"{given} "$API{path}"{data}')
        headers = {"authorization": f"Bearer {self.key}"}
        url = f"{self._url}/api/v1{path}"
        if waiting:
            with working(waiting):
                answer = self._client.request(method, url, headers=headers)
        else:
            answer = self._client.request(method, url, json=body, headers=headers)
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

    # --- what is shown -----------------------------------------------------------------------------------------------

    def step(self, text: str) -> None:
        self._number += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._number}", "bold cyan"), "  ", (text, "bold")))

    def command(self, line: str) -> None:
        if self._is_quiet:
            return
        self._console.print(Text(MARGIN + line.replace("\n", f"\n{MARGIN}"), style="dim"), soft_wrap=True)

    def show(self, text: str) -> None:
        self._console.print(Text(MARGIN + text), soft_wrap=True)

    def came(self, text: str, good: bool = True) -> None:
        sign = ("✓ ", "green") if good else ("✗ ", "red")
        self._console.print(Text.assemble(MARGIN, sign, text), soft_wrap=True)


def _laid_out(value: Any, before: int = 0, depth: int = 2) -> str:
    """JSON on one line where it fits, else one member a line; `before` characters stand on its line already."""
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= LINE or not isinstance(value, dict | list) or not value:
        return flat
    indent = "  " * depth
    if isinstance(value, list):
        inner = [_laid_out(item, len(indent), depth + 1) for item in value]
    else:
        names = [json.dumps(name) + ": " for name in value]
        members = zip(names, value.values(), strict=True)
        inner = [name + _laid_out(item, len(indent) + len(name), depth + 1) for name, item in members]
    first, last = ("[", "]") if isinstance(value, list) else ("{", "}")
    joined = f",\n{indent}".join(inner)
    return f"{first}\n{indent}{joined}\n{'  ' * (depth - 1)}{last}"
