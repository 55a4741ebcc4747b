"""The creating lines: posts accepted a second, beside durable commits."""

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from socialpub.core.clock import stamp
from socialpub.publishing.delivery import resume
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive, post
from tests.bench.reading import Appliances, growth
from tests.bench.servers import MeasuredAppliance, Servers
from tests.bench.turns import Turns

OF_COMMITS = 0.08
CONNECTIONS = 32


def measure(servers: Servers, appliances: Appliances, turns: Turns, seconds: float) -> list[Figure]:
    """Measure creates by many callers at once. Publishing is paused and stays paused."""
    for appliance in appliances.values():
        appliance.rt.write(resume.pause)
    few, many = min(appliances), max(appliances)
    tomorrow = appliances[few].rt.now() + timedelta(days=1)
    ends = {few: appliances[few], many: appliances[many]}
    return [
        *_measure(servers, appliances, turns, seconds, "creates, scheduled", tomorrow),
        *_measure(servers, ends, turns, seconds, "creates, publish now", None),
    ]


def _measure(
    servers: Servers, appliances: Appliances, turns: Turns, seconds: float, name: str, at: datetime | None
) -> list[Figure]:
    creates = {size: _creates(appliance, at) for size, appliance in appliances.items()}
    commits, *measured = turns.take(
        lambda: _measure_commits(servers.folder / "commits.db", seconds),
        *(lambda create=create: float(create(seconds)["per_second"]) for create in creates.values()),
    )
    ends = (min(appliances), max(appliances))
    rows = [
        figures.compare(
            *(f"{name}, {size:,} posts", rates, commits, "/s", "raw commits"),
            least=OF_COMMITS if size in ends else None,
            posts=size,
            series="creates / raw commits" if at else "",
        )
        for size, rates in zip(appliances, measured, strict=True)
    ]
    return [*rows, *growth(rows)]


def _creates(appliance: MeasuredAppliance, at: datetime | None) -> Callable[[float], dict[str, Any]]:
    key = appliance.key()
    content = {"body": "Post number ########", **({"scheduledAt": stamp(at)} if at else {})}
    requests = [
        post(appliance.url, "/api/v1/posts", key, {"post": content, "profiles": [profile]})
        for profile in appliance.profiles
    ]
    return lambda seconds: drive(appliance.url, requests, seconds=seconds, connections=CONNECTIONS, expected=201)


def _measure_commits(file: Path, seconds: float) -> float:
    command = [sys.executable, "-m", "tests.bench.floors", str(file), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout)
