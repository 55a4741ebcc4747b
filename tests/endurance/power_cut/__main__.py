"""Moments of a load at which the power fails. Mounts, so it wants to be root, in a mount namespace of its own."""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.e2e.installation import Installation
from tests.endurance.power_cut.run import PowerCutRun

SETTINGS = '[health]\ndisk_floor_bytes = "1MB"\n'


def main() -> None:
    parser = argparse.ArgumentParser(prog="unshare -m python -m tests.endurance.power_cut", description=__doc__)
    parser.add_argument("--captures", type=int, default=80, help="in each life")
    parser.add_argument("--lives", type=int, default=4)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="socialpub-power-cut-", ignore_cleanup_errors=True) as name,
        tempfile.TemporaryDirectory(prefix="socialpub-power-cut-", dir=memory, ignore_cleanup_errors=True) as images,
    ):
        installation = Installation(Path(name), deadline_seconds=3.0, settings=SETTINGS)
        run = PowerCutRun(installation, Path(images), asked.seed, asked.captures, asked.lives)
        try:
            verdict = run.play(lambda line: print(f"  {line}", flush=True))
        finally:
            installation.close()
            run.unmount()
    told = ", ".join(f"{what} {count}" for what, count in sorted((run.done + verdict.outcomes).items()))
    print(f"{told}; {len(run.promises.posts)} posts, {len(run.promises.artifacts)} artifacts acknowledged")
    print(f"{len(verdict.violations)} contradictions" if verdict.violations else "nothing lost, nothing damaged")
    for violation in verdict.violations:
        print(f"\n{violation}")
    sys.exit(bool(verdict.violations))


if __name__ == "__main__":
    main()
