"""What the doctor says of an upgrade: before it, what the next start will do; after it, what it left behind."""

import sqlite3
from collections.abc import Iterator

from socialpub.core import commands, sizes
from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade_copies
from socialpub.db.locks import living
from socialpub.db.transaction import Reader
from socialpub.ops import former_version
from socialpub.ops.finding import Finding, note, ok, problem


def before(settings: Settings, database: sqlite3.Connection, missing: list[str]) -> Iterator[Finding]:
    """The next start applies the `missing` migrations."""
    path, names = settings.database_file, ", ".join(missing)
    size, free = upgrade_copies.database_bytes(database), upgrade_copies.free_bytes(path)
    needed = upgrade_copies.needed_bytes(database)
    folder = upgrade_copies.folder_of(path)
    running = living(settings.run_dir / "owners")
    yield note(
        "database",
        f"{path} was made by an older socialpub, {upgrade_copies.version_of(Reader(database))}; the next start updates "
        f"it ({names}). Before that it copies it to {folder}: {sizes.write(size)}. With that, {sizes.write(needed)} of "
        f"room are needed at most, and {sizes.write(free)} are free.",
        "No action is needed. The update does not change media. To keep a backup of everything, make one with the "
        f"former version: `{commands.line('backup', 'FILE')}`",
    )
    if free < needed:
        yield problem(
            "disk",
            f"The upgrade lacks {sizes.write(needed - free)} of room for {settings.data_dir}; it does not begin.",
            f"Make room. Backups of earlier upgrades in {folder} can be removed.",
        )
    if running:
        yield problem(
            "worker",
            f"Processes of the former version still run: {', '.join(running)}. The upgrade does not begin before they "
            "have ended.",
            f"{commands.restart()}.",
        )


def after(settings: Settings) -> Iterator[Finding]:
    """The copies that upgrades have left."""
    copies = upgrade_copies.list_all(settings.database_file)
    if not copies:
        return
    newest, size = copies[0], sum(copy.size_bytes for copy in copies)
    more = f" and {len(copies) - 1} older {'ones' if len(copies) > 2 else 'one'}" if copies[1:] else ""
    former = former_version.of_this_service()
    if former is not None:
        back = f"To go back to {former.version}: `{commands.line('go-back')}`"
    else:
        which = f"version {newest.version}" if newest.version else "the former version"
        back = (
            f"To go back: `{commands.line('restore', str(newest.path))}`, then remove the configuration keys that are "
            f"newer than {which}, and install it with its own units"
        )
    yield ok(
        "upgrade",
        f"The database from before the last upgrade is in {newest.path}{more}, {sizes.write(size)} in all. {back}. "
        "You can remove the others.",
    )
