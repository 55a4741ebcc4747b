"""A new `secret.key` in place of one that is lost for good, and what is lost with the old one.

The database is made free of the old key first, and the new file comes last: whatever fails in between can be begun
again.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

from socialpub.core import actor, commands, crypto, durable_files
from socialpub.core.clock import Clock
from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import migrate, notifications, profile_rows, secret_binding, secret_rotation, trail
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Tx
from socialpub.ops import alone

REASON = "Its tokens were sealed with a secret.key that is lost."


@dataclass(frozen=True, slots=True)
class LostWithKey:
    """What the old key had sealed."""

    accounts: list[tuple[str, str]] = field(default_factory=list)
    """Name and network of each connected profile."""
    addresses: list[str] = field(default_factory=list)
    """The names of the notification addresses that were added in the dashboard."""


def make(settings: Settings, clock: Clock) -> LostWithKey:
    """Write a new key, and have every connected profile ask for its owner. Return what is lost.

    Raises OperatorError when there is a key, or while socialpub runs.
    """
    key_file = settings.secret_key_file
    if os.path.lexists(key_file):
        raise OperatorError(
            f"{key_file} exists, and nothing is overwritten.",
            "If it is not the one that belongs to this database, and that one is lost for good, move it away first.",
        )
    lost = LostWithKey()
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.database_file.exists():
            remedy = f"If the key is lost for good: {commands.while_stopped('init', '--new-secret')}."
            with alone.held(settings, "still has the old key in its memory", remedy):
                lost = _part_from_old_key(settings, clock)
        with durable_files.create(key_file) as file:
            file.write(crypto.new_key())
            durable_files.flush(file)
        durable_files.flush_folder(settings.data_dir)
    except OSError as error:
        message = f"{error.filename or key_file} cannot be written: {error.strerror}."
        raise OperatorError(message, "Check the disk and who owns the folder.") from error
    return lost


def _part_from_old_key(settings: Settings, clock: Clock) -> LostWithKey:
    with closing(sqlite3.connect(settings.database_file)) as connection, connection:
        connection.row_factory = sqlite3.Row
        if unknown := migrate.unknown(migrate.applied(connection)):
            raise OperatorError(
                migrate.is_newer(str(settings.database_file), unknown),
                "Install the newer version again, and run it there.",
            )
        tx = Tx(connection, clock.now(), actor.current())
        secret_rotation.note_former(tx)
        secret_binding.forget(tx)
        if trail.is_kept(tx):
            trail.record(tx, TrailAction.SECRET_RENEWED)
        return LostWithKey(profile_rows.lose_tokens(tx, REASON), notifications.lose_addresses(tx))
