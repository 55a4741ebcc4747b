"""What a simulation has met: the proof that it is not tame."""

from collections import Counter
from dataclasses import dataclass, field


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
    simulated_hours: float = 0.0

    def table(self) -> str:
        lines = [f"episodes {self.episodes}, simulated hours {self.simulated_hours:,.0f}"]
        for title in ("outcomes", "calls", "faults", "acts", "paths"):
            counted: Counter[str] = getattr(self, title)
            shown = ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items()))
            lines.append(f"{title} ({counted.total():,}): {shown}")
        return "\n".join(lines)
