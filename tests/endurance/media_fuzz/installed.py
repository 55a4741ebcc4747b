"""A web process of its own to send damaged files to; what it needs, and nothing else, runs beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.installation import Installation
from tests.e2e.processes import Process


@contextmanager
def web_process(folder: Path) -> Iterator[tuple[Installation, Process]]:
    """It runs until the `with` is left. Temporary files of it and its children go to a folder of its own."""
    installation = Installation(folder / "installation", pace=0)
    temporary = folder / "temporary"
    temporary.mkdir()
    installation.env["TMPDIR"] = str(temporary)
    try:
        installation.create()
        installation.key = installation.admin("create-key", "fuzz")
        yield installation, installation.start("web")
    finally:
        installation.close()
