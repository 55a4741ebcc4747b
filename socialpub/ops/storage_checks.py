"""What the doctor says of the room that media take."""

from collections.abc import Iterator

from socialpub.core import sizes
from socialpub.db import artifact_rows
from socialpub.ops.finding import Finding, note, ok, problem
from socialpub.runtime import Runtime

NEARLY_FULL = 0.9
MAKE_ROOM = (
    "Raise storage.quota, or have the files of settled posts removed: media.keep_after_settled, or retention.posts."
)


def check(rt: Runtime) -> Iterator[Finding]:
    """How much of the quota for media is used, where there is one."""
    quota, used = rt.settings.storage.quota, artifact_rows.stored(rt.reader)[1]
    if quota is None:
        return
    said = f"Media take {sizes.write(used)} of {sizes.write(quota)} (storage.quota)"
    if used >= quota:
        yield problem("media", f"{said}: new files are refused.", MAKE_ROOM)
    elif used >= NEARLY_FULL * quota:
        yield note("media", f"{said}: soon new files will be refused.", MAKE_ROOM)
    else:
        yield ok("media", f"{said}.")
