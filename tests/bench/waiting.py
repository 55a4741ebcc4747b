"""The quiet lines: what an idle appliance takes, and what many waiting callers cost everybody else."""

import asyncio
import time
from datetime import timedelta

from socialpub.core.clock import stamp
from tests.bench import figures, memory
from tests.bench.figures import Figure
from tests.bench.load import drive
from tests.bench.servers import MeasuredAppliance, call
from tests.bench.stock import PROFILES

IDLE_MB = 120
CALLERS = 200
LOOKED_SECONDS = 2.0


def measure_idle(appliance: MeasuredAppliance) -> list[Figure]:
    """Memory of all processes of `serve` before they were asked for anything but their health."""
    pss = memory.pss_mb(appliance.pid)
    count = len(memory.tree(appliance.pid))
    return [figures.at_most(f"idle memory (PSS) of all {count} processes", f"{pss:.1f} MB", "", pss, IDLE_MB, " MB")]


def measure_waiting(appliance: MeasuredAppliance) -> list[Figure]:
    """Two hundred callers of `?wait=60`: a read beside them, the processor time, and how they are answered."""
    key = appliance.key()
    at = stamp(appliance.rt.now() + timedelta(days=1))
    body = {"post": {"body": "Later", "scheduledAt": at}, "profiles": [appliance.profiles[PROFILES - 1]]}
    post_id = call("POST", f"{appliance.url}/api/v1/posts", body, key)["data"]["id"]
    return asyncio.run(_measure(appliance, key, f"/api/v1/posts/{post_id}"))


async def _measure(appliance: MeasuredAppliance, key: str, path: str) -> list[Figure]:
    quiet = await asyncio.to_thread(_read, appliance, key, path)
    idle = await _cpu(appliance)
    callers = [asyncio.create_task(_wait(appliance, key, path)) for _ in range(CALLERS)]
    await asyncio.sleep(0.5)
    beside = await asyncio.to_thread(_read, appliance, key, path)
    busy = await _cpu(appliance)
    began = time.perf_counter()
    await asyncio.to_thread(call, "POST", f"{appliance.url}{path}/cancel", None, key)
    answered = [at - began for at in await asyncio.gather(*callers)]
    return [
        Figure(
            f"one read beside {CALLERS} waiting callers", f"{beside:.2f} ms", f"{quiet:.2f} ms without", beside / quiet
        ),
        Figure("processor taken by the waiting callers", f"{busy:.1%}", f"{idle:.1%} without"),
        Figure("from a cancel to the last of their answers", f"{max(answered) * 1000:.0f} ms"),
    ]


def _read(appliance: MeasuredAppliance, key: str, path: str) -> float:
    """Median milliseconds of one read after the other."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
    return float(drive(appliance.url, [request], seconds=0.7, connections=1)["median_ms"])


async def _cpu(appliance: MeasuredAppliance) -> float:
    before = memory.cpu_seconds(appliance.pid)
    await asyncio.sleep(LOOKED_SECONDS)
    return (memory.cpu_seconds(appliance.pid) - before) / LOOKED_SECONDS


async def _wait(appliance: MeasuredAppliance, key: str, path: str) -> float:
    """When the answer was there (perf_counter)."""
    host, _, port = appliance.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"GET {path}?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n".encode()
    )
    answer = await reader.read()
    at = time.perf_counter()
    writer.close()
    if b'"canceled"' not in answer:
        raise SystemExit(f"A waiting caller was answered with {answer[:300]!r}")
    return at
