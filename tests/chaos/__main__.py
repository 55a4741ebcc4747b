"""`make chaos`: run many deliveries under faults, and report the outcome."""

import argparse
import secrets
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.chaos.run import ChaosRun
from tests.e2e.installation import Installation


def main() -> None:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=5000)
    parser.add_argument("--seed", type=int, help="default: drawn")
    parser.add_argument("--keep", type=Path, help="keep the data, the logs and the sandbox's journal in this folder")
    asked = parser.parse_args()
    # Ended from outside it still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}; it repeats what is asked and what befalls the processes, not the moments", flush=True)
    with tempfile.TemporaryDirectory(prefix="socialpub-chaos-") as name:
        folder = asked.keep or Path(name)
        installation = Installation(folder, deadline_seconds=3.0)
        try:
            installation.prepare()
            installation.sandbox()
            installation.add_bluesky()
            run = ChaosRun(installation, seed, asked.deliveries, say=lambda line: print(f"  {line}", flush=True))
            verdict = run.play()
        finally:
            installation.close()
    _print("asked", run.promises.asked)
    _print("befell", run.interruptions)
    _print("outcomes", verdict.outcomes)
    total = run.promises.deliveries()
    print(f"{total} deliveries of {len(run.promises.posts)} posts in {run.seconds:.0f} s: ", end="")
    print(f"{len(verdict.violations)} contradictions" if verdict.violations else "0 lost, 0 twice, every outcome true")
    for number, violation in enumerate(verdict.violations, 1):
        print(f"\n{number}. {violation}")
    sys.exit(bool(verdict.violations))


def _print(title: str, counted: Counter[str]) -> None:
    print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counted.items())))


if __name__ == "__main__":
    main()
