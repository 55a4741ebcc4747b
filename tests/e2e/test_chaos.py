"""Everything at once, for a short while: what `make chaos` plays for ten minutes."""

import pytest

from tests.chaos.run import ChaosRun
from tests.e2e.conftest import MakeInstallation

SEED = 20260922


def killed_and_lost(run: ChaosRun) -> bool:
    """Return whether a process was killed and a response lost. Only then the run proves something."""
    return any("killed" in what for what in run.interruptions) and run.promises.asked["answers lost"] > 0


@pytest.mark.endurance
def test_every_outcome_is_true_after_chaos(make_installation: MakeInstallation) -> None:
    installation = make_installation(deadline_seconds=3.0)
    installation.sandbox()
    installation.add_bluesky()
    run = ChaosRun(
        installation,
        SEED,
        deliveries=40,
        callers=4,
        more_accounts=False,
        every_seconds=(0.5, 1.5),
        met_enough=killed_and_lost,
    )
    verdict = run.play()
    assert not verdict.violations, "\n\n".join(verdict.violations)
    assert killed_and_lost(run)
    published = sum(count for what, count in verdict.outcomes.items() if what.endswith("published"))
    assert published > run.promises.deliveries() / 2, verdict.outcomes
    assert verdict.outcomes["bluesky published"] > 0, verdict.outcomes
