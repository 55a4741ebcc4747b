"""Run `socialpub` whose sandbox is the stand-ins: `python -m tests.stand_ins sandbox --listen HOST:PORT`."""

from socialpub.cli import main, sandbox
from tests.stand_ins.world import World

if __name__ == "__main__":
    sandbox.World = World  # type: ignore[attr-defined]
    main.main()
