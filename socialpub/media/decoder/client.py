"""Decodes files in a child process (`decoder/process.py`), and decides whether a failure is the file's fault.

Only what nothing but the file can cause counts against it: a verdict of the decoder, a crash inside it, and the limits
that the child sets for itself. Everything else may be tried again: a child that was killed, suspended, or could not
start. No decoder is imported here.
"""

import asyncio
import contextlib
import errno
import json
import math
import os
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

from socialpub.core import locks, machine
from socialpub.core.locks import FairSemaphore, LockTimeout, MemoryBudget
from socialpub.media import types
from socialpub.media.decoder.process import READY
from socialpub.media.types import CannotFit, Facts, FitLimits, MediaLimits, MediaRejected, media_kind

T = TypeVar("T")

# --- how much memory decoding takes, estimated from a file's first bytes ----------------------------------------------
#
# An estimate decides how many children run beside each other. A limit of its own bounds what a child can take. Where a
# header may give wrong sides, that limit is the estimate (`may_be_too_low`), so a wrong header gains nothing.

_CHILD_BYTES = 32 * 1024**2
"""The child itself, with its decoders."""

_BYTES_PER_PIXEL = {"image/jpeg": 13, "image/gif": 13, "image/png": 17, "image/webp": 22}
"""Measured with 96 megapixels and the limits of all networks, the worst of inspecting and fitting: a JPEG in CMYK, a
GIF, a PNG with transparency, a lossless WebP with transparency."""

_VIDEO_BYTES = 240 * 1024**2
"""One frame is decoded, on one thread: measured, an 8K video needs half of this."""

_MAX_SEGMENTS = 500
"""A JPEG's size stands behind its metadata, which comes in segments of at most 64 KiB."""


def estimate_memory(path: Path, max_bytes: int) -> int:
    """Bytes of memory; `max_bytes` when the file says nothing that is understood here. Raises FileNotFoundError."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if types.is_video(head):
                return min(_VIDEO_BYTES, max_bytes)
            mime_type = types.image_type(head)
            sides = None if mime_type is None else _image_sides(file, head, mime_type)
    except FileNotFoundError:
        raise
    except OSError:  # the child says what is wrong with it
        return max_bytes
    if mime_type is None or sides is None:
        return max_bytes
    return min(_CHILD_BYTES + sides[0] * sides[1] * _BYTES_PER_PIXEL[mime_type], max_bytes)


def may_be_too_low(path: Path) -> bool:
    """Whether decoding may take more than estimated. Raises OSError.

    Frames of a GIF or a video may be larger than the header says. Other decoders compare the two first.
    """
    with path.open("rb") as file:
        head = file.read(12)
    return types.is_video(head) or types.image_type(head) == "image/gif"


def _image_sides(file: IO[bytes], head: bytes, mime_type: str) -> tuple[int, int] | None:
    """Width and height of a picture, None when they do not stand where they should."""
    if len(head) < 32:
        return None
    if mime_type == "image/jpeg":
        return _jpeg_sides(file)
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
    """How the last child began."""

    failure: str | None = None
    """Why it could not; None when it could, or when none was wanted yet."""
    lacks: tuple[str, ...] | None = None
    """What the kernel lacked to confine it (`confinement.py`); None when no child has answered."""


last_start = LastStart()

# --- requests to a child ---------------------------------------------------------------------------------------------

MEMORY_BYTES = 2048 * 1024 * 1024
"""Address space of the child. Measured: 100 megapixels need up to 0.75 GiB as PNG, GIF or baseline JPEG, 1.25 GiB as
progressive JPEG, 1.75 GiB as WebP, whose decoder keeps three copies. It is a bound: a photo takes 0.1 GiB."""

VIDEO_CPU_SECONDS = 60.0
"""Processor time of one video's inspection. Time on the wall says nothing about a file, as a machine may be busy."""

IMAGE_CPU_SECONDS = 30.0
"""The same for a picture. Measured: 100 megapixels take 0.3 to 0.7 s as PNG, GIF or baseline JPEG, 2.6 s as WebP, and
5.1 s with as many scans as a JPEG may have; 500 of an animated WebP take 7.3 s. Old machines are four times as slow."""

FIT_CPU_SECONDS = 240.0
"""The same for fitting. Measured: 96 megapixels take up to 35 s, and 123 s when they are noise."""

TIMEOUT_SECONDS = 600.0
"""How long a child may take on the wall clock, and the wait for its turn before that."""

_COMMAND = (sys.executable, "-I", "-m", "socialpub.media.decoder.process")
_PROCESS_OPTIONS: Mapping[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "cwd": "/",
    # Our environment may contain credentials; a decoder needs none.
    "env": {"PATH": os.defpath, "LANG": "C.UTF-8"},
    # A Ctrl-C in the terminal is for us to handle, and says nothing about the file.
    "start_new_session": True,
}
_CRASHES = {-getattr(signal, f"SIG{name}") for name in ("SEGV", "BUS", "ABRT", "FPE", "ILL", "TRAP")}
"""What a decoder does to itself over a file; its `abort()` may end by SEGV or TRAP. All others come from outside:
an operator, a stop, and SIGKILL when the machine is out of memory. The child's own limits send none of them."""

_fair: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = WeakKeyDictionary()
_memory: MemoryBudget | None = None


class DecoderFailed(Exception):
    """The child could not do its work, through no fault of the file. The message is for the log."""


class _MoreMemory(Exception):
    """The file may need more memory than the child's turn covered."""


def share_memory_in(folder: Path) -> None:
    """Have the children of this process share a budget of memory with those of all processes that name this folder.

    The budget is half of the machine's memory, and no more than one largest child per core can use.
    """
    global _memory
    last_start.failure = None
    _memory = MemoryBudget(folder, min(machine.memory_bytes() // 2, (os.cpu_count() or 1) * MEMORY_BYTES))


def try_starting() -> None:
    """Find out whether a child can begin (`last_start`). Takes a quarter of a second of processor time."""
    with contextlib.suppress(MediaRejected, DecoderFailed):
        inspect_file(Path(__file__), "image/png", MediaLimits(), timeout_seconds=60.0)


def retry_starting() -> None:
    """Try again if the last child could not start: the next request may be far away."""
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
    """What the file is; `declared` None: it counts as what it is found to be.

    Raises `MediaRejected` (the file's fault), `DecoderFailed` (ours), FileNotFoundError. `seconds` is processor time,
    by default what its kind may take. About one child per core runs at a time, in turn by the keys of those who ask.
    Canceled, it kills its child.
    """
    path.stat()
    if seconds is None:
        kind = types.detect_kind(path) if declared is None else media_kind(declared)
        seconds = VIDEO_CPU_SECONDS if kind == "video" else IMAGE_CPU_SECONDS
    request = {"do": "inspect", "path": str(path.absolute()), "declared": declared, "limits": asdict(limits)}
    return Facts(**await _run(path, request | _allowance(seconds, memory_bytes), timeout_seconds, key_id))


def inspect_file(path: Path, declared: str | None, limits: MediaLimits, **allowance: Any) -> Facts:
    """The same outside of an event loop. Blocks."""
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
    """Write a version of the image within the limits to `target`; see `resize.fit` for the result.
    Raises `CannotFit` (the image's fault), `DecoderFailed` (ours), FileNotFoundError. Blocks: not for the event loop.
    """
    request = _writing("fit", source, target, limits) | _allowance(seconds, memory_bytes)
    with _prepared(target):
        return _wait_for(_run(source, request, timeout_seconds, ""))


def _wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in a loop and a thread of its own: the caller's thread may have a loop that runs."""
    ended: Future[T] = Future()

    def run() -> None:
        try:
            ended.set_result(asyncio.run(coroutine))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), name="decoder", daemon=True).start()
    return ended.result()


async def thumbnail_async(source: Path, target: Path, limits: FitLimits, *, key_id: str = "") -> dict[str, Any]:
    """Write a still of an image, or of the beginning of a video, within the limits to `target`: for the event loop, in
    turn as `inspect_file_async`. Raises as `fit` does; see `resize.fit` for the result."""
    request = _writing("thumbnail", source, target, limits) | _allowance(FIT_CPU_SECONDS, MEMORY_BYTES)
    with _prepared(target):
        return await _run(source, request, TIMEOUT_SECONDS, key_id)


@contextlib.contextmanager
def _prepared(target: Path) -> Iterator[None]:
    """Around a child that may write this file: it can write one that is there, and create none."""
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
    """How much memory a turn has to cover, and what to ask of a child that has it. Where more may be needed than can be
    told beforehand, the child gets no more than its turn, and is followed by one that gets all it may."""
    most = request["memory_bytes"]
    need = estimate_memory(path, most)
    if need < most and may_be_too_low(path):
        yield need, request | {"reserved_bytes": locks.in_slots(need)}
        need = most
    yield need, request


async def _run(path: Path, request: dict[str, Any], timeout_seconds: float, key_id: str) -> dict[str, Any]:
    async with contextlib.AsyncExitStack() as held:
        with _our_own_faults():
            await held.enter_async_context(_fair_slots().slot(key_id, timeout_seconds))
        # Memory comes after: who has a turn for it and waits would keep others from it.
        for need, asked in _attempts(path, request):
            with contextlib.suppress(_MoreMemory):
                return await _run_once(need, asked, timeout_seconds)
    raise DecoderFailed("The decoder process asked for more memory than it may have.")


async def _run_once(need: int, request: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
    with _our_own_faults():
        reservation = None if _memory is None else await _memory.reserve(need, timeout_seconds)
        try:
            # Handed to the child, its slots stay taken as long as it lives, and no longer.
            child = await _start(() if reservation is None else tuple(reservation.descriptors))
        finally:
            if reservation is not None:
                reservation.close()
    return await _exchange(child, request, timeout_seconds)


async def _start(descriptors: tuple[int, ...]) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*_COMMAND, **_PROCESS_OPTIONS, pass_fds=descriptors)
    )
    try:
        await asyncio.wait({starting})
    except asyncio.CancelledError:
        # Otherwise the child would wait for its request for ever, and keep its memory reserved.
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
        # Reaped before the cancellation goes on, or the child would stay behind as a zombie.
        await asyncio.wait({answering})
        raise
    if not done:
        _kill(child)
    output, errors = await answering
    return _result(child.returncode or 0, output, errors, request)


@contextlib.contextmanager
def _our_own_faults() -> Iterator[None]:
    """Around what comes before a child begins: the file has no part in it."""
    try:
        yield
    except (OSError, MemoryError, LockTimeout) as error:
        if not isinstance(error, LockTimeout):
            name = errno.errorcode.get(getattr(error, "errno", None) or 0, type(error).__name__)
            last_start.failure = f"its process cannot be started ({name})."
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
    """The child's response, or what the way it ended means. Raises as `inspect_file` does, and `_MoreMemory`."""
    if not output.startswith(READY):
        last_start.failure = f"its process ended with {code} before it could begin."
        last = errors.decode(errors="replace").strip()[-500:]
        raise DecoderFailed(f"The decoder process ended with {code} before it could begin. {last}".rstrip())
    last_start.failure = None
    if code == -signal.SIGXCPU:
        raise MediaRejected("The file takes more processor time to decode than one upload may take.")
    if code < 0 and code not in _CRASHES:
        raise DecoderFailed(f"The decoder process was ended by signal {-code}.")
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
    # A decoder that is refused memory may say anything about the file.
    return _MoreMemory() if "reserved_bytes" in request else MediaRejected(reason)
