"""The quiet lines: commands, an idle appliance, and the cost of many waiting callers for others."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from functools import cache
from pathlib import Path

from socialpub.core.clock import stamp
from tests.bench import memory
from tests.bench.figures import Figure
from tests.bench.load import get, median_ms
from tests.bench.servers import MeasuredAppliance, call
from tests.bench.turns import Turns
from tests.support.select import select_value

COMMAND_SECONDS = 0.1
MEMORY_MB = {"idle": 110, "after load": 140}
SERVING_MODULES = ("socialpub.web.http.server", "socialpub.worker.process")
"""The modules with which the processes of `serve` begin."""
IMPORT_AND_WAIT = """
import contextlib, gc, importlib, sys
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
gc.collect()
print("ready", flush=True)
sys.stdin.read()
"""
CALLERS = 200
IDLE_SECONDS = 2.0


def measure_commands(turns: Turns, rounds: int) -> list[Figure]:
    """Measure the processor time of short commands, beside Python's own start. The minimum counts.

    PATH is empty, so a checkout does not start git for its version.
    """
    command = str(Path(sys.executable).parent / "socialpub")
    python, *found = turns.take(
        lambda: _processor_time(sys.executable, "-c", ""),
        *(lambda option=option: _processor_time(sys.executable, command, option) for option in ("--version", "--help")),
        rounds=rounds,
    )
    floor = min(python)
    return [
        Figure(
            *(f"socialpub {option}", min(values), "s", floor, "python -c ''", min(values) / floor),
            most=COMMAND_SECONDS,
            of_value=True,
        )
        for option, values in zip(("--version", "--help"), found, strict=True)
    ]


def _processor_time(*command: str) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={"PATH": "", "HOME": "/nonexistent"})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def measure_memory(appliance: MeasuredAppliance, when: str) -> list[Figure]:
    """Measure the memory of all processes of `serve`, as if nothing else ran on the machine."""
    web, worker = (memory.resident_mb(pid) for pid in (appliance.pid, appliance.worker_pid))
    own, libraries = memory.own_mb(appliance.pid), _measure_libraries()
    return [
        Figure(
            *(f"memory of all processes, {when}", own, "MB", libraries, "libraries alone", own / libraries),
            most=MEMORY_MB.get(when),
            of_value=True,
        ),
        Figure(f"  the same, shared with other measured processes, {when}", memory.pss_mb(appliance.pid), "MB"),
        Figure(f"  resident memory of web, {when}", web, "MB"),
        Figure(f"  resident memory of worker, {when}", worker, "MB"),
    ]


@cache
def _measure_libraries() -> float:
    """Return the memory of two processes that import what the web process and the worker import, except socialpub."""
    with ExitStack() as ending:
        # The end of the block closes the input of each process, and waits until the process has ended.
        started = [ending.enter_context(_start_importing(module)) for module in SERVING_MODULES]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        return memory.own_mb(*(process.pid for process in started))


def _start_importing(module: str) -> "subprocess.Popen[str]":
    """Start a process that imports the libraries of this module, prints a line and waits for the end of its input."""
    script = f"import sys, {module}; print(*(name for name in sys.modules if not name.startswith('socialpub')))"
    names = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    command = [sys.executable, "-c", IMPORT_AND_WAIT, *names]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measure_database(appliance: MeasuredAppliance, stocked: int) -> list[Figure]:
    """Measure the size of the database that began with this number of posts."""
    posts = select_value(appliance.rt.db, "SELECT count(*) FROM post")
    return [Figure(f"database per post, {stocked:,} posts", appliance.database.stat().st_size / posts, "B")]


# --- waiting callers -------------------------------------------------------------------------------------------------


def measure_waiting(appliance: MeasuredAppliance, turns: Turns) -> list[Figure]:
    """Measure a read beside 200 callers of `?wait=60`, their processor time, and the time until all have a response."""
    key = appliance.key()
    at = stamp(appliance.rt.now() + timedelta(days=1))
    body = {"post": {"body": "Later", "scheduledAt": at}, "profiles": [appliance.profiles[-1]]}
    post_id = call("POST", f"{appliance.url}/api/v1/posts", body, key)["data"]["id"]
    found: list[Figure] = turns.once(lambda: asyncio.run(_measure(appliance, key, f"/api/v1/posts/{post_id}")))
    return found


async def _measure(appliance: MeasuredAppliance, key: str, path: str) -> list[Figure]:
    quiet = await asyncio.to_thread(_read, appliance, key, path)
    idle = await _busy_share(appliance)
    callers = [asyncio.create_task(_wait(appliance, key, path)) for _ in range(CALLERS)]
    await asyncio.sleep(0.5)
    beside = await asyncio.to_thread(_read, appliance, key, path)
    busy = await _busy_share(appliance)
    began = time.perf_counter()
    await asyncio.to_thread(call, "POST", f"{appliance.url}{path}/cancel", None, key)
    answered = [at - began for at in await asyncio.gather(*callers)]
    return [
        Figure(f"one read beside {CALLERS} waiting callers", beside, "ms", quiet, "without", beside / quiet),
        Figure("processor share of the waiting callers", busy * 100, "%", idle * 100, "without"),
        Figure("from a cancel to the last of their responses", max(answered) * 1000, "ms"),
    ]


def _read(appliance: MeasuredAppliance, key: str, path: str) -> float:
    """Return the median milliseconds of one read after the other."""
    return median_ms(appliance.url, get(appliance.url, path, key), 300)


async def _busy_share(appliance: MeasuredAppliance) -> float:
    before = memory.run_seconds(appliance.pid)
    await asyncio.sleep(IDLE_SECONDS)
    return (memory.run_seconds(appliance.pid) - before) / IDLE_SECONDS


async def _wait(appliance: MeasuredAppliance, key: str, path: str) -> float:
    """Return when the response arrived (perf_counter)."""
    host, _, port = appliance.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(get(appliance.url, f"{path}?wait=60", key, "Connection: close\r\n").encode())
    answer = await reader.read()
    at = time.perf_counter()
    writer.close()
    if b'"canceled"' not in answer:
        raise SystemExit(f"A waiting caller got an unexpected response: {answer[:300]!r}")
    return at
