"""API keys that came with a restored backup, until the owner keeps or revokes them.

A backup holds the keys as they were at its instant: a key that was revoked later is valid again after the restore. The
restore records the ids of these keys, so that no clock decides which keys came with the backup.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import UnrevokedKey
from socialpub.db import appliance_state, trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class CarriedRevocations:
    """What a rollback takes from the keys of the database in use. Keys are given by name."""

    revoked: tuple[str, ...]
    """The older rows held these keys as valid, and the database in use as revoked."""
    gone: tuple[str, ...]
    """Valid keys that the older rows do not hold."""


def mark(tx: Tx) -> None:
    """Record every key of this database as one that came with the backup."""
    _put(tx, [key.id for key in api_keys.unrevoked(tx)])


def undecided(store: Reader | Tx, now: str) -> list[UnrevokedKey]:
    """Return the valid keys that came with a backup and that the owner has not decided about, oldest first."""
    marked = _marked(store)
    if not marked:
        return []
    keys = api_keys.unrevoked(store)
    return [key for key in keys if key.id in marked and (key.expires_at is None or key.expires_at > now)]


def keep(rt: Runtime, tx: Tx) -> list[UnrevokedKey]:
    """Keep these keys: nothing reports them any longer. Return them."""
    kept = undecided(tx, tx.stamp)
    for key in kept:
        trail.record(tx, TrailAction.KEY_KEPT, key.id, key.name)
    _put(tx, [])
    return kept


def revoke(rt: Runtime, tx: Tx) -> list[UnrevokedKey]:
    """Revoke these keys, and no key created after the restore. Return them."""
    revoked = undecided(tx, tx.stamp)
    for key in revoked:
        api_keys.revoke(rt, tx, key.id)
    _put(tx, [])
    return revoked


def carry_revocations(tx: Tx, in_use: Reader) -> CarriedRevocations:
    """Revoke in these older rows what the database in use has revoked, and take over what its owner has not decided.

    A key that the database in use does not hold could not be revoked there. Such a key is reported as after a restore.
    """
    known, undecided_there, revoked, open_ids = api_keys.revocations(in_use), _marked(in_use), [], []
    for key in api_keys.unrevoked(tx):
        revoked_at = known.get(key.id)
        if revoked_at is not None:
            api_keys.repeat_revocation(tx, key.id, revoked_at)
            if trail.is_kept(tx):
                trail.record(tx, TrailAction.KEY_REVOKED, key.id, key.name)
            revoked.append(key.name)
        elif key.id not in known or key.id in undecided_there:
            open_ids.append(key.id)
    _put(tx, open_ids)
    held = api_keys.revocations(tx).keys()
    gone = [key.name for key in api_keys.unrevoked(in_use) if key.id not in held]
    return CarriedRevocations(tuple(revoked), tuple(gone))


def _marked(store: Reader | Tx) -> set[str]:
    return set(json.loads(appliance_state.get(store, appliance_state.RESTORED_KEYS) or "[]"))


def _put(tx: Tx, key_ids: Iterable[str]) -> None:
    ids = sorted(key_ids)
    if ids:
        appliance_state.put(tx, appliance_state.RESTORED_KEYS, json.dumps(ids))
    else:
        appliance_state.remove(tx, appliance_state.RESTORED_KEYS)
