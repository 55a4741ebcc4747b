"""Has files decoded in a child process of their own (`decoder_process.py`), and judges how that process ended.

A file is rejected only when the child had begun to decode it; a child that could not begin is our own fault. No decoder
is imported here.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from socialpub.media.decoder_process import READY
from socialpub.media.types import CannotFit, Facts, MediaLimits, MediaRejected

MEMORY_BYTES = 2048 * 1024 * 1024
"""Address space of the child. Measured: 100 megapixels need up to 0.75 GiB as PNG, GIF or baseline JPEG, 1.25 GiB as
progressive JPEG, 1.75 GiB as WebP, whose decoder keeps three copies. It is a bound: a photo takes 0.1 GiB."""

TIMEOUT_SECONDS = 60.0
"""How long one request may take, on the wall clock."""

_COMMAND = (sys.executable, "-I", "-m", "socialpub.media.decoder_process")
_PROCESS_OPTIONS: Mapping[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "cwd": "/",
    # Credentials may stand in our environment; a decoder has no use for them.
    "env": {"PATH": os.defpath, "LANG": "C.UTF-8"},
    # A Ctrl-C in the terminal is for us to handle, and says nothing about the file.
    "start_new_session": True,
}
_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
"""Somebody stopped the appliance, or closed the terminal: that says nothing about the file."""

_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class DecoderFailed(Exception):
    """The child could not do its work, through no fault of the file. The message is for the log."""


def inspect_file(
    path: Path,
    declared: str,
    limits: MediaLimits,
    *,
    seconds: float = TIMEOUT_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Facts:
    """What the file is. Raises `MediaRejected` (the file's fault), `DecoderFailed` (ours), FileNotFoundError.

    Blocks up to `seconds`; in the event loop use `inspect_file_async`.
    """
    return Facts(**_run(_inspection(path, declared, limits, seconds, memory_bytes), seconds))


async def inspect_file_async(
    path: Path,
    declared: str,
    limits: MediaLimits,
    *,
    seconds: float = TIMEOUT_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Facts:
    """The same for the event loop. At most one child per core runs at a time; the wait for one's turn does not count
    into `seconds`. Canceled, it kills its child."""
    request = _inspection(path, declared, limits, seconds, memory_bytes)
    async with _semaphore():
        return Facts(**await _run_async(request, seconds))


def fit(
    source: Path,
    target: Path,
    types: Sequence[str],
    max_bytes: int,
    max_width: int | None = None,
    max_height: int | None = None,
    max_short_side: int | None = None,
    *,
    seconds: float = TIMEOUT_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> dict[str, Any]:
    """Write a version of the image within the limits to `target`; see `resize.fit` for the result.

    Raises `CannotFit` (the image's fault), `DecoderFailed` (ours), FileNotFoundError. Blocks up to `seconds`.
    """
    source.stat()
    request = {
        "do": "fit",
        "source": str(source.absolute()),
        "target": str(target.absolute()),
        "types": list(types),
        "max_bytes": max_bytes,
        "max_width": max_width,
        "max_height": max_height,
        "max_short_side": max_short_side,
    }
    try:
        return _run(request | _allowance(seconds, memory_bytes), seconds)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None


def _inspection(path: Path, declared: str, limits: MediaLimits, seconds: float, memory_bytes: int) -> dict[str, Any]:
    path.stat()
    request = {"do": "inspect", "path": str(path.absolute()), "declared": declared, "limits": asdict(limits)}
    return request | _allowance(seconds, memory_bytes)


def _allowance(seconds: float, memory_bytes: int) -> dict[str, Any]:
    return {"cpu_seconds": math.ceil(seconds) + 1, "memory_bytes": memory_bytes}


def _run(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    try:
        child = subprocess.Popen(_COMMAND, **_PROCESS_OPTIONS)  # noqa: S603  # our own interpreter and module
    except OSError as error:
        raise DecoderFailed(f"The decoder process could not be started: {error}.") from error
    timed_out = False
    with child:
        try:
            output, errors = child.communicate(json.dumps(request).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            child.kill()
            output, errors = child.communicate()
        except BaseException:
            child.kill()
            raise
    return _result(child.returncode, output, errors, seconds if timed_out else None)


async def _run_async(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    try:
        child = await asyncio.create_subprocess_exec(*_COMMAND, **_PROCESS_OPTIONS)
    except OSError as error:
        raise DecoderFailed(f"The decoder process could not be started: {error}.") from error
    answering = asyncio.ensure_future(child.communicate(json.dumps(request).encode()))
    try:
        done, _ = await asyncio.wait({answering}, timeout=seconds)
    except asyncio.CancelledError:
        _kill(child)
        # Reaped before the cancellation goes on, or the child would stay behind as a zombie.
        await asyncio.wait({answering})
        raise
    if not done:
        _kill(child)
    output, errors = await answering
    return _result(child.returncode or 0, output, errors, None if done else seconds)


def _kill(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()


def _semaphore() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _semaphores:
        _semaphores[loop] = asyncio.Semaphore(os.cpu_count() or 1)
    return _semaphores[loop]


def _result(code: int, output: bytes, errors: bytes, timed_out_after: float | None) -> dict[str, Any]:
    """The child's response, or what the way it ended means. Raises as `inspect_file` does."""
    if not output.startswith(READY):
        last = errors.decode(errors="replace").strip()[-500:]
        raise DecoderFailed(f"The decoder process ended with {code} before it could begin. {last}".rstrip())
    if timed_out_after is not None or code == -signal.SIGXCPU:
        allowed = f"{timed_out_after:g} seconds" if timed_out_after is not None else "the processor time allowed"
        raise MediaRejected(f"The file took longer than {allowed} to decode.")
    if code < 0:
        if -code in _STOP_SIGNALS:
            raise DecoderFailed(f"The decoder process was stopped by signal {-code}.")
        raise MediaRejected("Decoding the file needed more memory than one upload may take, or crashed the decoder.")
    try:
        response = json.loads(output[len(READY) :])
    except ValueError:
        raise MediaRejected("Decoding the file crashed the decoder.") from None
    if "rejected" in response:
        raise MediaRejected(str(response["rejected"]))
    if "failed" in response:
        raise DecoderFailed(str(response["failed"]))
    return dict(response["result"])
