"""Work on a data folder that no process of this installation may know differently in its memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import migrate
from socialpub.db.locks import FileLock, living


@contextmanager
def held(settings: Settings, why: str, remedy: str) -> Iterator[None]:
    """Nothing of this installation runs, and nothing opens its database, as long as this lasts.

    `why` is what a running process would go on with. Raises OperatorError while one runs.
    """
    settings.run_dir.mkdir(exist_ok=True, mode=0o700)
    web = FileLock(settings.run_dir / "web.lock")
    # Whoever starts meanwhile waits for the lock, and looks then at what it finds.
    with migrate.exclusive(settings.run_dir):
        try:
            if not web.try_acquire() or living(settings.run_dir / "owners"):
                raise OperatorError(f"socialpub runs with {settings.data_dir}, and {why}.", remedy)
            yield
        finally:
            web.release()
