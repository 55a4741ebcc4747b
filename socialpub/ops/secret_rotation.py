"""Replacing a lost `secret.key`, or rotating the key and encrypting all secrets again.

For a lost key, the secrets of the old key are removed first and the new file is written last, so the command can run
again after a failure. A rotation loses nothing: accounts stay connected, and signed URLs stay valid until they expire.
`db/secret_key.py` describes its order.
"""

import os
import sqlite3
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from socialpub.core import actor, commands, durable_files
from socialpub.core.clock import Clock, stamp
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto, signed_urls
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.db import appliance_state, secret_key, upgrade
from socialpub.db.connection import Database, open_file
from socialpub.db.secret_key import next_key_file
from socialpub.db.tables import audit_log, notifications, profile_rows, webhooks
from socialpub.db.tables.audit_log import AuditAction
from socialpub.ops import storage
from socialpub.publishing.media import renditions

REASON = "Its tokens were encrypted with a secret.key that is lost."


@dataclass(frozen=True, slots=True)
class LostWithKey:
    """The secrets that the old key had encrypted."""

    accounts: list[tuple[str, str]] = field(default_factory=list)
    """The name and network of each connected profile."""
    addresses: list[str] = field(default_factory=list)
    """The names of the notification addresses that were added in the dashboard."""
    webhooks: list[str] = field(default_factory=list)
    """The names of the webhooks."""


def replace_lost(settings: Settings, clock: Clock) -> LostWithKey:
    """Write a new key, and return the lost secrets. Every connected profile must be reconnected.

    Raises OperatorError if a key exists, or while socialpub is running.
    """
    key_file = settings.secret_key_file
    if os.path.lexists(key_file):
        raise OperatorError(
            f"{key_file} exists and is not overwritten.",
            "If the key does not belong to this database, and the right key is permanently lost, move this file first.",
        )
    lost = LostWithKey()
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.database_file.exists():
            remedy = f"If the key is permanently lost: {storage.while_stopped('init', '--new-secret')}."
            with storage.exclusive_data_dir(settings, "still has the old key in its memory", remedy):
                lost = _remove_old_key(settings, clock)
        _write_key(key_file)
    except OSError as error:
        message = f"{error.filename or key_file} cannot be written: {error.strerror}."
        raise OperatorError(message, "Check the disk and the owner of the folder.") from error
    return lost


def _remove_old_key(settings: Settings, clock: Clock) -> LostWithKey:
    with open_file(settings.database_file, "rw") as tx, tx.atomic("IMMEDIATE"):
        upgrade.refuse_unreadable(tx, str(settings.database_file))
        tx.begin_write(clock.now(), actor.current())
        appliance_state.remove(tx, appliance_state.SECRET_KEY)
        audit_log.record(tx, AuditAction.SECRET_RENEWED)
        accounts = profile_rows.lose_tokens(tx, REASON)
        return LostWithKey(accounts, notifications.lose_addresses(tx), webhooks.lose_all(tx))


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    former_key: Path
    """The file with the previous key."""
    urls_end_at: str
    """The time when the last URL that the previous key signed expires."""


def rotate(settings: Settings, clock: Clock, *, keep_urls: bool = True) -> RotatedSecret:
    """Change `secret.key`. Without `keep_urls`, all signed URLs expire now.

    Raises OperatorError if the rotation fails or socialpub is running. Then the current key stays.
    """
    key_file = settings.secret_key_file
    if not settings.database_file.exists():
        raise OperatorError(
            f"{settings.database_file} does not exist yet: nothing is encrypted with {key_file}.",
            f"To get another key, remove that file and run `{commands.line('init', '--new-secret')}`.",
        )
    try:
        secret_key.finish_rotation(key_file, settings.database_file, settings.run_dir)
        words = ("admin", "rotate-secret", *([] if keep_urls else ["--end-addresses"]))
        remedy = f"{storage.while_stopped(*words)}."
        with storage.exclusive_data_dir(settings, "has the current key in its memory", remedy):
            old = crypto.load(key_file)
            _refuse_given(key_file)
            with open_file(settings.database_file, "rw") as db:
                _check_database(db, old)
                following = next_key_file(key_file)
                _write_key(following)
                new = crypto.load(following)
                at = _reseal(settings, clock, db, old, new, keep_urls)
            former = secret_key.swap_key_files(key_file, at)
    except OSError as error:
        raise OperatorError(
            f"{error.filename or key_file} cannot be written: {error.strerror}.",
            "Check the disk and the owner of the folder, and run the command again.",
        ) from error
    except sqlite3.Error as error:
        raise OperatorError(
            f"The database could not be encrypted again: {error}.",
            "Nothing was changed. Check the disk, and try again.",
        ) from error
    return RotatedSecret(former, stamp(clock.now() + (_longest_url(settings) if keep_urls else timedelta())))


def _refuse_given(key_file: Path) -> None:
    """Refuse a key that another program provides, since the next start would restore the old file."""
    if key_file.is_symlink() or _is_mount(key_file) or not os.access(key_file.parent, os.W_OK):
        raise OperatorError(
            f"{key_file} cannot be replaced: the file is a link or a mount, or its folder is not writable.",
            "Replace the link or mount with a copy of the file in data_dir, and run the command again. Then store the "
            "new file at the source of the old file.",
        )


def _is_mount(file: Path) -> bool:
    """Containers mount their secrets. On an overlay, the device numbers of a file and of its folder also differ."""
    escaped = str(file.resolve()).replace("\\", "\\134").replace(" ", "\\040")
    return any(line.split()[4] == escaped for line in Path("/proc/self/mountinfo").read_text().splitlines())


def _check_database(db: Database, old: Secrets) -> None:
    upgrade.refuse_unreadable(db, "The database")
    if upgrade.list_missing(upgrade.list_applied(db)):
        raise OperatorError(
            "The database was made by an older version of socialpub.",
            "Start this version once, then run the command again.",
        )
    secret_key.check_key(db, old)


def _write_key(key_file: Path) -> None:
    with durable_files.create(key_file) as file:
        file.write(crypto.new_key())
        durable_files.flush(file)
    durable_files.flush_folder(key_file.parent)


def _reseal(settings: Settings, clock: Clock, tx: Database, old: Secrets, new: Secrets, keep_urls: bool) -> str:
    """Encrypt everything again in one transaction. Return the instant of the transaction."""

    def reseal(sealed: bytes, *place: str) -> bytes:
        try:
            return new.seal(old.open(sealed, *place), *place)
        except OperatorError:
            return sealed  # the previous key could not decrypt it either

    with tx.atomic("IMMEDIATE"):
        tx.begin_write(clock.now(), actor.current())
        secret_key.reseal(tx, reseal)
        if keep_urls:
            secret_key.keep_urls(tx, old, new, int((tx.now + _longest_url(settings)).timestamp()))
        else:
            appliance_state.remove(tx, appliance_state.FORMER_URL_KEYS)
        appliance_state.put(tx, appliance_state.SECRET_KEY, new.check_value)
        appliance_state.put(tx, appliance_state.SECRET_ROTATED_AT, tx.stamp)
        audit_log.record(tx, AuditAction.SECRET_ROTATED)
    return tx.stamp


def _longest_url(settings: Settings) -> timedelta:
    return max(signed_urls.UPLOAD_LIFETIME, signed_urls.MEDIA_LIFETIME, renditions.public_url_lifetime(settings))
