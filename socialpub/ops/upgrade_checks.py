"""What the doctor says of an upgrade: before it, what the next start will do; after it, what it left behind."""

import sqlite3
from collections.abc import Iterator

from socialpub.core import sizes
from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade_copies
from socialpub.db.locks import living
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
        f"{path} was made by an older socialpub; the next start updates it ({names}). Before that it copies it to "
        f"{folder}: {sizes.write(size)}. With that, {sizes.write(needed)} of room are needed at most, and "
        f"{sizes.write(free)} are free.",
        "Nothing is to be done. Media are not touched; to have a copy of everything besides, make one with the former "
        "version: socialpub backup FILE",
    )
    if free < needed:
        yield problem(
            "disk",
            f"The upgrade lacks {sizes.write(needed - free)} of room for {settings.data_dir}; it does not begin.",
            f"Make room. Copies of earlier upgrades in {folder} can be removed.",
        )
    if running:
        yield problem(
            "worker",
            f"Processes of the former version still run: {', '.join(running)}. The upgrade does not begin before they "
            "have ended.",
            "Restart the services: sudo systemctl restart socialpub-web socialpub-worker (or end socialpub serve).",
        )


def after(settings: Settings) -> Iterator[Finding]:
    """The copies that upgrades have left."""
    copies = upgrade_copies.list_all(settings.database_file)
    if not copies:
        return
    newest, size = copies[0], sum(copy.size_bytes for copy in copies)
    more = f" and {len(copies) - 1} older {'ones' if len(copies) > 2 else 'one'}" if copies[1:] else ""
    yield ok(
        "upgrade",
        f"The database from before the last upgrade lies in {newest.path}{more}, {sizes.write(size)} in all. To go "
        f"back: socialpub restore {newest.path}, then install the former version. What is not needed can go.",
    )
