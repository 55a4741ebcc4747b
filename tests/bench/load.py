"""The load: requests from a process of their own (`client.py`). An unexpected response ends the run."""

import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.bench import memory

CONNECTIONS = 16


Client = subprocess.Popen[str]
_idle: list[Client] = []
"""Clients without a job. They end with this process, which closes their input."""


def drive(url: str, requests: Sequence[str], *, expected: int = 200, **job: Any) -> dict[str, Any]:
    """Send whole requests and return the figures of the client. `job` is described in `client.py`."""
    return finish(start(url, requests, **job), expected)


def start(url: str, requests: Sequence[str], **job: Any) -> Client:
    """Begin a job beside others. `finish` returns its figures."""
    parts = urlsplit(url)
    given = {"host": parts.hostname, "port": parts.port, "requests": list(requests), "connections": CONNECTIONS, **job}
    command = [sys.executable, "-m", "tests.bench.client"]
    client = _idle.pop() if _idle else Client(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdin is not None
    client.stdin.write(json.dumps(given) + "\n")
    client.stdin.flush()
    return client


def finish(client: Client, expected: int = 200) -> dict[str, Any]:
    assert client.stdout is not None
    answer: dict[str, Any] = json.loads(client.stdout.readline())
    _idle.append(client)
    if set(answer["statuses"]) != {str(expected)}:
        raise SystemExit(f"The load did not get the answers that it should: {answer['statuses']}")
    return answer


def median_ms(url: str, request: str, count: int, expected: int = 200) -> float:
    """Send a request again and again on one connection, from this process. Return the median latency.

    The first response is not counted.
    """
    parts, times, ahead = urlsplit(url), list[float](), request.encode()
    with socket.create_connection((str(parts.hostname), parts.port), timeout=60) as connection:
        for _ in range(count + 1):
            began = time.perf_counter()
            connection.sendall(ahead)
            response = http.client.HTTPResponse(connection)
            response.begin()
            response.read()
            times.append((time.perf_counter() - began) * 1000)
            if response.status != expected:
                raise SystemExit(f"{request.splitlines()[0]} was answered with {response.status}")
    return statistics.median(times[1:])


def per_cpu_second(pid: int, send: Callable[[], dict[str, Any]]) -> float:
    """Return the responses of a server per second of its processor time, which the client's speed does not change."""
    before = memory.run_seconds(pid)
    count = float(sum(send()["statuses"].values()))
    return count / (memory.run_seconds(pid) - before)


def get(url: str, path: str, key: str, headers: str = "") -> str:
    """Return a whole GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n{headers}\r\n"


def post(url: str, path: str, key: str, body: dict[str, Any]) -> str:
    """Return a whole POST request. Eight `#` in the body become a number."""
    text = json.dumps(body)
    return (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}"
    )
