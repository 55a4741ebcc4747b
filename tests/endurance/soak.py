"""`make soak`: moderate load for half an hour, and whether memory, descriptors, threads and the WAL level off.

Caches and pools fill in the first third. From then on a figure levels off when the straight line through its samples
rises by less than its allowance over the remaining two thirds: by a twentieth, or a few descriptors, or as much as the
scatter of the samples explains by itself (two standard errors). The WAL is bounded by its checkpoints instead, so its
highest value counts. Posts, logs and their media are kept forever by default, so database and folder
grow. Their bytes per post must stay the same.
"""

import argparse
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.accounts import ChaosAccounts
from tests.chaos.callers import ChaosCaller
from tests.chaos.promises import Promises
from tests.chaos.run import ChaosRun
from tests.chaos.samples import ChaosSamples
from tests.chaos.verdict import Verdict
from tests.e2e.installation import Installation
from tests.e2e.processes import Process

EVERY_SECONDS = 10.0
CALLERS = 4
POSTS_PER_SECOND = 3.0
SHARE = 0.05
LEAST_RISE = {"fds": 2.0, "threads": 2.0, "pss": 1.5e6, "rss": 1.5e6}
WAL_AT_MOST = 16e6


@dataclass(frozen=True)
class SoakSample:
    seconds: float
    posts: int
    figures: dict[str, float]


def sample(installation: Installation, processes: dict[str, Process], began: float, posts: int) -> SoakSample:
    """What the processes with their children hold now. Raises OSError when one of them has just ended."""
    figures: dict[str, float] = {}
    for role, process in processes.items():
        figures[f"{role} pss"] = _kib(process.pid, "smaps_rollup", "Pss:")
        figures[f"{role} rss"] = _kib(process.pid, "status", "VmRSS:")
        figures[f"{role} fds"] = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        figures[f"{role} threads"] = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
    figures["wal"] = (installation.data / "socialpub.db-wal").stat().st_size
    figures["database"] = (installation.data / "socialpub.db").stat().st_size
    figures["folder"] = _folder_bytes(installation.data)
    return SoakSample(time.monotonic() - began, posts, figures)


def _kib(pid: int, file: str, name: str) -> float:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


@dataclass(frozen=True)
class SoakVerdict:
    name: str
    first: float
    last: float
    highest: float
    rise: float
    """By the straight line over the last two thirds; for what grows with posts, bytes for each post."""
    allowed: float
    fine: bool


def judge(samples: list[SoakSample]) -> list[SoakVerdict]:
    kept = samples[len(samples) // 3 :]
    seconds = [one.seconds for one in kept]
    verdicts = []
    for name in samples[0].figures:
        values = [one.figures[name] for one in kept]
        if name in ("database", "folder"):
            half = len(kept) // 2
            early, late = _per_post(kept[: half + 1], name), _per_post(kept[half:], name)
            verdicts.append(_told(samples, name, late, early * 1.5 + 2000, late <= early * 1.5 + 2000))
            continue
        line = statistics.linear_regression(seconds, values)
        rise = line.slope * (seconds[-1] - seconds[0])
        scatter = statistics.pstdev(v - line.intercept - line.slope * s for s, v in zip(seconds, values, strict=True))
        if name == "wal":
            verdicts.append(_told(samples, name, rise, WAL_AT_MOST, max(values) <= WAL_AT_MOST))
        else:
            by_chance = 2 * scatter * (12 / len(kept)) ** 0.5
            allowed = max(LEAST_RISE[name.split()[1]], SHARE * statistics.fmean(values), by_chance)
            verdicts.append(_told(samples, name, rise, allowed, rise <= allowed))
    return verdicts


def _per_post(samples: list[SoakSample], name: str) -> float:
    made = max(1, samples[-1].posts - samples[0].posts)
    return (samples[-1].figures[name] - samples[0].figures[name]) / made


def _told(samples: list[SoakSample], name: str, rise: float, allowed: float, fine: bool) -> SoakVerdict:
    values = [one.figures[name] for one in samples]
    return SoakVerdict(name, values[0], values[-1], max(values), rise, allowed, fine)


def soak(installation: Installation, minutes: float, seed: int, say: Callable[[str], None]) -> list[SoakSample]:
    """The samples. AssertionError when an outcome was untrue."""
    accounts, promises = ChaosAccounts(installation), Promises()
    accounts.connect(more=True)
    processes = {role: installation.start(role) for role in ("web", "worker")}
    media = ChaosSamples(installation.folder, installation.fresh_caller())
    run = ChaosRun(installation, seed, 0)
    run.begin_faults(0.01)
    over, began, lock, turns = threading.Event(), time.monotonic(), threading.Lock(), [0]

    def more() -> bool:
        """Each asks before its next post: together they keep the pace."""
        with lock:
            turns[0] += 1
            due = began + turns[0] / POSTS_PER_SECOND
        return not over.wait(max(0.0, due - time.monotonic()))

    callers = [ChaosCaller(installation, accounts, media, promises, n, seed, more) for n in range(CALLERS)]
    for caller in callers:
        caller.start()
    samples: list[SoakSample] = []
    while time.monotonic() < began + minutes * 60:
        time.sleep(EVERY_SECONDS)
        samples.append(sample(installation, processes, began, len(promises.posts)))
        if len(samples) % 6 == 1:
            say(_line(samples[-1]))
        for caller in callers:
            if caller.error is not None:
                raise caller.error
    over.set()
    for caller in callers:
        caller.join(60)
    for network in ("x", "tiktok", "pinterest"):
        installation.control(network).calm()
    installation.forward(3600)
    run.wait_until_settled(accounts)
    verdict = Verdict(installation, installation.fresh_caller(), accounts.by_profile(), promises)
    verdict.reach()
    assert not verdict.violations, "\n\n".join(verdict.violations)
    return samples


def _line(one: SoakSample) -> str:
    return f"{one.seconds:5.0f} s {one.posts:6} posts  " + "  ".join(
        f"{name} {_short(name, value)}" for name, value in one.figures.items() if "rss" not in name
    )


def _short(name: str, value: float) -> str:
    return f"{value:.0f}" if name.endswith(("fds", "threads")) else f"{value / 1e6:.1f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak", description="Moderate load, and whether everything levels off.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="socialpub-soak-") as name:
        installation = Installation(Path(name), pace=1.0)
        try:
            installation.prepare()
            installation.sandbox()
            samples = soak(installation, asked.minutes, asked.seed, lambda line: print(line, flush=True))
        finally:
            installation.close()
    verdicts = judge(samples)
    print(f"{'':16}{'first':>10}{'last':>10}{'highest':>10}{'rise':>12}{'allowed':>12}")
    for one in verdicts:
        per_post = one.name in ("database", "folder")
        rise = f"{one.rise:.0f} B/post" if per_post else _short(one.name, one.rise)
        allowed = f"{one.allowed:.0f} B/post" if per_post else _short(one.name, one.allowed)
        columns = "".join(f"{_short(one.name, value):>10}" for value in (one.first, one.last, one.highest))
        print(f"{one.name:16}{columns}{rise:>12}{allowed:>14}  {'levels off' if one.fine else 'GROWS'}")
    sys.exit(not all(one.fine for one in verdicts))


if __name__ == "__main__":
    main()
