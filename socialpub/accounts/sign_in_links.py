"""Links that let a browser in once: to set the first password, or straight into the dashboard.

Of a link only a digest is stored. It works once and for a day, and a new one of its purpose replaces it.
"""

import secrets
from datetime import timedelta
from enum import StrEnum

from socialpub.core import crypto
from socialpub.core.clock import stamp
from socialpub.db.transaction import Reader, Tx
from socialpub.runtime import Runtime

LIFETIME = timedelta(days=1)


class Purpose(StrEnum):
    SET_UP = "set_up"
    """To set the password while there is none."""

    SIGN_IN = "sign_in"
    """To be signed in without one: what the demo prints."""


_VALID = "token_hash = ? AND purpose = ? AND instance_id = ? AND expires_at > ?"


def make(rt: Runtime, tx: Tx, purpose: Purpose) -> str:
    """The token of a new link. Former ones of this purpose are worthless from now on."""
    token = secrets.token_urlsafe(32)
    tx.execute("DELETE FROM sign_in_link WHERE purpose = ? OR expires_at <= ?", (purpose, tx.stamp))
    tx.insert(
        "sign_in_link",
        token_hash=crypto.digest(token),
        instance_id=rt.instance_id,
        purpose=purpose,
        created_at=tx.stamp,
        expires_at=stamp(tx.now + LIFETIME),
    )
    return token


def is_valid(rt: Runtime, reader: Reader, purpose: Purpose, token: str) -> bool:
    """Whether the link still works; it is not used up by this."""
    values = (crypto.digest(token), purpose, rt.instance_id, rt.stamp())
    return reader.one(f"SELECT 1 FROM sign_in_link WHERE {_VALID}", values) is not None


def take(rt: Runtime, tx: Tx, purpose: Purpose, token: str) -> bool:
    """Use the link up; whether it worked."""
    values = (crypto.digest(token), purpose, rt.instance_id, tx.stamp)
    return tx.execute(f"DELETE FROM sign_in_link WHERE {_VALID}", values).rowcount == 1


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget those that work no more; how many."""
    return tx.execute("DELETE FROM sign_in_link WHERE expires_at <= ?", (tx.stamp,)).rowcount


def end_all(tx: Tx) -> None:
    tx.execute("DELETE FROM sign_in_link")
