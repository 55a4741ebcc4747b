"""A small HTTP/1.1 client that is faster than the server, as a process of its own: jobs on stdin, results on stdout.

Keep-alive connections send one request after the other, each encoded beforehand. The client reads only the status and
the length of a response.

Each job is a line of JSON: {"host", "port", "requests": [text of a whole request], "connections", "seconds"? ,
"count"?}. Eight `#` in a request become a number that differs in every request. The result is a line of JSON:
{"per_second", "statuses", "seconds", "median_ms", "p99_ms"}.
"""

import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from typing import Any

import uvloop

MARK = b"########"


class Job:
    def __init__(self, requests: list[bytes], seconds: float | None, count: int | None) -> None:
        self._requests = [request.partition(MARK) for request in requests]
        self._next = 0
        self._left = sys.maxsize if count is None else count
        self._until = None if seconds is None else time.perf_counter() + seconds
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []

    def take(self) -> bytes | None:
        if self._left <= 0 or (self._until is not None and time.perf_counter() >= self._until):
            return None
        self._left -= 1
        number = self._next
        self._next += 1
        before, mark, after = self._requests[number % len(self._requests)]
        return before + b"%08d" % (number % 10**8) + after if mark else before


class Connection(asyncio.Protocol):
    def __init__(self, job: Job) -> None:
        self._job = job
        self._buffer = b""
        self._needed = 0
        self._sent_at = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._job.statuses[0] += 1
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer = self._buffer + data if self._buffer else data
        if not self._needed:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            at = buffer.find(b"content-length: ", 0, end)
            length = int(buffer[at + 16 : buffer.find(b"\r", at, end + 2)]) if at >= 0 else 0
            self._needed = end + 4 + length
        if len(buffer) >= self._needed:
            self._job.statuses[int(buffer[9:12])] += 1
            self._job.latencies.append(time.perf_counter() - self._sent_at)
            self._buffer, self._needed = b"", 0
            self._ask()

    def _ask(self) -> None:
        request = self._job.take()
        if request is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


async def run(given: dict[str, Any]) -> dict[str, Any]:
    requests = [text.encode() for text in given["requests"]]
    job = Job(requests, given.get("seconds"), given.get("count"))
    began = time.perf_counter()
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(lambda: Connection(job), given["host"], given["port"])
        for _ in range(given["connections"])
    ]
    await asyncio.gather(*(connection.done for _, connection in pairs))
    passed = time.perf_counter() - began
    latencies = sorted(job.latencies) or [0.0]
    return {
        "per_second": len(job.latencies) / passed,
        "seconds": passed,
        "statuses": {str(status): count for status, count in job.statuses.items()},
        "median_ms": statistics.median(latencies) * 1000,
        "p99_ms": latencies[min(int(len(latencies) * 0.99), len(latencies) - 1)] * 1000,
    }


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            print(json.dumps(runner.run(run(json.loads(line)))), flush=True)
