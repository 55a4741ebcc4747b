"""Statements about the table `hold`: a network refuses the whole app, and its deliveries wait for a probe."""

from socialpub.core.clock import after
from socialpub.db import states
from socialpub.db.connection import Reader, Row, Tx, placeholders
from socialpub.db.delivery import Delivery
from socialpub.db.tables import delivery_rows


def endpoint_of(step_name: str) -> str:
    """The step's family: `upload:3` and `upload:4` ask the same endpoint."""
    return step_name.partition(":")[0]


QUESTIONS = states.QUESTIONS
PUBLISHING = ""
"""The scope of everything that leads to a post."""

PROBE_SECONDS = 15 * 60
"""How often one delivery asks whether what is held is taken again."""


def what(scope: str) -> str:
    """What a hold of this scope keeps back, in words."""
    match scope:
        case "":
            return "its deliveries are held"
        case "questions":
            return "it is asked nothing, and posting goes on"
        case _:
            return f"its deliveries are held at the step {scope}"


def released(scope: str) -> str:
    """What the end of such a hold means."""
    return "it is asked again" if scope == QUESTIONS else "held deliveries are sent"


def scopes_of(delivery: Delivery) -> tuple[str, ...]:
    """The scopes of what this delivery does next."""
    return (QUESTIONS,) if delivery.asks else (PUBLISHING, endpoint_of(delivery.step_name))


def begin(tx: Tx, provider: str, scope: str, reason: str, code: str | None) -> str:
    """Hold what is in this scope; returns when the next probe is due."""
    probe_at = after(tx.stamp, PROBE_SECONDS)
    tx.execute(
        """INSERT INTO hold (provider, scope, reason, code, since, probe_at) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (provider, scope) DO UPDATE SET reason = excluded.reason, code = excluded.code,
                probe_at = excluded.probe_at""",
        (provider, scope, reason, code, tx.stamp, probe_at),
    )
    return probe_at


def release(tx: Tx, provider: str, scope: str) -> bool:
    """It is taken again: what was held goes out. Returns whether it was held."""
    return tx.execute("DELETE FROM hold WHERE provider = ? AND scope = ?", (provider, scope)).rowcount == 1


def closed_until(tx: Tx, delivery: Delivery) -> tuple[str, str] | None:
    """When what holds this delivery's next step is probed, and why it is held; None when nothing does."""
    scopes = scopes_of(delivery)
    row = tx.one(
        f"""SELECT probe_at, reason FROM hold WHERE provider = ? AND scope IN ({placeholders(scopes)}) AND probe_at > ?
            ORDER BY probe_at DESC""",
        (delivery.provider, *scopes, tx.stamp),
    )
    return None if row is None else (row.probe_at, row.reason)


def claim_probe(tx: Tx, delivery: Delivery) -> None:
    """Where something is held this delivery is the probe, and the next one waits."""
    scopes = scopes_of(delivery)
    tx.execute(
        f"UPDATE hold SET probe_at = ? WHERE provider = ? AND scope IN ({placeholders(scopes)})",
        (after(tx.stamp, PROBE_SECONDS), delivery.provider, *scopes),
    )


def release_probe(tx: Tx, provider: str, scopes: tuple[str, ...], at: str) -> None:
    """The probe showed nothing: let the next one begin at `at`, when that is earlier."""
    tx.execute(
        f"UPDATE hold SET probe_at = min(probe_at, ?) WHERE provider = ? AND scope IN ({placeholders(scopes)})",
        (at, provider, *scopes),
    )


def probe_all(tx: Tx) -> None:
    """Let everything that is held be probed at once: the operator has seen to it."""
    tx.execute("UPDATE hold SET probe_at = min(probe_at, ?)", (tx.stamp,))


def is_held(store: Reader, provider: str, scope: str = PUBLISHING) -> bool:
    """Whether this scope of the network is held."""
    return store.one("SELECT 1 FROM hold WHERE provider = ? AND scope = ?", (provider, scope)) is not None


def any_hold(store: Reader) -> bool:
    return store.one("SELECT 1 FROM hold") is not None


def drop_unasked(tx: Tx) -> None:
    """Forget holds of questions and of steps that nothing waits for any more: nobody would ever ask again."""
    for hold in tx.all("SELECT provider, scope FROM hold WHERE scope <> ?", (PUBLISHING,)):
        if not delivery_rows.any_waiting_for(tx, hold.provider, hold.scope):
            release(tx, hold.provider, hold.scope)


def forget_all(tx: Tx) -> None:
    """Forget every hold: another installation was refused, and this one finds out for itself."""
    tx.execute("DELETE FROM hold")


def list_all(store: Reader) -> list[Row]:
    """What is held: provider, scope, reason, code, since, probe_at."""
    return store.all("SELECT provider, scope, reason, code, since, probe_at FROM hold ORDER BY provider, scope")


def held(store: Reader) -> frozenset[str]:
    """The names of the networks that refuse this app."""
    return frozenset(row.provider for row in list_all(store) if row.scope == PUBLISHING)
