"""The format of a backup: a folder of files with their checksums and a signature, or that folder as a tar."""

import errno
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError

# MERGED from ops/copies/copy_progress.py: How far the copying, checking or restoring of a copy has come, for whoev


class ProgressWatcher(Protocol):
    def expect(self, size_bytes: int) -> None:
        """So many more bytes are to be done than were known of."""

    def advance(self, size_bytes: int) -> None:
        """So many more bytes are done."""


_watcher: ContextVar[ProgressWatcher | None] = ContextVar("socialpub_copy_progress", default=None)


@contextmanager
def watched_by(watcher: ProgressWatcher) -> Iterator[None]:
    """Tell this watcher what this thread does inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def expect(size_bytes: int) -> None:
    if (watcher := _watcher.get()) is not None:
        watcher.expect(size_bytes)


def advance(size_bytes: int) -> None:
    if (watcher := _watcher.get()) is not None:
        watcher.advance(size_bytes)


# MERGED from ops/copies/archive.py: The file that a copy is: a tar file with SHA256SUMS, which `sha256sum -c` chec

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
            advance(len(chunk))
        self._file.write(bytes(_padding_bytes(size)))
        return digest.hexdigest()


@contextmanager
def create_tar(path: Path, sign: Callable[[str], str]) -> Iterator[ArchiveWriter]:
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
class CheckedBackup:
    """A copy of which every byte is as its maker wrote it, whoever that was."""

    path: Path
    digest: str
    """What the seal signs."""
    seal: str | None
    """The signature; None in copies of former versions."""
    members: Callable[[], Iterator[Member]]
    """Every member but the sums and the seal, in their order."""


@contextmanager
def check_tar(path: Path) -> Iterator[CheckedBackup]:
    """A copy of which every byte was read and is as it was written. Raises InvalidArchive, OperatorError."""
    try:
        file = open_regular(path, follow=True)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Name the file of a backup.") from None
    with file:
        try:
            expect(os.fstat(file.fileno()).st_size)
            digest, seal = _check_members(path, file)
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
        yield CheckedBackup(path, digest, seal, partial(_tar_members, path, file))


def _tar_members(path: Path, file: IO[bytes]) -> Iterator[Member]:
    file.seek(0)
    while True:
        name, size = _read_header(path, file)
        if _is_sums(name):
            return
        content_at = file.tell()
        yield Member(file, name, size)
        file.seek(content_at + size + _padding_bytes(size))


def _check_members(path: Path, file: IO[bytes]) -> tuple[str, str | None]:
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
            raise damaged_backup(path, f"{name!r} in it is not whole")
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
        raise damaged_backup(path, "its checksum does not match")
    assert digest is not None
    seal = _read_seal(path, file, digest) if name == SUMS else None
    end = _end_bytes(file.tell())
    if file.read(end + 1) != bytes(end):
        raise damaged_backup(path, "it does not end where it should")
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
        raise damaged_backup(path, "its seal is not whole")
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
        advance(len(chunk))
    return None if left else digest.hexdigest()


def _read_header(path: Path, file: IO[bytes]) -> tuple[str, int]:
    """Name and size of the member that begins here."""
    header = file.read(tarfile.BLOCKSIZE)
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        raise damaged_backup(path, f"{SUMS} is not reached") from None
    if info.size < 0 or header != _header(info.name, info.size):
        raise InvalidArchive(
            f"{path} is not a backup that socialpub made: {info.name!r} was packed by another program.", use_ours()
        )
    return info.name, info.size


def damaged_backup(path: Path, how: str) -> InvalidArchive:
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


# MERGED from ops/copies/copy_folder.py: The folder that a copy can be: the files of a copy beside their SHA256SUMS

_DIGEST_CHARACTERS = 64
_MAX_LINE = 4096
_MAX_SEAL_BYTES = 1024


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
        line = sums_line(digest, name)
        self._sums.write(line)
        self._listed.update(line)

    def finish(self, sign: Callable[[str], str]) -> None:
        """Write the seal; everything is on the disk afterwards."""
        durable_files.flush(self._sums)
        digest = self._listed.hexdigest()
        with durable_files.create(self.folder / SEAL) as file:
            file.write(seal_line(sign(digest), digest))
            durable_files.flush(file)
        for folder, _, _ in os.walk(self.folder):
            durable_files.flush_folder(Path(folder))

    def close(self) -> None:
        self._sums.close()


def compute_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open_regular(path, follow=True) as file:
        return _digest(file, path.name)


def _digest(file: IO[bytes], name: str) -> str:
    digest = read_digest(file, os.fstat(file.fileno()).st_size)
    if digest is None:
        raise OSError(f"{name} became shorter while it was read")
    return digest


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def check_folder(folder: Path) -> Iterator[CheckedBackup]:
    """A copy of which every listed byte was read and is as it was written. Raises InvalidArchive, OperatorError."""
    try:
        if not os.path.lexists(folder / FIRST):
            raise _no_backup(folder)
        digest, seal = read_seal(folder)
        _check_files(folder)
    except OSError as error:
        raise OperatorError(f"{folder} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
    yield CheckedBackup(folder, digest, seal, partial(_folder_members, folder))


def read_seal(folder: Path) -> tuple[str, str | None]:
    """The digest that the seal signs, and the seal. Raises InvalidArchive, OSError."""
    try:
        with _open_inside(folder, SUMS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise damaged_backup(folder, f"it has no {SUMS}") from None
    try:
        with _open_inside(folder, SEAL) as file:
            content = file.read(_MAX_SEAL_BYTES)
    except FileNotFoundError:
        return digest, None
    seal = signature_in(content, digest)
    if seal is None:
        raise damaged_backup(folder, "its checksum does not match")
    return digest, seal


def list_sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and SHA-256 of everything that SHA256SUMS lists. Raises InvalidArchive, OSError."""
    with _open_inside(folder, SUMS) as file:
        while line := file.readline(_MAX_LINE):
            digest = line[:_DIGEST_CHARACTERS].decode("latin-1")
            name = line[_DIGEST_CHARACTERS + 2 : -1].decode("utf-8", "surrogateescape")
            if line != sums_line(digest, name):
                raise damaged_backup(folder, f"{SUMS} has a line of another form")
            yield name, digest


def _check_files(folder: Path) -> None:
    root = folder.resolve()
    for name, _ in list_sums(folder):
        expect(_find_inside(folder, root, name).stat().st_size)
    first = True
    for name, digest in list_sums(folder):
        if first and name != FIRST:
            raise _no_backup(folder)
        first = False
        _find_inside(folder, root, name)
        with _open_inside(root, name) as file:
            if _digest(file, name) != digest:
                raise damaged_backup(folder, f"{name!r} in it is not as it was written")


def _folder_members(folder: Path) -> Iterator[Member]:
    root = folder.resolve()
    for name, _ in list_sums(folder):
        _find_inside(folder, root, name)
        with _open_inside(root, name) as file:
            yield Member(file, name, os.fstat(file.fileno()).st_size)


def _open_inside(folder: Path, name: str) -> io.BufferedReader:
    """Open a file of a backup. Raises InvalidArchive for what is not a regular file, OSError."""
    try:
        return open_regular(folder / name, follow=False)
    except NotRegular:
        raise _not_regular(folder, name) from None


def _not_regular(folder: Path, name: str) -> InvalidArchive:
    return InvalidArchive(
        f"{folder} is not a backup that socialpub made: {name!r} in it is not a regular file.", use_ours()
    )


def _find_inside(folder: Path, root: Path, name: str) -> Path:
    """Where a listed file lies. Raises InvalidArchive when it is missing, or is no file of the folder's own."""
    path = root / name
    if os.path.isabs(name) or not os.path.lexists(path):  # noqa: PTH117  a name, perhaps a stranger's
        raise damaged_backup(folder, f"it lacks {name!r}")
    if os.path.normpath(path) != str(path) or path.resolve() != path:
        raise InvalidArchive(
            f"{folder} is not a backup that socialpub made: {name!r} in it leads elsewhere.", use_ours()
        )
    if not path.is_file():
        raise _not_regular(folder, name)
    return path


def _no_backup(folder: Path) -> InvalidArchive:
    inside = sorted(path.parent for path in folder.glob(f"[0-9]*/{FIRST}"))
    hint = f"It holds backups: name one, such as {inside[-1]}" if inside else use_ours()
    return InvalidArchive(f"{folder} is not a backup that socialpub made.", hint)
