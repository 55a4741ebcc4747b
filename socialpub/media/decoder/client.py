"""Decodes files in a child process (`decoder/process.py`), and decides whether the file causes a failure.

Errors of the decoder, crashes inside the decoder, and the end by the child's own limits reject the file, if the decoder
accepts a valid sample. Other failures allow a retry: the child was killed, suspended or could not start, or our code
failed. This module does not import decoders.
"""

import asyncio
import contextlib
import errno
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from weakref import WeakKeyDictionary

from socialpub.core.locks import FairSemaphore, LockTimeout
from socialpub.media import types
from socialpub.media.decoder import memory
from socialpub.media.decoder.memory import MEMORY_BYTES, ORDINARY_BYTES
from socialpub.media.decoder.process import READY
from socialpub.media.types import CannotFit, Facts, FitLimits, MediaLimits, MediaRejected, media_kind

T = TypeVar("T")

# --- the memory for decoding, estimated from a file's first bytes -----------------------------------------------------
#
# The estimate decides how many children run at the same time. A separate limit restricts each child. If a header may be
# wrong (`may_be_too_low`), the estimate is also the limit.

_CHILD_BYTES = 32 * 1024**2
"""The memory of the child and its decoders."""

_BYTES_PER_PIXEL = {"image/jpeg": 13, "image/gif": 13, "image/png": 17, "image/webp": 22}
_BYTES_PER_PIXEL |= dict.fromkeys(types.BOXED_IMAGES, 17)
"""The maximum of inspecting and fitting, measured with 96 megapixels and the limits of all networks: a JPEG in CMYK, a
GIF, a PNG with transparency, a lossless WebP with transparency. HEIC and AVIF are measured with 24 megapixels."""

_VIDEO_BYTES = 240 * 1024**2
"""One frame on one thread. In a measurement, an 8K video needed half of this."""

_MAX_SEGMENTS = 500
"""A JPEG's size follows its metadata, which have segments of at most 64 KiB."""


_HEAD_BYTES = 64 * 1024
_SIDES_OF_BOXED = re.compile(rb"ispe\0\0\0\0(.{8})", re.DOTALL)
"""The sides of the image, of its tiles and of its thumbnail."""


def estimate_memory(path: Path, max_bytes: int) -> int:
    """Return the estimated bytes, or `max_bytes` for an unknown file. Raise FileNotFoundError."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if types.is_video(head):
                return min(_VIDEO_BYTES, max_bytes)
            mime_type = types.image_type(head)
            sides = None if mime_type is None else _image_sides(file, head, mime_type)
    except FileNotFoundError:
        raise
    except OSError:  # the child reports the error
        return max_bytes
    if mime_type is None or sides is None:
        return max_bytes
    return min(_CHILD_BYTES + sides[0] * sides[1] * _BYTES_PER_PIXEL[mime_type], max_bytes)


def may_be_too_low(path: Path) -> bool:
    """Return whether decoding may need more than the estimate. Raise OSError.

    Frames of a GIF, a HEIC, an AVIF or a video may be larger than the header says. Other decoders check the header
    first.
    """
    with path.open("rb") as file:
        head = file.read(12)
    return types.is_video(head) or types.image_type(head) in ("image/gif", *types.BOXED_IMAGES)


def _image_sides(file: IO[bytes], head: bytes, mime_type: str) -> tuple[int, int] | None:
    """Return the width and the height of an image, or None."""
    if len(head) < 32:
        return None
    if mime_type == "image/jpeg":
        return _jpeg_sides(file)
    if mime_type in types.BOXED_IMAGES:
        file.seek(0)
        sides = [struct.unpack(">II", match) for match in _SIDES_OF_BOXED.findall(file.read(_HEAD_BYTES))]
        return max(sides, key=math.prod, default=None)
    if mime_type == "image/png":
        return struct.unpack_from(">II", head, 16) if head[12:16] == b"IHDR" else None
    if mime_type == "image/gif":
        return struct.unpack_from("<HH", head, 6)
    match head[8:16]:
        case b"WEBPVP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"WEBPVP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"WEBPVP8L":
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


def _jpeg_sides(file: IO[bytes]) -> tuple[int, int] | None:
    file.seek(2)
    for _ in range(_MAX_SEGMENTS):
        segment = file.read(9)
        if len(segment) < 9 or segment[0] != 0xFF:
            return None
        marker, length = segment[1], int.from_bytes(segment[2:4])
        if marker == 0xFF:  # padding
            file.seek(-8, 1)
        elif 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", segment, 5)
            return width, height
        else:
            file.seek(length - 7, 1)
    return None


# --- whether a child can start ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class LastStart:
    """The result of the last start of a child."""

    failure: str | None = None
    """Why the start failed. None: the start succeeded, or there was no start."""
    lacks: tuple[str, ...] | None = None
    """The features for confinement that the kernel lacks (`confinement.py`). None: a child has not responded yet."""


last_start = LastStart()

# --- requests to a child ---------------------------------------------------------------------------------------------

RESERVED_BYTES = ORDINARY_BYTES
"""The memory of a child whose file may need more than its estimate."""

VIDEO_CPU_SECONDS = 60.0
"""Processor time for inspecting a video. Time on the wall clock depends on the load of the machine."""

IMAGE_CPU_SECONDS = 45.0
"""Processor time for inspecting an image. Measured: 100 megapixels take 0.3 to 1.4 s as PNG, GIF or baseline JPEG, 2.6
s as WebP, and 10 s as JPEG with `MAX_SCANS`, because a JPEG is decoded twice. 500 megapixels of an animated WebP take
7.3 s. Old machines need four times as long."""

FIT_CPU_SECONDS = 240.0
"""Processor time for fitting. Measured: 96 megapixels take up to 35 s, or 123 s if they are noise."""

TIMEOUT_SECONDS = 600.0
"""The time of a child on the wall clock, and the timeout of each wait before its start."""

_COMMAND = (sys.executable, "-I", "-m", "socialpub.media.decoder.process")
_PROCESS_OPTIONS: Mapping[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "cwd": "/",
    # The environment may contain credentials.
    "env": {"PATH": os.defpath, "LANG": "C.UTF-8"},
    # This process handles Ctrl-C in the terminal.
    "start_new_session": True,
}
_CRASHES = {-getattr(signal, f"SIG{name}") for name in ("SEGV", "BUS", "ABRT", "FPE", "ILL", "TRAP")}
"""The signals of a decoder's crash; its `abort()` may end by SEGV or TRAP. Other signals come from an operator, a stop,
or the kernel (SIGKILL) if the machine is out of memory. The child's own limits do not send these signals."""

_fair: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = WeakKeyDictionary()
_SAMPLES = Path(__file__).with_name("samples")


class DecoderFailed(Exception):
    """The child failed, and the file did not cause it. The message is for the log."""


class _MoreMemory(Exception):
    """The file may need more memory than the child's reservation."""


def inspect_sample(mime_type: str) -> Facts:
    """Inspect a valid sample of this type. Raise `DecoderFailed` or `MediaRejected`."""
    return inspect_file(sample(mime_type), mime_type, MediaLimits(), timeout_seconds=60.0)


def sample(mime_type: str) -> Path:
    return _SAMPLES / f"tiny.{mime_type.partition('/')[2]}"


def try_starting() -> None:
    """Test whether a child can start (`last_start`). This takes 0.25 s of processor time."""
    with contextlib.suppress(MediaRejected, DecoderFailed):
        inspect_sample("image/png")


def retry_starting() -> None:
    """Test again if the last start failed, because the next request may come late."""
    if last_start.failure is not None:
        try_starting()


async def inspect_file_async(
    path: Path,
    declared: str | None,
    limits: MediaLimits,
    *,
    key_id: str = "",
    seconds: float | None = None,
    memory_bytes: int = MEMORY_BYTES,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Facts:
    """Return the facts about the file. `declared` None: only the content counts.

    Raise `MediaRejected` for a bad file, `DecoderFailed` for a failure of the machine, or FileNotFoundError. `seconds`
    is processor time. About one child per core runs at a time, alternately by `key_id`. A cancellation kills the child.
    """
    path.stat()
    if seconds is None:
        kind = types.detect_kind(path) if declared is None else media_kind(declared)
        seconds = VIDEO_CPU_SECONDS if kind == "video" else IMAGE_CPU_SECONDS
    request = {"do": "inspect", "path": str(path.absolute()), "declared": declared, "limits": asdict(limits)}
    return Facts(**await _run(path, request | _allowance(seconds, memory_bytes), timeout_seconds, key_id))


def inspect_file(path: Path, declared: str | None, limits: MediaLimits, **allowance: Any) -> Facts:
    """Do the same outside of an event loop, and wait."""
    return _wait_for(inspect_file_async(path, declared, limits, **allowance))


def fit(
    source: Path,
    target: Path,
    limits: FitLimits,
    *,
    seconds: float = FIT_CPU_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """Write a version of the image within the limits to `target`; `resize.fit` describes the result.

    Raise `CannotFit`, `DecoderFailed` or FileNotFoundError. Do not call this on the event loop.
    """
    request = _writing("fit", source, target, limits) | _allowance(seconds, memory_bytes)
    with _prepared(target):
        return _wait_for(_run(source, request, timeout_seconds, ""))


def _wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in a new loop on a new thread, because the caller's thread may have a running loop."""
    ended: Future[T] = Future()

    def run() -> None:
        try:
            ended.set_result(asyncio.run(coroutine))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name="decoder", daemon=True).start()
    return ended.result()


async def thumbnail_async(source: Path, target: Path, limits: FitLimits, *, key_id: str = "") -> dict[str, Any]:
    """Write a still of an image or a video within the limits to `target`, on the event loop.

    The errors are those of `fit`; `resize.fit` describes the result.
    """
    request = _writing("thumbnail", source, target, limits) | _allowance(FIT_CPU_SECONDS, MEMORY_BYTES)
    with _prepared(target):
        return await _run(source, request, TIMEOUT_SECONDS, key_id)


@contextlib.contextmanager
def _prepared(target: Path) -> Iterator[None]:
    """Create the file, because the child can only write to an existing file."""
    try:
        created = not target.exists()
        target.touch()
    except OSError as error:
        raise DecoderFailed(f"The file to write cannot be created: {error.strerror}.") from error
    try:
        yield
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None
    finally:
        if created and target.stat().st_size == 0:
            target.unlink()


def _writing(do: str, source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    source.stat()
    return {
        "do": do,
        "path": str(source.absolute()),
        "target": str(target.absolute()),
        "limits": asdict(limits),
        "max_output_bytes": limits.max_bytes,
    }


def _allowance(seconds: float, memory_bytes: int) -> dict[str, Any]:
    return {"cpu_seconds": math.ceil(seconds), "memory_bytes": memory_bytes}


def _attempts(path: Path, request: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the memory to reserve, and the request for the child.

    If the estimate may be too low, the first child has only its reservation. A second child has the full limit.
    """
    most = request["memory_bytes"]
    need = estimate_memory(path, most)
    if need <= ORDINARY_BYTES < most and may_be_too_low(path):
        yield need, request | {"reserved_bytes": RESERVED_BYTES}
        need = most
    yield need, request


async def _run(path: Path, request: dict[str, Any], timeout_seconds: float, key_id: str) -> dict[str, Any]:
    async with contextlib.AsyncExitStack() as held:
        with _start_failures():
            await held.enter_async_context(_fair_slots().slot(key_id, timeout_seconds))
        # Reserve memory after the wait for a slot, so that waiting tasks do not hold memory.
        for need, asked in _attempts(path, request):
            try:
                return await _run_once(need, asked, timeout_seconds)
            except _MoreMemory:
                continue
            except MediaRejected:
                await _try_sample(path, request, timeout_seconds)
                raise
    raise DecoderFailed("The decoder process needs more memory than its limit.")


async def _try_sample(path: Path, request: dict[str, Any], timeout_seconds: float) -> None:
    """Raise `DecoderFailed` if a valid file of the same type fails too."""
    is_known = types.detect_kind(path) is not None or media_kind(request.get("declared") or "") == "video"
    mime_type = types.guess_type(path) if is_known else "image/png"
    valid = {"do": "inspect", "path": str(sample(mime_type)), "declared": mime_type, "limits": asdict(MediaLimits())}
    try:
        need = estimate_memory(sample(mime_type), MEMORY_BYTES)
        await _run_once(need, valid | _allowance(IMAGE_CPU_SECONDS, MEMORY_BYTES), timeout_seconds)
    except MediaRejected as rejected:
        raise DecoderFailed(f"The decoder process fails for every {mime_type}. {rejected.reason}") from None


async def _run_once(need: int, request: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
    with _start_failures():
        reservation = None if memory.budget is None else await memory.budget.reserve(need, timeout_seconds)
        try:
            # The child inherits the locked file, which stays locked until the child ends.
            child = await _start(() if reservation is None else (reservation,))
        finally:
            if reservation is not None:
                os.close(reservation)
    return await _exchange(child, request, timeout_seconds)


async def _start(descriptors: tuple[int, ...]) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*_COMMAND, **_PROCESS_OPTIONS, pass_fds=descriptors)
    )
    try:
        await asyncio.wait({starting})
    except asyncio.CancelledError:
        # Otherwise, the child would wait for its request without end and keep its reservation.
        await asyncio.wait({starting})
        if starting.exception() is None:
            _kill(starting.result())
            await starting.result().wait()
        raise
    return starting.result()


async def _exchange(
    child: asyncio.subprocess.Process, request: dict[str, Any], timeout_seconds: float
) -> dict[str, Any]:
    answering = asyncio.ensure_future(child.communicate(json.dumps(request).encode()))
    try:
        done, _ = await asyncio.wait({answering}, timeout=timeout_seconds)
    except asyncio.CancelledError:
        _kill(child)
        # Without this wait, the child would stay as a zombie.
        await asyncio.wait({answering})
        raise
    if not done:
        _kill(child)
    output, errors = await answering
    return _result(child.returncode or 0, output, errors, request)


@contextlib.contextmanager
def _start_failures() -> Iterator[None]:
    """Turn errors before the start of a child into `DecoderFailed`."""
    try:
        yield
    except (OSError, MemoryError, LockTimeout) as error:
        if not isinstance(error, LockTimeout):
            name = errno.errorcode.get(getattr(error, "errno", None) or 0, type(error).__name__)
            last_start.failure = f"the decoder process cannot be started ({name})."
        raise DecoderFailed(f"The decoder process could not be started: {error}.") from error


def _kill(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()


def _fair_slots() -> FairSemaphore:
    loop = asyncio.get_running_loop()
    if loop not in _fair:
        _fair[loop] = FairSemaphore(os.cpu_count() or 1)
    return _fair[loop]


def _result(code: int, output: bytes, errors: bytes, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the child's result. Raise the errors of `inspect_file_async`, or `_MoreMemory`."""
    if not output.startswith(READY):
        last_start.failure = f"the decoder process exited with code {code} before it was ready."
        last = errors.decode(errors="replace").strip()[-500:]
        raise DecoderFailed(f"The decoder process exited with code {code} before it was ready. {last}".rstrip())
    last_start.failure = None
    if code == -signal.SIGXCPU:
        raise MediaRejected("Decoding the file takes more processor time than the limit for an upload.")
    if code < 0 and code not in _CRASHES:
        raise DecoderFailed(f"Signal {-code} ended the decoder process.")
    try:
        response = json.loads(output[len(READY) :] if code not in _CRASHES else b"")
    except ValueError:
        raise _refusal("Decoding the file crashed the decoder.", request) from None
    last_start.lacks = tuple(response.get("lacks", ()))
    if "rejected" in response:
        raise _refusal(str(response["rejected"]), request)
    if "failed" in response:
        raise DecoderFailed(str(response["failed"]))
    return dict(response["result"])


def _refusal(reason: str, request: Mapping[str, Any]) -> Exception:
    # A decoder without enough memory may report any error of the file.
    return _MoreMemory() if "reserved_bytes" in request else MediaRejected(reason)
