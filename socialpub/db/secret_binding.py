"""Which `secret.key` a database belongs to: found out at start, not at the first token that cannot be read."""

from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.database import Database
from socialpub.db.transaction import Tx


def bind_secret(db: Database, check_value: str) -> None:
    """Remember the key's check value in a new database; refuse a database that remembers another."""
    known = appliance_state.get(db.reader, appliance_state.SECRET_KEY)
    if known is None:
        db.write(_remember, check_value)
    elif known != check_value:
        raise OperatorError(
            "The database belongs to another secret.key.",
            "Put back the secret.key that belongs to this database; without it no stored token can be read.",
        )


def _remember(tx: Tx, check_value: str) -> None:
    appliance_state.put_if_absent(tx, appliance_state.SECRET_KEY, check_value)
