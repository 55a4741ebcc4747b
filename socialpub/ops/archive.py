"""The file that a copy is: a tar file whose last member's name is the SHA-256 of every byte before it.

A byte that was lost or changed anywhere, in a header or in padding too, therefore shows before anything inside is
believed; and what somebody else put together is refused whatever its names point at. Memory stays small whatever the
size.
"""

import errno
import hashlib
import io
import os
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from socialpub.core.durable_files import flush_folder
from socialpub.core.errors import OperatorError

FIRST = "socialpub-copy.json"
"""The name of the first member; by it a copy is known from its first bytes."""

_SEAL = "sha256/"
_PIECE = 1 << 20
_AT_MOST_BEHIND = tarfile.BLOCKSIZE * 3 + tarfile.RECORDSIZE
"""From the seal to the end of the file: its block, two empty ones, and what fills the last record."""


class Unsound(OperatorError):
    """The file is no whole copy of socialpub."""


class _Target(Protocol):
    def write(self, data: bytes, /) -> object: ...


class _Summed:
    """A file that is written once, from its beginning to its end, and summed up on the way."""

    def __init__(self, file: _Target) -> None:
        self._file = file
        self._at = 0
        self.sum = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self.sum.update(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at


class Archive:
    """A copy that is being written."""

    def __init__(self, file: _Target) -> None:
        self._summed = _Summed(file)
        self._tar = tarfile.TarFile(fileobj=self._summed, mode="w", format=tarfile.GNU_FORMAT)  # type: ignore[arg-type]

    def add(self, name: str, content: bytes) -> None:
        self._put(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, path: Path) -> None:
        """Raises FileNotFoundError before anything of it is written."""
        with path.open("rb") as file:
            self._put(name, file, os.fstat(file.fileno()).st_size)

    def seal(self) -> None:
        """The end: nothing can be added any more."""
        self._tar.addfile(_seal(self._summed.sum.hexdigest()))
        self._tar.close()

    def _put(self, name: str, file: IO[bytes], size_bytes: int) -> None:
        info = _member(name)
        info.size = size_bytes
        self._tar.addfile(info, file)
        self._tar.members.clear()  # type: ignore[attr-defined]  # the library would keep every one of them


@contextmanager
def create(path: Path) -> Iterator[Archive]:
    """Write a new file that nobody else may read; sealed and on the disk when this ends well."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        archive = Archive(file)
        yield archive
        archive.seal()
        file.flush()
        os.fsync(descriptor)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A copy whose every byte was read and is as it was written. Raises Unsound, OperatorError."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Name the file of a copy.") from None
    with file:
        try:
            _check_seal(path, file)
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Look at its disk.") from error
        yield file


def members(path: Path, file: IO[bytes]) -> Generator[tuple[str, IO[bytes]], None, None]:
    """Name and content of every member, to be read in this order. Raises Unsound for what is no plain file."""
    file.seek(0)
    sealed = False
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]
                content = tar.extractfile(member) if member.type == tarfile.REGTYPE and not member.issparse() else None
                if content is None or sealed:
                    raise Unsound(f"{path} is no copy that socialpub made: it holds {member.name!r}.")
                if member.name.startswith(_SEAL):
                    sealed = True
                else:
                    with content:
                        yield member.name, content
    except tarfile.TarError as error:
        raise Unsound(f"{path} is no copy that socialpub made: {error}.") from error
    if not sealed:
        raise Unsound(f"{path} is no copy that socialpub made: it ends too early.")


def put_in_place(source: Path, target: Path) -> None:
    """Give a finished file its name, on the same disk. Raises FileExistsError: nothing is ever replaced."""
    try:
        target.hardlink_to(source)
        source.unlink()
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A disk that knows no second name for a file, such as a stick: the look comes first then.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists", str(target)) from None
        source.rename(target)
    flush_folder(target.parent)


_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


# --- inside ----------------------------------------------------------------------------------------------------------


def _member(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = 0o600
    return info


def _seal(digest: str) -> tarfile.TarInfo:
    return _member(_SEAL + digest)


def _check_seal(path: Path, file: IO[bytes]) -> None:
    """Raises Unsound unless the file is, to the last byte, what was sealed."""
    ours = FIRST.encode() + b"\0"
    size = file.seek(0, os.SEEK_END)
    behind = min(size, _AT_MOST_BEHIND)
    file.seek(size - behind)
    at = size - behind + len(file.read(behind).rstrip(b"\0"))
    at = max(at - 1, 0) // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE  # where the last block begins that is not empty
    file.seek(0)
    if file.read(len(ours)) != ours:
        raise Unsound(f"{path} is no copy that socialpub made.", "Name the file that `socialpub backup` wrote.")
    file.seek(0)
    total = hashlib.sha256()
    left = at
    while left and (piece := file.read(min(left, _PIECE))):
        total.update(piece)
        left -= len(piece)
    end = io.BytesIO()
    with tarfile.open(fileobj=end, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.offset = at
        tar.addfile(_seal(total.hexdigest()))
    if file.read() != end.getvalue():
        raise Unsound(
            f"{path} is damaged or cut short: it is not what was written once.",
            "Use another copy, or take this one again from where it was kept.",
        )
