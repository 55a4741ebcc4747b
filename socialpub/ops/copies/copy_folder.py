"""The folder that a copy can be: the files of a copy beside their SHA256SUMS and its seal, as `tar -x` would lay them.

What SHA256SUMS lists is the copy; whatever else lies there is none of it and is never opened. Every listed file is a
file of its own inside the folder: a link that leads out of it is refused before a byte of it is read. A FIFO or a
device in the place of a file is refused at once, so that reading never waits for it.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from socialpub.core import durable_files
from socialpub.core.errors import OperatorError
from socialpub.ops.copies import archive, copy_progress
from socialpub.ops.copies.archive import FIRST, SEAL, SUMS, CheckedArchive, InvalidArchive, Member

_DIGEST_CHARACTERS = 64
_LONGEST_LINE = 4096
_MOST_SEAL_BYTES = 1024


# --- writing ---------------------------------------------------------------------------------------------------------


class FolderWriter:
    """A copy that is being written into a folder of its own. `finish` comes last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sums = durable_files.create(folder / SUMS)
        self._listed = hashlib.sha256()

    def add(self, name: str, content: bytes) -> None:
        """A new small file."""
        with durable_files.create(self.folder / name) as file:
            file.write(content)
            durable_files.flush(file)
        self.note(name, hashlib.sha256(content).hexdigest())

    def note(self, name: str, digest: str) -> None:
        """A file that lies there, and its SHA-256."""
        line = archive.sums_line(digest, name)
        self._sums.write(line)
        self._listed.update(line)

    def finish(self, sign: Callable[[str], str]) -> None:
        """Write the seal; everything is on the disk afterwards."""
        durable_files.flush(self._sums)
        digest = self._listed.hexdigest()
        with durable_files.create(self.folder / SEAL) as file:
            file.write(archive.seal_line(sign(digest), digest))
            durable_files.flush(file)
        for folder, _, _ in os.walk(self.folder):
            durable_files.flush_folder(Path(folder))

    def close(self) -> None:
        self._sums.close()


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with archive.open_regular(path, follow=True) as file:
        return _digest(file, path.name)


def _digest(file: IO[bytes], name: str) -> str:
    digest = archive.read_digest(file, os.fstat(file.fileno()).st_size)
    if digest is None:
        raise OSError(f"{name} became shorter while it was read")
    return digest


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def checked(folder: Path) -> Iterator[CheckedArchive]:
    """A copy of which every listed byte was read and is as it was written. Raises InvalidArchive, OperatorError."""
    try:
        if not os.path.lexists(folder / FIRST):
            raise _no_copy(folder)
        digest, seal = read_seal(folder)
        _check(folder)
    except OSError as error:
        raise OperatorError(f"{folder} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
    yield CheckedArchive(folder, digest, seal, partial(_members, folder))


def read_seal(folder: Path) -> tuple[str, str | None]:
    """The digest that the seal signs, and the seal. Raises InvalidArchive, OSError."""
    try:
        with _open(folder, SUMS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise archive.damaged(folder, f"it has no {SUMS}") from None
    try:
        with _open(folder, SEAL) as file:
            content = file.read(_MOST_SEAL_BYTES)
    except FileNotFoundError:
        return digest, None
    seal = archive.signature_in(content, digest)
    if seal is None:
        raise archive.damaged(folder, "its checksum does not match")
    return digest, seal


def listed(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and SHA-256 of everything that SHA256SUMS lists. Raises InvalidArchive, OSError."""
    with _open(folder, SUMS) as file:
        while line := file.readline(_LONGEST_LINE):
            digest = line[:_DIGEST_CHARACTERS].decode("latin-1")
            name = line[_DIGEST_CHARACTERS + 2 : -1].decode("utf-8", "surrogateescape")
            if line != archive.sums_line(digest, name):
                raise archive.damaged(folder, f"{SUMS} has a line of another form")
            yield name, digest


def _check(folder: Path) -> None:
    root = folder.resolve()
    for name, _ in listed(folder):
        copy_progress.expect(_place(folder, root, name).stat().st_size)
    first = True
    for name, digest in listed(folder):
        if first and name != FIRST:
            raise _no_copy(folder)
        first = False
        _place(folder, root, name)
        with _open(root, name) as file:
            if _digest(file, name) != digest:
                raise archive.damaged(folder, f"{name!r} in it is not as it was written")


def _members(folder: Path) -> Iterator[Member]:
    root = folder.resolve()
    for name, _ in listed(folder):
        _place(folder, root, name)
        with _open(root, name) as file:
            yield Member(file, name, os.fstat(file.fileno()).st_size)


def _open(folder: Path, name: str) -> io.BufferedReader:
    """Open a file of a backup. Raises InvalidArchive for what is not a regular file, OSError."""
    try:
        return archive.open_regular(folder / name, follow=False)
    except archive.NotRegular:
        raise _not_regular(folder, name) from None


def _not_regular(folder: Path, name: str) -> InvalidArchive:
    return InvalidArchive(
        f"{folder} is not a backup that socialpub made: {name!r} in it is not a regular file.", archive.use_ours()
    )


def _place(folder: Path, root: Path, name: str) -> Path:
    """Where a listed file lies. Raises InvalidArchive when it is missing, or is no file of the folder's own."""
    path = root / name
    if os.path.isabs(name) or not os.path.lexists(path):  # noqa: PTH117  a name, perhaps a stranger's
        raise archive.damaged(folder, f"it lacks {name!r}")
    if os.path.normpath(path) != str(path) or path.resolve() != path:
        raise InvalidArchive(
            f"{folder} is not a backup that socialpub made: {name!r} in it leads elsewhere.", archive.use_ours()
        )
    if not path.is_file():
        raise _not_regular(folder, name)
    return path


def _no_copy(folder: Path) -> InvalidArchive:
    inside = sorted(path.parent for path in folder.glob(f"[0-9]*/{FIRST}"))
    hint = f"It holds backups: name one, such as {inside[-1]}" if inside else archive.use_ours()
    return InvalidArchive(f"{folder} is not a backup that socialpub made.", hint)
