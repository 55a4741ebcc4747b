"""The creating lines: posts accepted a second, against the durable commits that the same disk takes."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from socialpub.core.clock import stamp
from socialpub.publishing.delivery import resume
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive, post_of
from tests.bench.reading import GROWTH
from tests.bench.servers import MeasuredAppliance, Servers

CREATES = 0.4
CONNECTIONS = 32


def measure(servers: Servers, appliances: dict[int, MeasuredAppliance], rounds: int, seconds: float) -> list[Figure]:
    """Creates by many callers at once. Publishing is paused: this is about accepting. Leaves the appliances paused."""
    for appliance in appliances.values():
        appliance.rt.write(resume.pause)
    found: list[Figure] = []
    tomorrow = next(iter(appliances.values())).rt.now() + timedelta(days=1)
    for line, when in (("creates, scheduled", {"scheduledAt": stamp(tomorrow)}), ("creates, publish now", {})):
        yardstick, *measured = figures.take_turns(
            rounds,
            lambda: _commits(servers, seconds),
            *(
                _creates(appliance, {"body": "Post number ########", **when}, seconds)
                for appliance in appliances.values()
            ),
        )
        for size, values in zip(appliances, measured, strict=True):
            ratio = figures.ratio(values, yardstick)
            told = figures.per_second(values), f"{figures.per_second(yardstick)} raw commits"
            found.append(figures.at_least(f"{line}, {size:,} posts", *told, ratio, CREATES))
        for values in measured[1:]:
            told = figures.per_second(values), figures.per_second(measured[0])
            growth = figures.ratio(measured[0], values)
            found.append(
                figures.at_most(f"  how many times slower than with {min(appliances):,}", *told, growth, GROWTH, "×")
            )
    return found


def _creates(appliance: MeasuredAppliance, post: dict[str, Any], seconds: float) -> Callable[[], float]:
    key = appliance.key()
    requests = [
        post_of(appliance.url, "/api/v1/posts", key, {"post": post, "profiles": [profile]})
        for profile in appliance.profiles
    ]

    def measure() -> float:
        told = drive(appliance.url, requests, seconds=seconds, connections=CONNECTIONS, expected=201)
        return float(told["per_second"])

    return measure


def _commits(servers: Servers, seconds: float) -> float:
    command = [sys.executable, "-m", "tests.bench.commits", str(servers.folder / "commits.db"), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
