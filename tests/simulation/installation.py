"""One installation of an episode: its processes, its owner's ledger and acts, and its backups."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from socialpub.runtime import Runtime
from tests.simulation.drawn_posts import DrawnPosts
from tests.simulation.judge import Testimony, Watch, testimony
from tests.simulation.ledger import Ledger
from tests.simulation.lives import Lives
from tests.simulation.operator_acts import OperatorActs


@dataclass
class Installation:
    name: str
    lives: Lives
    posts: DrawnPosts
    acts: OperatorActs
    watch: Watch
    public_before: frozenset[str] = frozenset()
    """The ids that were public when it was resumed after its restore."""
    clock_was_set: bool = False
    """Whether somebody set the clock between the backup and the resume."""

    @property
    def rt(self) -> Runtime:
        return self.lives.rt

    @property
    def ledger(self) -> Ledger:
        return self.posts.ledger

    def testimony(self) -> Testimony:
        return testimony(self.rt, self.name, self.ledger, self.public_before, self.clock_was_set)


class Way(StrEnum):
    """How a former state comes back."""

    RESTORE = "restore"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class DrawnBackup:
    path: Path
    way: Way
    ledger: Ledger
    watch: Watch
    commits: int
    """How many calls that make something public had begun by then."""
    set_seconds: float
    """How far the clock was set by then."""
    of: Installation
