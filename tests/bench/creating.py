"""The creating lines: posts accepted a second, against the durable commits that the same disk takes."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from socialpub.core.clock import stamp
from socialpub.publishing import deliveries
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive, post_of
from tests.bench.reading import GROWTH
from tests.bench.stage import House, Stage

CREATES = 0.4
CONNECTIONS = 32


def measure(stage: Stage, houses: dict[int, House], rounds: int, seconds: float) -> list[Figure]:
    """Creates by many callers at once. Publishing is paused: this is about accepting. Leaves the houses paused."""
    for house in houses.values():
        house.rt.write(deliveries.pause)
    found: list[Figure] = []
    tomorrow = next(iter(houses.values())).rt.now() + timedelta(days=1)
    for line, when in (("creates, scheduled", {"scheduledAt": stamp(tomorrow)}), ("creates, publish now", {})):
        yardstick, *measured = figures.take_turns(
            rounds,
            lambda: _commits(stage, seconds),
            *(_creates(house, {"body": "Post number ########", **when}, seconds) for house in houses.values()),
        )
        for size, values in zip(houses, measured, strict=True):
            ratio = figures.ratio(values, yardstick)
            told = figures.per_second(values), f"{figures.per_second(yardstick)} raw commits"
            found.append(figures.at_least(f"{line}, {size:,} posts", *told, ratio, CREATES))
        for values in measured[1:]:
            told = figures.per_second(values), figures.per_second(measured[0])
            growth = figures.ratio(measured[0], values)
            found.append(
                figures.at_most(f"  how many times slower than with {min(houses):,}", *told, growth, GROWTH, "×")
            )
    return found


def _creates(house: House, post: dict[str, Any], seconds: float) -> Callable[[], float]:
    key = house.key()
    requests = [
        post_of(house.url, "/api/v1/posts", key, {"post": post, "profiles": [profile]}) for profile in house.profiles
    ]

    def measure() -> float:
        told = drive(house.url, requests, seconds=seconds, connections=CONNECTIONS, expected=201)
        return float(told["per_second"])

    return measure


def _commits(stage: Stage, seconds: float) -> float:
    command = [sys.executable, "-m", "tests.bench.commits", str(stage.folder / "commits.db"), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
