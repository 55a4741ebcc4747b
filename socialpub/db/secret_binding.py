"""Which `secret.key` a database belongs to: found out at start, not at the first token that cannot be read."""

import sqlite3

from socialpub.core import commands
from socialpub.core.crypto import Secrets
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.transaction import Reader, Tx


def if_lost() -> str:
    """Return what to do if the key of a database is lost for good."""
    new = commands.line("init", "--new-secret")
    return f"If that key is lost for good, move this one away and run `{new}`. It says what is lost with the key."


def check(connection: sqlite3.Connection, secrets: Secrets) -> None:
    """Refuse a database that remembers another key. Comes before anything in it is changed."""
    try:
        known = appliance_state.get(Reader(connection), appliance_state.SECRET_KEY)
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        known = None  # a new one
    if known not in (None, secrets.check_value):
        raise OperatorError(
            "The database belongs to another secret.key.",
            f"Put back the one that belongs to it. {if_lost()}",
        )


def remember(connection: sqlite3.Connection, secrets: Secrets) -> None:
    """Bind a new database to the key."""
    if appliance_state.get(Reader(connection), appliance_state.SECRET_KEY) is None:
        appliance_state.put_if_absent(connection, appliance_state.SECRET_KEY, secrets.check_value)


def forget(tx: Tx) -> None:
    """Let the next key that comes be the one of this database."""
    appliance_state.remove(tx, appliance_state.SECRET_KEY)
