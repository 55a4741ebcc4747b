"""`make simulate`: run episodes for some minutes, and report the paths that they met."""

import argparse
import logging
import secrets
import sys
import tempfile
import traceback
from pathlib import Path

from tests.simulation.simulation import Simulation, memory_folder, repeat


def main() -> None:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="default: drawn")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--episode", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the number of the first episode")
    parser.add_argument("--outcomes", type=Path, help="a file for the outcomes of each episode, to compare versions")
    parser.add_argument("--log", action="store_true", help="what the appliance logs")
    asked = parser.parse_args()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    logging.getLogger("socialpub").setLevel(logging.INFO if asked.log else logging.CRITICAL)
    failures: list[int] = []

    def ended(number: int, outcomes: str) -> None:
        if asked.outcomes is not None:
            with asked.outcomes.open("a") as file:
                file.write(f"{number} {outcomes}\n")

    def failed(number: int, error: Exception) -> None:
        failures.append(number)
        print(f"\nepisode {number} of seed {seed}: {repeat(seed, number)}", flush=True)
        traceback.print_exception(error, limit=-4)

    with tempfile.TemporaryDirectory(prefix="socialpub-simulation-", dir=memory_folder()) as name:
        simulation = Simulation(Path(name), seed)
        if asked.episode is not None:
            ended(asked.episode, simulation.play(asked.episode))
        else:
            simulation.play_for(asked.minutes * 60, asked.first, failed, ended)
        simulation.close()
    print(simulation.figures.table())
    if failures:
        print(f"{len(failures)} episodes of seed {seed} failed: {failures}")
        sys.exit(1)


if __name__ == "__main__":
    main()
