"""How much room this installation takes on its disk."""

from dataclasses import dataclass

from socialpub.db import artifact_rows, post_rows
from socialpub.db.transaction import Reader
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class StorageUse:
    posts: int
    database_bytes: int
    media_bytes: int
    """What posts and uploads name, as it was declared."""
    free_bytes: int
    floor_bytes: int
    """What `health.disk_floor_bytes` keeps free."""


def read(rt: Runtime, reader: Reader) -> StorageUse:
    """Looks at every upload's row: not from the event loop."""
    database = rt.settings.database_file
    parts = (database, database.with_name(f"{database.name}-wal"))
    return StorageUse(
        post_rows.count(reader),
        sum(path.stat().st_size for path in parts if path.exists()),
        artifact_rows.stored_bytes(reader),
        rt.files.free_bytes(),
        int(rt.settings.health.disk_floor_bytes),
    )
