"""What a simulation has met: the proof that it is not tame."""

from collections import Counter
from dataclasses import dataclass, field

TITLES = ("outcomes", "calls", "faults", "acts", "paths", "restores", "while_paused", "after_restores", "limits")


@dataclass
class Figures:
    episodes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """By network and outcome."""
    calls: Counter[str] = field(default_factory=Counter)
    """By network."""
    faults: Counter[str] = field(default_factory=Counter)
    """By kind."""
    acts: Counter[str] = field(default_factory=Counter)
    """What operators, machines and clocks did."""
    paths: Counter[str] = field(default_factory=Counter)
    """By name, deliveries that went along them."""
    restores: Counter[str] = field(default_factory=Counter)
    """Backups, restores, rollbacks and resumes, by kind."""
    while_paused: Counter[str] = field(default_factory=Counter)
    """What owners did to a restored appliance before they resumed it."""
    after_restores: Counter[str] = field(default_factory=Counter)
    """How deliveries ended in restored appliances: those that came with the backup unfinished, and its own."""
    limits: Counter[str] = field(default_factory=Counter)
    """What no restored appliance can know, met."""
    simulated_hours: float = 0.0

    def table(self) -> str:
        lines = [f"episodes {self.episodes}, simulated hours {self.simulated_hours:,.0f}"]
        for title in TITLES:
            counted: Counter[str] = getattr(self, title)
            shown = ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items()))
            lines.append(f"{title.replace('_', ' ')} ({counted.total():,}): {shown}")
        return "\n".join(lines)
