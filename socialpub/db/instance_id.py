"""Which installation this is: a random name, no secret, by which an address is recognised as leading here.

It is made at the first start and stays with the database. A restored copy gets one of its own, since the original may
still run: an address that leads there must not be taken for one that leads here.
"""

import secrets

from socialpub.db import appliance_state
from socialpub.db.database import Database
from socialpub.db.transaction import Tx


def ensure(db: Database) -> str:
    """The installation's id, made now where there is none yet."""
    known = appliance_state.get(db.reader, appliance_state.INSTANCE_ID)
    if known is None:
        # Two processes may start at once: what stands there afterwards counts.
        db.write(_remember, secrets.token_hex(8))
        known = appliance_state.get(db.reader, appliance_state.INSTANCE_ID)
    assert known is not None
    return known


def _remember(tx: Tx, instance_id: str) -> None:
    appliance_state.put_if_absent(tx, appliance_state.INSTANCE_ID, instance_id)
