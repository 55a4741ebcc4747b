"""What happened how often since this installation began, for the metrics: kept in the very write of what it counts, so
that no restart loses or repeats any, and a scrape reads a few rows.
"""

from enum import StrEnum

from socialpub.db.transaction import Reader, Tx


class Event(StrEnum):
    ATTEMPT = "attempt"
    """A run of a delivery's step; `kind` is that of the step."""
    REFRESH = "refresh"
    """A network was asked for new tokens."""


def add(tx: Tx, event: Event, provider: str, outcome: str, kind: str = "") -> None:
    """One more."""
    tx.execute(
        """INSERT INTO event_count VALUES (?, ?, ?, ?, 1)
            ON CONFLICT DO UPDATE SET count = count + 1""",
        (event, provider, kind, outcome),
    )


def read(reader: Reader, event: Event) -> list[tuple[str, str, str, int]]:
    """Each network, kind and outcome that has been met, and how often."""
    rows = reader.all("SELECT provider, kind, outcome, count FROM event_count WHERE event = ?", (event,))
    return [(row[0], row[1], row[2], row[3]) for row in rows]
