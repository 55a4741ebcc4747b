"""The clocks of an episode: ours may be set and the machine may be switched off; those of the networks go on evenly."""

from datetime import datetime, timedelta

from socialpub.sandbox import World
from tests.support.hand_clock import HandClock


class DrawnClock(HandClock):
    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self.jumps = 0
        self.set_seconds = 0.0
        """How far our clock was set, all together."""
        self.boots = 0
        self.passed_seconds = 0.0
        self._periods: list[tuple[float, float]] = []
        """The first and the last time that the wall clock showed, each until it was set."""
        self._period_began = self.now().timestamp()

    def has_shown(self, moment: datetime) -> bool:
        """Return whether the wall clock has shown this moment, to the millisecond."""
        periods = (*self._periods, (self._period_began, self.now().timestamp()))
        return any(first - 0.001 <= moment.timestamp() <= last for first, last in periods)

    def forward(self, seconds: float) -> None:
        super().forward(seconds)
        self.passed_seconds += seconds

    def jump(self, seconds: float) -> None:
        """Somebody sets our clock; those of the networks stay right."""
        self._periods.append((self._period_began, self.now().timestamp()))
        super().jump(seconds)
        self._period_began = self.now().timestamp()
        self.jumps += 1
        self.set_seconds += abs(seconds)
        if self.world is not None:
            for network in self.world.networks.values():
                network.clock_skew_seconds -= seconds

    def switch_off(self, seconds: float) -> None:
        """Turn the machine off for some seconds. Its monotonic clock starts again."""
        self.boots += 1
        self.boot = f"boot {self.boots}"
        self._now += timedelta(seconds=seconds)
        self._monotonic = 5.0
        self.passed_seconds += seconds
