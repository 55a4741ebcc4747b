"""`make bench`: measures every line, prints the table, and writes it as JSON and as a plot."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from socialpub.core import version
from tests.bench import creating, dashboard, figures, mixing, plot, publishing, reading, uploading, waiting
from tests.bench.figures import Figure
from tests.bench.page import write_page
from tests.bench.servers import MeasuredAppliance, Servers
from tests.bench.turns import QUIET_SECONDS, Baton, Turns

SIZES = "1000,10000,100000,1000000"
LINES = (
    *("commands", "reads", "lists", "dashboard", "waiting", "publishing", "burst", "fairness", "queues", "uploads"),
    *("mixed", "creates", "memory"),
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How long the lines measure."""

    rounds: int = 3
    seconds: float = 0.6
    requests: int = 30
    """Requests for one latency."""
    alone: int = 200
    burst: int = 1000
    posts_each: int = 80
    backlog: int = 10_000
    upload_bytes: int = uploading.SIZE
    mixed_seconds: float = 6.0
    mixed_due: int = 100


QUICK = Extent(2, 0.3, 10, 30, 300, 20, 2000, mixed_seconds=3.0)
SMOKE = Extent(1, 0.05, 1, 2, 20, 1, 100, 2_000_000, 0.4, 10)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter rounds, and at most 10,000 posts: about a minute")
    parser.add_argument("--smoke", action="store_true", help="every line, for a moment: the figures mean nothing")
    parser.add_argument("--posts", help=f"posts of the appliances, multiples of 50; default {SIZES}")
    parser.add_argument("--rounds", type=int, help="how many times a line alternates between a figure and its floor")
    parser.add_argument("--only", choices=LINES, action="append", help="only these lines; repeatable")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="also measure a checkout with its own .venv")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder of the results and of the stock")
    parser.add_argument("--folder", type=Path, help="folder of the data during the run, on the disk to measure")
    parser.add_argument("--write-page", action="store_true", help="only write the table of bench.json into the manual")
    parser.add_argument("--baton", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    result = asked.out.absolute() / "bench.json"
    if asked.write_page:
        write_page(json.loads(result.read_text()))
        return
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="socialpub-bench-", dir=(asked.folder or asked.out).absolute()) as name:
        other, baton = None, Baton(*asked.baton) if asked.baton else None
        if asked.against is not None:
            other, baton = _start_other(asked.against, asked.out.absolute() / "other")
        found = _measure(asked, Path(name) / "data", baton)
        before = [] if other is None else _finish_other(other, asked.out / "other")
    found = figures.beside(found, before)
    seconds = round(time.monotonic() - began)
    shown = {**_machine(), "seconds": seconds, "figures": [figures.as_dict(one) for one in found]}
    result.write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")
    result.with_suffix(".svg").write_text(plot.draw(found))
    print(f"{figures.table(found)}\n\n{seconds} s in all. Also in {asked.out}: bench.json and bench.svg.")


def _machine() -> dict[str, Any]:
    return {
        "version": version.VERSION,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _measure(asked: argparse.Namespace, folder: Path, baton: Baton | None) -> list[Figure]:
    extent = SMOKE if asked.smoke else QUICK if asked.quick else Extent()
    chosen = asked.posts or ("100" if asked.smoke else SIZES)
    sizes = [size for size in map(int, chosen.split(",")) if not asked.quick or asked.posts or size <= 10_000]
    wanted, found, began = asked.only or list(LINES), list[Figure](), time.monotonic()
    folder.mkdir()
    if baton is not None and asked.baton:
        baton.wait()
    with Servers(folder, asked.out.absolute() / "stock") as servers:
        quiet = 0.01 if asked.smoke else QUIET_SECONDS
        turns = Turns(asked.rounds or extent.rounds, servers.cpu_seconds, baton, quiet)
        appliances: dict[int, MeasuredAppliance] = {}
        for size in sorted(sizes):
            _say(f"{time.monotonic() - began:4.0f} s  an appliance with {size:,} posts")
            appliances[size] = servers.start_appliance(size)
        for name, measure in _lines(servers, appliances, turns, extent).items():
            if name in wanted:
                _say(f"{time.monotonic() - began:4.0f} s  {name}")
                found += measure()
    if baton is not None and not asked.baton:
        baton.release()
    return found


def _lines(
    servers: Servers, appliances: dict[int, MeasuredAppliance], turns: Turns, extent: Extent
) -> dict[str, Callable[[], list[Figure]]]:
    few, many = appliances[min(appliances)], appliances[max(appliances)]
    return {
        "commands": lambda: [
            *waiting.measure_commands(turns, 2 * extent.rounds),
            *waiting.measure_memory(few, "idle"),
        ],
        "reads": lambda: reading.measure(servers, appliances, turns, extent.seconds),
        "lists": lambda: reading.measure_lists(appliances, turns, extent.requests),
        "dashboard": lambda: dashboard.measure(appliances, turns, extent.requests),
        "waiting": lambda: waiting.measure_waiting(few, turns),
        "publishing": lambda: publishing.measure_alone(few, turns, extent.alone),
        "burst": lambda: [
            *publishing.measure_burst(few, turns, extent.burst),
            *waiting.measure_memory(few, "after a burst"),
        ],
        "fairness": lambda: publishing.measure_fairness(few, turns, extent.posts_each),
        "queues": lambda: publishing.measure_queues(servers.fill_appliance("backlog", 100), turns, extent.backlog),
        "uploads": lambda: uploading.measure(servers, few, turns, extent.upload_bytes),
        "mixed": lambda: mixing.measure(servers, many, turns, extent.mixed_seconds, extent.mixed_due),
        # The last load, because it pauses publishing.
        "creates": lambda: creating.measure(servers, appliances, turns, extent.seconds),
        "memory": lambda: [
            *waiting.measure_memory(few, "after load"),
            *waiting.measure_database(many, max(appliances)),
        ],
    }


# --- another checkout ------------------------------------------------------------------------------------------------


def _start_other(checkout: Path, out: Path) -> tuple["subprocess.Popen[bytes]", Baton]:
    """Run the bench of the other checkout, which knows its tables. Both take turns, line by line."""
    theirs, ours = os.pipe(), os.pipe()
    python = checkout.absolute() / ".venv" / "bin" / "python"
    arguments = [one for one in sys.argv[1:] if not one.startswith("--against") and one != str(checkout)]
    baton = ("--baton", str(theirs[0]), str(ours[1]))
    command = [python, "-m", "tests.bench", *arguments, "--out", out, *baton]
    process = subprocess.Popen(command, cwd=checkout, pass_fds=(theirs[0], ours[1]), stdout=subprocess.DEVNULL)
    os.close(theirs[0])
    os.close(ours[1])
    return process, Baton(ours[0], theirs[1])


def _finish_other(process: "subprocess.Popen[bytes]", out: Path) -> list[Figure]:
    if process.wait() != 0:
        raise SystemExit("The bench of the other checkout has failed.")
    shown = json.loads((out / "bench.json").read_text())
    return [figures.from_dict(one) for one in shown["figures"]]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
