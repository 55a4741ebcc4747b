"""`make fuzz`: upload this number of damaged files."""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.endurance.media_fuzz.installed import web_process
from tests.endurance.media_fuzz.run import MediaFuzz


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="default: drawn")
    parser.add_argument("--kept", type=Path, default=Path("build/fuzz"), help="where files go that broke something")
    asked = parser.parse_args()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"{asked.files} files of seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="socialpub-fuzz-") as name, web_process(Path(name)) as (installation, web):
        report = MediaFuzz(installation, web, seed, asked.kept).play(asked.files)
    print(report.table())
    for violation in report.violations:
        print(violation)
    sys.exit(bool(report.violations))


main()
