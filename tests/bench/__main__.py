"""`make bench`: every line, one after the other, and the table at the end."""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import creating, dashboard, figures, load, publishing, reading, uploading, waiting
from tests.bench.figures import Figure
from tests.bench.servers import Servers

FEW_POSTS = 1000
LINES = ("idle", "reads", "dashboard", "waiting", "publishing", "burst", "fairness", "queues", "uploads", "creates")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, 10,000 posts: about a minute")
    parser.add_argument("--posts", type=int, help="posts in the larger appliance; default 100000")
    parser.add_argument("--rounds", type=int, help="how many pairs of measures a line takes")
    parser.add_argument("--only", choices=LINES, action="append", help="only these lines; repeatable")
    parser.add_argument("--folder", type=Path, help="where the data lies while it runs (the disk that is measured)")
    asked = parser.parse_args()
    many = asked.posts or (10_000 if asked.quick else 100_000)
    rounds = asked.rounds or (2 if asked.quick else 5)
    wanted = asked.only or list(LINES)
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="socialpub-bench-", dir=asked.folder) as name,
        Servers(Path(name)) as servers,
    ):
        loader = load.find(servers.folder)
        print(
            f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}; load by {loader.name}"
        )
        small = servers.start_appliance("small", FEW_POSTS)
        appliances = {FEW_POSTS: small}
        found: list[Figure] = []

        def line(name: str, measure: Callable[[], list[Figure]]) -> None:
            if name in wanted:
                _say(f"{time.perf_counter() - began:4.0f} s  {name}")
                found.extend(measure())

        line("idle", lambda: waiting.measure_idle(small))
        if {"reads", "creates", "dashboard"} & set(wanted):
            _say(f"{time.perf_counter() - began:4.0f} s  filling a second appliance with {many:,} posts")
            appliances[many] = servers.start_appliance("large", many)
        line("reads", lambda: reading.measure(servers, appliances, loader, rounds, 1))
        line("reads", lambda: reading.measure_long(appliances, rounds))
        line("dashboard", lambda: dashboard.measure(appliances))
        line("waiting", lambda: waiting.measure_waiting(small))
        line("publishing", lambda: publishing.measure_alone(small, 50 if asked.quick else 200))
        line("burst", lambda: publishing.measure_burst(small, 1 if asked.quick else 3))
        line("fairness", lambda: publishing.measure_fairness(small, 1 if asked.quick else 3))
        line("queues", lambda: publishing.measure_queues(servers.fill_appliance("backlog", 0)))
        line("uploads", lambda: uploading.measure(servers, small, rounds))
        line("creates", lambda: creating.measure(servers, appliances, rounds, 1.0))
    print(f"\n{figures.table(found)}\n\n{time.perf_counter() - began:.0f} s in all.")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
