"""Consents: attempts to connect an account through the network's own page, each a row of the table `consent`.

A state belongs to one attempt and works once, for ten minutes. Every way in which an attempt ends is written down,
because whoever began it waits elsewhere.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from socialpub.accounts import remedies
from socialpub.accounts.profiles import Connected
from socialpub.accounts.remedies import Door
from socialpub.core import clock, crypto
from socialpub.core.errors import OperatorError
from socialpub.db.transaction import AT_ONCE, Reader, Row, Tx
from socialpub.runtime import Runtime

LIFETIME = timedelta(minutes=10)
LONGEST_EXCHANGE_SECONDS = 300.0
"""An attempt whose browser came back longer ago than this was cut off: two calls with their deadlines take less."""
KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was saved."""

    message: str
    hint: str | None


def insert(
    rt: Runtime,
    tx: Tx,
    consent_id: str,
    provider: str,
    state: str,
    verifier: str,
    redirect_uri: str,
    expires_at: datetime,
    name: str | None,
    expected_profile_id: str | None,
    door: Door,
) -> None:
    """Note a new attempt. Of the state only a digest is kept: whoever reads the database cannot answer for the
    browser."""
    tx.insert(
        "consent",
        id=consent_id,
        state_hash=crypto.digest(state),
        provider=provider,
        verifier=rt.secrets.seal(verifier, "consent", consent_id, "verifier"),
        redirect_uri=redirect_uri,
        name=name,
        expected_profile_id=expected_profile_id,
        door=door,
        created_at=tx.stamp,
        expires_at=clock.stamp(expires_at),
    )


def seal_anew(tx: Tx, anew: Callable[[bytes, str, str, str], bytes]) -> None:
    """Exchange every sealed verifier for `anew(sealed, table, id, column)`."""
    for row in tx.all("SELECT id, verifier FROM consent WHERE length(verifier) > 0"):
        tx.update("consent", row["id"], verifier=anew(row["verifier"], "consent", row["id"], "verifier"))


def find(store: Reader | Tx, consent_id: str) -> Row | None:
    return store.one("SELECT * FROM consent WHERE id = ?", (consent_id,))


def door_of(row: Row) -> Door:
    """Where this attempt was begun."""
    return Door(row["door"])


def find_by_state(reader: Reader, provider: str, state: str) -> Row | None:
    """The attempt that this state belongs to."""
    return reader.one("SELECT * FROM consent WHERE state_hash = ? AND provider = ?", (crypto.digest(state), provider))


def take(rt: Runtime, tx: Tx, consent_id: str) -> None:
    """Spend the state: whatever becomes of this attempt, it has no second try. Raises OperatorError."""
    row = find(tx, consent_id)
    assert row is not None
    again = remedies.begin_again(row["provider"], door_of(row))
    if row["taken_at"] is not None:
        if row["profile_id"] is not None:
            message = "This link has been used already: the account is connected."
            raise OperatorError(message, "There is nothing to do.")
        raise OperatorError("This link has been used already.", again)
    if row["finished_at"] is not None:
        raise OperatorError("This attempt was given up.", again)
    if row["expires_at"] <= tx.stamp:
        raise OperatorError("This attempt was begun more than ten minutes ago.", again)
    # The code challenge has been answered in this call; nobody needs the verifier a second time.
    tx.update("consent", consent_id, taken_at=tx.stamp, verifier=b"")


def check_open(tx: Tx, consent_id: str) -> Row:
    """The row of an attempt that somebody still waits for. Raises OperatorError."""
    row = find(tx, consent_id)
    assert row is not None
    if row["finished_at"] is not None:
        raise OperatorError("This attempt was given up.", remedies.begin_again(row["provider"], door_of(row)))
    return row


def succeed(tx: Tx, consent_id: str, connected: Connected) -> None:
    """Note that the account is connected."""
    tx.update(
        "consent",
        consent_id,
        finished_at=tx.stamp,
        profile_id=connected.profile_id,
        revived=int(connected.revived),
        missing=json.dumps(connected.missing, ensure_ascii=False),
    )


def fail(rt: Runtime, tx: Tx, consent_id: str, message: str, hint: str | None) -> None:
    tx.execute(
        "UPDATE consent SET finished_at = ?, error = ?, hint = ? WHERE id = ? AND finished_at IS NULL",
        (tx.stamp, message, hint, consent_id),
    )


def outcome(rt: Runtime, consent_id: str) -> Connected | Failed | None:
    """How the attempt ended; None while the browser may still come back."""
    row = find(rt.reader, consent_id)
    if row is None:
        return Failed("This attempt is not known any more.", None)
    again = remedies.begin_again(row["provider"], door_of(row))
    if row["profile_id"] is not None:
        return Connected(row["profile_id"], tuple(json.loads(row["missing"])), bool(row["revived"]))
    if row["finished_at"] is not None:
        return Failed(row["error"], row["hint"])
    if row["taken_at"] is not None:
        if clock.after(row["taken_at"], LONGEST_EXCHANGE_SECONDS) < rt.stamp():
            return Failed("The appliance was interrupted while the account was being connected.", again)
        return None
    if row["expires_at"] <= rt.stamp():
        return Failed("The browser did not come back within ten minutes.", again)
    return None


def waiting(reader: Reader, door: Door, now: str) -> list[Row]:
    """The attempts begun at this door whose browser may still come back, of each network the newest: id, provider,
    created_at."""
    return reader.all(
        """SELECT id, provider, max(created_at) AS created_at FROM consent WHERE door = ? AND taken_at IS NULL
            AND finished_at IS NULL AND expires_at > ? GROUP BY provider ORDER BY created_at""",
        (door, now),
    )


def give_up(rt: Runtime, tx: Tx, consent_id: str) -> None:
    """Nobody waits any more: what the browser brings later connects nothing."""
    fail(rt, tx, consent_id, "The attempt was given up.", None)


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget attempts of yesterday; how many, a few hundred at most."""
    before = clock.stamp(tx.now - KEPT)
    return tx.execute(
        "DELETE FROM consent WHERE id IN (SELECT id FROM consent WHERE created_at < ? LIMIT ?)", (before, AT_ONCE)
    ).rowcount
