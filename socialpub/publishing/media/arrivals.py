"""Files that arrive together with their use: parts of a form, and downloads.

The content decides the type unless a type is declared. Leaving the `with` of a file removes the file, unless a row
refers to it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from socialpub.core import logging
from socialpub.core.clock import new_id
from socialpub.core.errors import Unavailable
from socialpub.media.decoder import client
from socialpub.media.files import IncomingFile
from socialpub.media.reservations import DiskReservation
from socialpub.media.types import Facts, MediaRejected, is_undeclared
from socialpub.publishing.media import uploads
from socialpub.publishing.media.uploads import Examined
from socialpub.runtime import Runtime

log = logging.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class ArrivingFile:
    """`incoming` is None if the file is not stored: its declared type is not accepted, or it is too large."""

    file_name: str
    declared_type: str
    incoming: IncomingFile | None
    reservation: DiskReservation
    max_bytes: int
    size_bytes: int = 0

    @property
    def declared(self) -> str | None:
        return None if is_undeclared(self.declared_type) else self.declared_type

    @property
    def is_too_large(self) -> bool:
        return self.size_bytes > self.max_bytes

    def add(self, data: bytes) -> None:
        """Store the next bytes, unless the file is too large. Raises Unavailable."""
        self.size_bytes += len(data)
        if self.is_too_large:
            self.drop()
        elif self.incoming is not None:
            self.reservation.spend(len(data))
            self.incoming.write(data)

    def drop(self) -> None:
        self.__exit__(None, None, None)
        self.incoming = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.incoming is not None:
            self.incoming.__exit__(kind, error, trace)


async def examine(rt: Runtime, files: Sequence[ArrivingFile], key_id: str) -> list[Facts | MediaRejected]:
    """Return the facts of each stored file, or why it is rejected. Files of all keys take turns. Raises Unavailable."""
    limits = uploads.media_limits(rt.settings)
    checks = [
        client.inspect_file_async(file.incoming.path, file.declared, limits, key_id=key_id)
        for file in files
        if file.incoming is not None
    ]
    # This waits for all checks, even if one fails: a child process must not outlive the file that it reads.
    results = await asyncio.gather(*checks, return_exceptions=True)
    examined: list[Facts | MediaRejected] = []
    for result in results:
        if isinstance(result, client.DecoderFailed):
            log.error("files could not be examined", reason=str(result))
            raise Unavailable(
                "The files cannot be examined at the moment. Wait a minute, then send the request again."
            ) from result
        if isinstance(result, BaseException) and not isinstance(result, MediaRejected):
            raise result
        examined.append(result)
    return examined


async def store(rt: Runtime, file: ArrivingFile, facts: Facts) -> Examined:
    """Store the file under its own name, for `uploads.insert_arrived`."""
    assert file.incoming is not None
    artifact_id = new_id(rt.clock.now())
    storage_key = rt.files.new_key(artifact_id, facts.mime_type)
    await asyncio.to_thread(file.incoming.keep, storage_key)
    declared_type = file.declared or facts.mime_type
    return Examined(artifact_id, file.file_name, declared_type, storage_key, facts, file.incoming)
