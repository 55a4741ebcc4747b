"""Which causes the owner has been told of: the table `told_cause`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from socialpub.db.transaction import Reader, Row, Tx


@dataclass(frozen=True, slots=True)
class ToldCause:
    """A cause as the owner knows it. Instants are stamps."""

    key: str
    subject: str
    kind: str
    sentence: str
    passes: bool
    since: str
    """When it was found, this time."""
    told_at: str | None = None
    """When the owner was last told that it is there; None when they do not know of this time yet."""
    ended_at: str | None = None
    """Since when it has not been found."""
    returns: int = 0
    """How often it came back, within a day each: it is told later each time."""
    held_back: bool = False
    """The daily limit kept it from being told."""


_COLUMNS = "key, subject, kind, sentence, passes, since, told_at, ended_at, returns, held_back"


def read(store: Reader | Tx) -> dict[str, ToldCause]:
    """All of them by their keys."""
    rows = store.all(f"SELECT {_COLUMNS} FROM told_cause ORDER BY since, key")
    return {row["key"]: _cause(row) for row in rows}


def put(tx: Tx, causes: Iterable[ToldCause]) -> None:
    """Write these down as they are now."""
    for cause in causes:
        values = asdict(cause)
        tx.execute(
            f"""INSERT INTO told_cause ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET sentence = excluded.sentence, since = excluded.since,
                    told_at = excluded.told_at, ended_at = excluded.ended_at, returns = excluded.returns,
                    held_back = excluded.held_back""",
            tuple(int(value) if isinstance(value, bool) else value for value in values.values()),
        )


def are_kept(tx: Tx) -> bool:
    """Return whether this database knows notifications: one of a version before 0017 does not."""
    return tx.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'told_cause'") is not None


def forget_all(tx: Tx) -> None:
    tx.execute("DELETE FROM told_cause")


def forget(tx: Tx, keys: Iterable[str]) -> None:
    for key in keys:
        tx.execute("DELETE FROM told_cause WHERE key = ?", (key,))


def _cause(row: Row) -> ToldCause:
    key, subject, kind, sentence, passes, since, told_at, ended_at, returns, held_back = row
    return ToldCause(key, subject, kind, sentence, bool(passes), since, told_at, ended_at, returns, bool(held_back))
