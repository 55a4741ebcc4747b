"""How many deliveries of each network had which outcome: counted when one ends, so that a scrape reads a few rows."""

from socialpub.accounts import usage
from socialpub.db.transaction import Reader, Tx


def add(tx: Tx, provider: str, outcome: str) -> None:
    """One more delivery has this outcome, which is final."""
    tx.execute(
        "INSERT INTO delivery_count VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET deliveries = deliveries + 1",
        (provider, outcome),
    )
    usage.add(tx, outcome, {provider: 1})


def read(reader: Reader) -> dict[tuple[str, str], int]:
    """By provider and outcome."""
    return {(row[0], row[1]): row[2] for row in reader.all("SELECT provider, outcome, deliveries FROM delivery_count")}
