"""The simulation, short and always the same: so that it works when it is needed, and does not become tame."""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.figures import Figures
from tests.simulation.simulation import Simulation, memory_folder

pytestmark = pytest.mark.grid  # as slow as that: `make test-fast` leaves it out
SEED = 1
EPISODES = 60
"""At most. This seed has met everything after half of them."""
MUST_MEET = {
    "read back",
    "published after reading back",
    "looked at before a second call",
    "second call",
    "hold",
    "owner wait",
    "reply",
    "failed with its post",
    "similar post",
    "equal content",
    "stopped",
    "given up",
    "not in time",
}
OUTCOMES = {
    f"{network} {end}" for network in ("x", "tiktok", "pinterest") for end in ("published", "failed", "unconfirmed")
} | {"bluesky published", "bluesky failed"}
ACTS = {"killed in a call", "killed between steps", "machine restarted", "clock set", "changed", "retried"}
RESTORES = {
    "backup in a call",
    "backup between calls",
    "backup before an upgrade",
    "restore",
    "restore, not the first",
    "rollback",
    "original beside the restored one",
    "resume",
    "resume --nothing-was-sent",
}
WHILE_PAUSED = {"post", "changed", "retried"}
AFTER_RESTORES = {
    "inherited found",
    "inherited published",
    "inherited failed",
    "inherited unconfirmed",
    "its own published",
}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(prefix="socialpub-simulation-", dir=memory_folder()) as folder:
        simulation = Simulation(Path(folder), SEED)
        yield simulation
        simulation.close()


@pytest.fixture
def silence() -> Iterator[None]:
    logger = logging.getLogger("socialpub")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.mark.endurance
def test_a_short_one_finds_nothing_untrue_and_meets_every_interesting_path(simulation, silence):
    for number in range(EPISODES):
        simulation.play(number)
        missing = not_met(simulation.figures)
        if not missing:
            break
    assert not missing


def not_met(figures: Figures) -> set[str]:
    """Check that the run met all required paths, outcomes, acts and restores."""
    asked = (
        (MUST_MEET, figures.paths),
        (OUTCOMES, figures.outcomes),
        (ACTS, figures.acts),
        (RESTORES, figures.restores),
        (WHILE_PAUSED, figures.while_paused),
        (AFTER_RESTORES, figures.after_restores),
    )
    return {name for wanted, met in asked for name in wanted - set(+met)}


def test_the_same_seed_gives_the_same_run(tmp_path, silence):
    def play(folder: Path) -> str:
        folder.mkdir()
        simulation = Simulation(folder, SEED)
        for number in range(2):
            simulation.play(number)
        simulation.close()
        assert simulation.figures.restores["resume"], "it has restores"
        return simulation.figures.table()

    assert play(tmp_path / "once") == play(tmp_path / "again")
