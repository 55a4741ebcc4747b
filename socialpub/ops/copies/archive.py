"""The file that a copy is: a tar file with SHA256SUMS, which `sha256sum -c` checks once it is unpacked, and its seal.

Such a file has exactly one form: no byte of it is free, neither in a header nor in the padding, so a byte that was lost
or changed anywhere shows before anything inside is believed. Anybody can work out new sums, but only who has the key
the seal over them. Memory stays small whatever the size.
"""

import errno
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError
from socialpub.ops.copies import copy_progress

FIRST = "socialpub-copy.json"
"""The name of the first member: a copy is known by its first bytes."""

SUMS = "SHA256SUMS"
"""The name of the member that lists the SHA-256 of every one before it in their order."""

SEAL = "SEAL"
"""The name of the last member: the signature of the SHA-256 of SHA256SUMS, and the SHA-256 of both, by which damage to
the signature shows without its key. Copies of former versions have none."""

FORMER_SUM = "sha256/"
"""Copies of former versions end with an empty member whose name gives the SHA-256 of every byte before it."""

_CHUNK_BYTES = 1 << 20


def use_ours() -> str:
    """Return the remedy for a file of another program."""
    return f"Use a file that `{commands.line('backup', 'FILE')}` wrote."


class InvalidArchive(OperatorError):
    """The file is not a whole copy that socialpub made."""


class NotRegular(OSError):
    """The path names a FIFO, a device, a folder, a socket or a link, and not a regular file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


# --- writing ---------------------------------------------------------------------------------------------------------


class ArchiveWriter:
    """A copy that is being written. `finish` comes last."""

    def __init__(self, file: IO[bytes], sums: IO[bytes]) -> None:
        """`sums` is an empty file for the lines of SHA256SUMS, which may be many."""
        self._file = file
        self._sums = sums

    def add(self, name: str, content: bytes) -> None:
        self._add(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, path: Path) -> None:
        """Raises FileNotFoundError before anything of it is written."""
        with path.open("rb") as file:
            self._add(name, file, os.fstat(file.fileno()).st_size)

    def finish(self, sign: Callable[[str], str] | None) -> None:
        """Write SHA256SUMS, the seal and the end; with None there is no seal."""
        size = self._sums.tell()
        self._sums.seek(0)
        digest = self._write_member(SUMS, self._sums, size)
        if sign is not None:
            seal = seal_line(sign(digest), digest)
            self._write_member(SEAL, io.BytesIO(seal), len(seal))
        self._file.write(bytes(_end_bytes(self._file.tell())))

    def _add(self, name: str, content: IO[bytes], size: int) -> None:
        self._sums.write(sums_line(self._write_member(name, content, size), name))

    def _write_member(self, name: str, content: IO[bytes], size: int) -> str:
        """The SHA-256 of what was written."""
        self._file.write(_header(name, size))
        digest, left = hashlib.sha256(), size
        while left:
            chunk = content.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise OSError(f"{name} became shorter while it was copied")
            self._file.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
            copy_progress.advance(len(chunk))
        self._file.write(bytes(_padding_bytes(size)))
        return digest.hexdigest()


@contextmanager
def create(path: Path, sign: Callable[[str], str]) -> Iterator[ArchiveWriter]:
    """Write a new file that nobody else may read; complete and on the disk when this ends well. `sign` makes the seal,
    hexadecimal digits, of a digest."""
    with durable_files.create(path) as file, tempfile.TemporaryFile(dir=path.parent) as sums:
        archive = ArchiveWriter(file, sums)
        yield archive
        archive.finish(sign)
        durable_files.flush(file)


# --- reading ---------------------------------------------------------------------------------------------------------


def open_regular(path: Path, *, follow: bool) -> io.BufferedReader:
    """Open a regular file for reading. `follow` accepts a link to one. Raises NotRegular at once, OSError."""
    # Without O_NONBLOCK, the kernel waits until a writer opens the FIFO.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(path)
    return os.fdopen(descriptor, "rb")


class Member:
    """One file inside a copy, to be read while the walk stands at it."""

    def __init__(self, file: IO[bytes], name: str, size: int) -> None:
        self.name = name
        self.size_bytes = size
        self._file = file
        self._left = size

    def read(self, size: int = _CHUNK_BYTES, /) -> bytes:
        """Up to `size` bytes; none at the end."""
        chunk = self._file.read(min(size, self._left))
        self._left -= len(chunk)
        return chunk


@dataclass(frozen=True, slots=True)
class CheckedArchive:
    """A copy of which every byte is as its maker wrote it, whoever that was."""

    path: Path
    digest: str
    """What the seal signs."""
    seal: str | None
    """The signature; None in copies of former versions."""
    members: Callable[[], Iterator[Member]]
    """Every member but the sums and the seal, in their order."""


@contextmanager
def checked(path: Path) -> Iterator[CheckedArchive]:
    """A copy of which every byte was read and is as it was written. Raises InvalidArchive, OperatorError."""
    try:
        file = open_regular(path, follow=True)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Name the file of a backup.") from None
    with file:
        try:
            copy_progress.expect(os.fstat(file.fileno()).st_size)
            digest, seal = _check(path, file)
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
        yield CheckedArchive(path, digest, seal, partial(_members, path, file))


def _members(path: Path, file: IO[bytes]) -> Iterator[Member]:
    file.seek(0)
    while True:
        name, size = _read_header(path, file)
        if _is_sums(name):
            return
        content_at = file.tell()
        yield Member(file, name, size)
        file.seek(content_at + size + _padding_bytes(size))


def _check(path: Path, file: IO[bytes]) -> tuple[str, str | None]:
    """The digest that a seal signs, and the seal."""
    if file.read(len(FIRST) + 1) != FIRST.encode() + b"\0":
        raise InvalidArchive(f"{path} is not a backup that socialpub made.", use_ours())
    file.seek(0)
    listed, listed_bytes = hashlib.sha256(), 0
    name = ""
    while not _is_sums(name):
        begins_at = file.tell()
        name, size = _read_header(path, file)
        digest = read_digest(file, size)
        if digest is None or file.read(_padding_bytes(size)).strip(b"\0"):
            raise damaged(path, f"{name!r} in it is not whole")
        if not _is_sums(name):
            line = sums_line(digest, name)
            listed.update(line)
            listed_bytes += len(line)
    if name == SUMS:
        matches = size == listed_bytes and digest == listed.hexdigest()
    else:
        ends_at = file.tell()
        file.seek(0)
        matches = size == 0 and name == f"{FORMER_SUM}{read_digest(file, begins_at)}"
        file.seek(ends_at)
    if not matches:
        raise damaged(path, "its checksum does not match")
    assert digest is not None
    seal = _read_seal(path, file, digest) if name == SUMS else None
    end = _end_bytes(file.tell())
    if file.read(end + 1) != bytes(end):
        raise damaged(path, "it does not end where it should")
    return digest, seal


def _read_seal(path: Path, file: IO[bytes], digest: str) -> str | None:
    """The signature that follows the sums; None when nothing does."""
    begins_at = file.tell()
    if file.read(tarfile.BLOCKSIZE) != _header(SEAL, len(seal_line(digest, digest))):
        file.seek(begins_at)
        return None
    content = file.read(len(seal_line(digest, digest)))
    signature = signature_in(content, digest)
    if signature is None or file.read(_padding_bytes(len(content))).strip(b"\0"):
        raise damaged(path, "its seal is not whole")
    return signature


def signature_in(content: bytes, digest: str) -> str | None:
    """The signature in a seal of this digest; None when the seal is not whole."""
    signature = content[: len(digest)].decode("latin-1")
    return signature if content == seal_line(signature, digest) else None


def _is_sums(name: str) -> bool:
    return name == SUMS or name.startswith(FORMER_SUM)


def read_digest(file: IO[bytes], size: int) -> str | None:
    """The SHA-256 of the next `size` bytes; None when there are not so many."""
    digest, left = hashlib.sha256(), size
    while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
        copy_progress.advance(len(chunk))
    return None if left else digest.hexdigest()


def _read_header(path: Path, file: IO[bytes]) -> tuple[str, int]:
    """Name and size of the member that begins here."""
    header = file.read(tarfile.BLOCKSIZE)
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        raise damaged(path, f"{SUMS} is not reached") from None
    if info.size < 0 or header != _header(info.name, info.size):
        raise InvalidArchive(
            f"{path} is not a backup that socialpub made: {info.name!r} was packed by another program.", use_ours()
        )
    return info.name, info.size


def damaged(path: Path, how: str) -> InvalidArchive:
    """What a copy is refused with that is not as it was written."""
    return InvalidArchive(
        f"{path} is damaged or cut short: {how}.", "Use another backup, or fetch this one again from where it was kept."
    )


# --- the form --------------------------------------------------------------------------------------------------------


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def sums_line(digest: str, name: str) -> bytes:
    """A line of SHA256SUMS."""
    return f"{digest}  {name}\n".encode("utf-8", "surrogateescape")


def seal_line(signature: str, digest: str) -> bytes:
    """The content of the seal."""
    both = hashlib.sha256(f"{signature} {digest}".encode("utf-8", "replace")).hexdigest()
    return f"{signature}  {both}\n".encode("latin-1", "replace")


def _padding_bytes(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def _end_bytes(size: int) -> int:
    """The zeros behind the last member: two blocks, and as many as fill the last record."""
    return 2 * tarfile.BLOCKSIZE + -(size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE
