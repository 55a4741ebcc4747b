"""The load: many requests from a process of their own, by wrk where it is installed, else by our own client.

wrk repeats one request. Our client sends requests that differ. An unexpected response makes the figure worthless, so it
ends the run.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Load:
    folder: Path
    wrk: str | None

    @property
    def name(self) -> str:
        return "wrk" if self.wrk else "tests/bench/client.py (wrk is not installed)"

    def gets(self, url: str, paths: Sequence[str], key: str, seconds: float) -> float:
        """Answers a second to GETs of these paths, in turn."""
        if self.wrk is None:
            host = urlsplit(url).netloc
            requests = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{_bearer(key)}\r\n" for path in paths]
            return float(drive(url, requests, seconds=seconds)["per_second"])
        script = self.folder / "wrk.lua"
        script.write_text(_script(paths, key))
        command = [self.wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", str(script), url]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in told or "Socket errors" in told:
            raise SystemExit(f"The load did not get the answers that it should:\n{told}")
        found = re.search(r"Requests/sec:\s+([\d.]+)", told)
        assert found is not None, told
        return float(found[1])


def find(folder: Path) -> Load:
    return Load(folder, shutil.which("wrk"))


def drive(
    url: str,
    requests: Sequence[str],
    *,
    seconds: float | None = None,
    count: int | None = None,
    connections: int = CONNECTIONS,
    first: int = 0,
    expected: int = 200,
) -> dict[str, Any]:
    """Send whole requests with our own client and return its figures."""
    parts = urlsplit(url)
    job = {
        "host": parts.hostname,
        "port": parts.port,
        "requests": list(requests),
        "connections": connections,
        "seconds": seconds,
        "count": count,
        "first": first,
    }
    told = subprocess.run(
        [sys.executable, "-m", "tests.bench.client"], input=json.dumps(job), capture_output=True, text=True, check=True
    ).stdout
    answer: dict[str, Any] = json.loads(told)
    if set(answer["statuses"]) != {str(expected)}:
        raise SystemExit(f"The load did not get the answers that it should: {answer['statuses']}")
    return answer


def post_of(url: str, path: str, key: str, body: dict[str, Any]) -> str:
    """A whole POST; eight `#` in the body become a number."""
    text = json.dumps(body)
    host = urlsplit(url).netloc
    return (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{_bearer(key)}Content-Type: application/json\r\n"
        f"Content-Length: {len(text.encode())}\r\n\r\n{text}"
    )


def _bearer(key: str) -> str:
    return f"Authorization: Bearer {key}\r\n"


def _script(paths: Sequence[str], key: str) -> str:
    listed = ",".join(json.dumps(path) for path in paths)
    return (
        f'local headers = {{["Authorization"] = "Bearer {key}"}}\n'
        f"local paths, requests, at = {{{listed}}}, {{}}, 0\n"
        'function init() for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path, headers) end end\n'
        "function request() at = at % #requests + 1; return requests[at] end\n"
    )
