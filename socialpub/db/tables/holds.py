"""Statements about the table `hold`: a network rejects the whole app, and its deliveries wait for a probe."""

from peewee import Expression, fn

from socialpub.core.clock import after
from socialpub.db.connection import Database, placeholders, prepared
from socialpub.db.delivery import Delivery
from socialpub.db.models import HoldRow
from socialpub.db.states import QUESTIONS as QUESTIONS
from socialpub.db.tables import delivery_rows


def step_endpoint(step_name: str) -> str:
    """Return the endpoint of a step. `upload:3` and `upload:4` share one endpoint."""
    return step_name.partition(":")[0]


PUBLISHING = ""
"""The scope of all steps of a plan."""

PROBE_SECONDS = 15 * 60
"""The interval in which one delivery tests whether the network accepts the app again."""


def describe_hold(scope: str) -> str:
    """Return the effect of a hold of this scope."""
    match scope:
        case "":
            return "its deliveries are held"
        case "questions":
            return "read-backs and polls are held, and posting continues"
        case _:
            return f"its deliveries are held at the step {scope}"


def describe_release(scope: str) -> str:
    """Return the effect of the end of a hold."""
    return "read-backs and polls continue" if scope == QUESTIONS else "held deliveries are sent"


def next_scopes(delivery: Delivery) -> tuple[str, ...]:
    """Return the scopes of this delivery's next step."""
    return (QUESTIONS,) if delivery.asks else (PUBLISHING, step_endpoint(delivery.step_name))


def begin(tx: Database, provider: str, scope: str, reason: str, code: str | None) -> str:
    """Hold this scope. Return when the next probe is due."""
    probe_at = after(tx.stamp, PROBE_SECONDS)
    hold = HoldRow.insert(provider=provider, scope=scope, reason=reason, code=code, since=tx.stamp, probe_at=probe_at)
    key, changes = [HoldRow.provider, HoldRow.scope], [HoldRow.reason, HoldRow.code, HoldRow.probe_at]
    tx.run(hold.on_conflict(conflict_target=key, preserve=changes))
    return probe_at


def release(tx: Database, provider: str, scope: str) -> bool:
    """End the hold. Return whether there was a hold."""
    return tx.delete(HoldRow, HoldRow.provider == provider, HoldRow.scope == scope) == 1


@prepared("each claim")
def held_until(tx: Database, delivery: Delivery) -> tuple[str, str] | None:
    """Return the next probe and the reason of a hold on this delivery's next step, or None."""
    scopes = next_scopes(delivery)
    row = tx.one(
        f"""SELECT probe_at, reason FROM hold WHERE provider = ? AND scope IN ({placeholders(scopes)}) AND probe_at > ?
            ORDER BY probe_at DESC""",
        (delivery.provider, *scopes, tx.stamp),
    )
    return None if row is None else (row.probe_at, row.reason)


def claim_probe(tx: Database, delivery: Delivery) -> None:
    """Make this delivery the probe of the hold, and let the next probe wait."""
    tx.run(HoldRow.update(probe_at=after(tx.stamp, PROBE_SECONDS)).where(_in(delivery.provider, next_scopes(delivery))))


def release_probe(tx: Database, provider: str, scopes: tuple[str, ...], at: str) -> None:
    """Let the next probe begin at `at` or earlier: the last probe had no result."""
    tx.run(HoldRow.update(probe_at=fn.MIN(HoldRow.probe_at, at)).where(_in(provider, scopes)))


def _in(provider: str, scopes: tuple[str, ...]) -> Expression:
    return (HoldRow.provider == provider) & HoldRow.scope.in_(scopes)


def probe_all(tx: Database) -> None:
    """Let all holds be probed at once: the operator has fixed the cause."""
    tx.run(HoldRow.update(probe_at=fn.MIN(HoldRow.probe_at, tx.stamp)))


def find(reader: Database, provider: str, scope: str = PUBLISHING) -> HoldRow | None:
    return reader.first(HoldRow.select().where(_in(provider, (scope,))))


def is_held(reader: Database, provider: str, scope: str = PUBLISHING) -> bool:
    return find(reader, provider, scope) is not None


@prepared("each claim")
def any_hold(store: Database) -> bool:
    return store.one("SELECT 1 FROM hold") is not None


def drop_unasked(tx: Database) -> None:
    """Delete holds that no delivery waits for, because a probe would never end these holds.

    Holds of the whole app stay.
    """
    for hold in list_all(tx):
        if hold.scope != PUBLISHING and not delivery_rows.any_waiting_for(tx, hold.provider, hold.scope):
            release(tx, hold.provider, hold.scope)


def list_all(reader: Database) -> list[HoldRow]:
    return reader.rows(HoldRow.select().order_by(HoldRow.provider, HoldRow.scope))


def held_networks(reader: Database) -> frozenset[str]:
    """Return the networks that reject this app."""
    return frozenset(row.provider for row in list_all(reader) if row.scope == PUBLISHING)
