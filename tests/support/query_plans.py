"""How SQLite runs the statements of a read."""

from collections.abc import Callable
from dataclasses import dataclass

from socialpub.db.connection import Database
from tests.support.select import select_all

LARGE = {"post", "p", "n", "delivery", "d", "log_entry", "e", "attempt", "media", "m", "artifact", "a"}
"""The tables that grow with each post, and their short names."""


@dataclass(frozen=True)
class StatementPlan:
    sql: str
    steps: tuple[str, ...]

    @property
    def scans(self) -> list[str]:
        """The steps that read a large table without an index."""
        scans = [step for step in self.steps if step.startswith("SCAN ") and " INDEX " not in step]
        return [step for step in scans if step.split()[1] in LARGE]

    @property
    def sorts(self) -> int:
        return sum("TEMP B-TREE FOR ORDER BY" in step for step in self.steps)

    def uses(self, index: str) -> bool:
        return any(f"{index} " in f"{step} " for step in self.steps)


def plans_of(db: Database, read: Callable[[Database], object]) -> list[StatementPlan]:
    """Return the plan of each statement that `read` runs."""
    statements = list[str]()
    db.connection().set_trace_callback(statements.append)
    read(db)
    db.connection().set_trace_callback(None)
    queries = [sql for sql in dict.fromkeys(statements) if sql.lstrip().startswith(("SELECT", "WITH"))]
    return [
        StatementPlan(sql, tuple(row["detail"] for row in select_all(db, f"EXPLAIN QUERY PLAN {sql}")))
        for sql in queries
    ]
