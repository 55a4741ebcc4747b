"""Holds: a network refuses the whole app, not one post. Everything for it waits once, behind a slow probe."""

from socialpub.core.clock import after
from socialpub.db.database import Reader, Row, Tx

PROBE_SECONDS = 15 * 60
"""How often one delivery asks whether a held network takes the app again."""


def begin(tx: Tx, provider: str, reason: str, code: str | None) -> str:
    """Hold everything of this network; returns when the next probe is due."""
    probe_at = after(tx.stamp, PROBE_SECONDS)
    tx.execute(
        """INSERT INTO hold (provider, reason, code, since, probe_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (provider) DO UPDATE SET reason = excluded.reason, code = excluded.code,
                probe_at = excluded.probe_at""",
        (provider, reason, code, tx.stamp, probe_at),
    )
    return probe_at


def release(tx: Tx, provider: str) -> bool:
    """The network takes the app again: what was held goes out. Returns whether it was held."""
    return tx.execute("DELETE FROM hold WHERE provider = ?", (provider,)).rowcount == 1


def may_pass(tx: Tx, provider: str) -> bool:
    """Whether this network is open, or a probe is due: then the caller is the probe, and the next one waits."""
    hold = tx.one("SELECT probe_at FROM hold WHERE provider = ?", (provider,))
    if hold is None:
        return True
    if hold["probe_at"] > tx.stamp:
        return False
    tx.execute("UPDATE hold SET probe_at = ? WHERE provider = ?", (after(tx.stamp, PROBE_SECONDS), provider))
    return True


def probe_at(tx: Tx, provider: str, at: str) -> None:
    """Let the next probe of a held network begin at `at`, when that is earlier: the last one showed nothing."""
    tx.execute("UPDATE hold SET probe_at = min(probe_at, ?) WHERE provider = ?", (at, provider))


def probe_all(tx: Tx) -> None:
    """Let every held network be probed at once: the operator has seen to it."""
    tx.execute("UPDATE hold SET probe_at = min(probe_at, ?)", (tx.stamp,))


def is_held(store: Reader | Tx, provider: str) -> bool:
    """Whether this network refuses the app."""
    return store.one("SELECT 1 FROM hold WHERE provider = ?", (provider,)) is not None


def list_all(store: Reader | Tx) -> list[Row]:
    """The networks that refuse this app: provider, reason, code, since, probe_at."""
    return store.all("SELECT provider, reason, code, since, probe_at FROM hold ORDER BY provider")


def closed(store: Reader | Tx, now: str) -> frozenset[str]:
    """The names of the held networks whose next probe is not due yet."""
    return frozenset(row["provider"] for row in list_all(store) if row["probe_at"] > now)


def held(store: Reader | Tx) -> frozenset[str]:
    """The names of the networks that refuse this app."""
    return frozenset(row["provider"] for row in list_all(store))
