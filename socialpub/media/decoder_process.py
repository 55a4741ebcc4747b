"""The child process in which whatever a caller sent is decoded, and the way to ask it.

Nothing that a file contains may hold, fill or crash the process that asks: decoding happens in a child that lives
for one question, with limits on memory, processor time, files and the clock on the wall. The asking side imports no
decoder. A file is refused only when the child had begun to look at it; a child that could not begin is our own fault.
"""

import contextlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from socialpub.media.inspect import Facts, Limits, Refused, kind_of
from socialpub.media.resize import CannotFit

if TYPE_CHECKING:
    # Connected where it is needed: it would be a third of the child's start.
    import asyncio

MEMORY_BYTES = 2048 * 1024 * 1024
"""Address space of the child. Measured: 100 megapixels need up to 0.75 GiB as PNG, GIF or baseline JPEG, 1.25 GiB as
progressive JPEG, 1.75 GiB as WebP, whose decoder keeps three copies. It is a bound: a photo takes 0.1 GiB."""

SECONDS = 60.0
"""How long one question may take, by the clock on the wall."""

_COMMAND = (sys.executable, "-I", "-m", "socialpub.media.decoder_process")
_READY = b"ready\n"

# Somebody stopped the appliance, or the terminal: no verdict on the file.
_NOT_ITS_FAULT = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

Answer = dict[str, Any]


class ExaminerFailed(Exception):
    """The child could not do its work, through no fault of the file. The message is for the log."""


# --- asking ----------------------------------------------------------------------------------------------------------


def examine(
    path: Path, declared: str, limits: Limits, *, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES
) -> Facts:
    """What the file is. Raises `Refused` (the file's fault), `ExaminerFailed` (ours), FileNotFoundError.

    Blocks up to `seconds`; in the event loop use `examine_async`.
    """
    return Facts(**_ask(_examination(path, declared, limits, seconds, memory_bytes), seconds))


async def examine_async(
    path: Path, declared: str, limits: Limits, *, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES
) -> Facts:
    """The same for the event loop. At most one child per core runs at a time; waiting for one's turn is not counted
    into `seconds`. Canceled, it kills its child."""
    request = _examination(path, declared, limits, seconds, memory_bytes)
    async with _turn():
        return Facts(**await _ask_async(request, seconds))


def fit(
    source: Path,
    target: Path,
    types: Sequence[str],
    max_bytes: int,
    max_width: int | None = None,
    max_height: int | None = None,
    max_short_side: int | None = None,
    *,
    seconds: float = SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Answer:
    """Write a version of the picture within the limits to `target`; see `resize.fit` for the answer.

    Raises `CannotFit` (the picture's fault), `ExaminerFailed` (ours), FileNotFoundError. Blocks up to `seconds`.
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
        return _ask(request | _allowance(seconds, memory_bytes), seconds)
    except Refused as refused:
        raise CannotFit(refused.reason) from None


def _examination(path: Path, declared: str, limits: Limits, seconds: float, memory_bytes: int) -> Answer:
    path.stat()
    request = {"do": "examine", "path": str(path.absolute()), "declared": declared, "limits": asdict(limits)}
    return request | _allowance(seconds, memory_bytes)


def _allowance(seconds: float, memory_bytes: int) -> Answer:
    return {"cpu_seconds": math.ceil(seconds) + 1, "memory_bytes": memory_bytes}


def _ask(request: Answer, seconds: float) -> Answer:
    try:
        child = subprocess.Popen(_COMMAND, **_SURROUNDINGS)  # noqa: S603  # our own interpreter and module
    except OSError as error:
        raise ExaminerFailed(f"The examiner could not be started: {error}.") from error
    late = False
    with child:
        try:
            output, noise = child.communicate(json.dumps(request).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            late = True
            child.kill()
            output, noise = child.communicate()
        except BaseException:
            child.kill()
            raise
    return _verdict(child.returncode, output, noise, seconds if late else None)


async def _ask_async(request: Answer, seconds: float) -> Answer:
    import asyncio

    try:
        child = await asyncio.create_subprocess_exec(*_COMMAND, **_SURROUNDINGS)
    except OSError as error:
        raise ExaminerFailed(f"The examiner could not be started: {error}.") from error
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
    output, noise = await answering
    return _verdict(child.returncode or 0, output, noise, None if done else seconds)


def _kill(child: "asyncio.subprocess.Process") -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()


_SURROUNDINGS: Mapping[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "cwd": "/",
    # Credentials may stand in our environment; a decoder has no use for them.
    "env": {"PATH": os.defpath, "LANG": "C.UTF-8"},
    # A Ctrl-C in the terminal is for us to handle, not a verdict on the file.
    "start_new_session": True,
}

_turns: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


def _turn() -> "asyncio.Semaphore":
    import asyncio

    loop = asyncio.get_running_loop()
    if loop not in _turns:
        _turns[loop] = asyncio.Semaphore(os.cpu_count() or 1)
    return _turns[loop]


def _verdict(code: int, output: bytes, noise: bytes, late_after_seconds: float | None) -> Answer:
    """What the child said, or what its death says. Raises as `examine` does."""
    if not output.startswith(_READY):
        last = noise.decode(errors="replace").strip()[-500:]
        raise ExaminerFailed(f"The examiner ended with {code} before it could begin. {last}".rstrip())
    if late_after_seconds is not None or code == -signal.SIGXCPU:
        took = f"{late_after_seconds:g} seconds" if late_after_seconds is not None else "the processor time allowed"
        raise Refused(f"The file took longer than {took} to decode.")
    if code < 0:
        if -code in _NOT_ITS_FAULT:
            raise ExaminerFailed(f"The examiner was stopped by signal {-code}.")
        raise Refused("Decoding the file needed more memory than one upload may take, or crashed the decoder.")
    try:
        answer: Answer = json.loads(output[len(_READY) :])
    except ValueError:
        raise Refused("Decoding the file crashed the decoder.") from None
    if "refused" in answer:
        raise Refused(str(answer["refused"]))
    if "failed" in answer:
        raise ExaminerFailed(str(answer["failed"]))
    return dict(answer["answer"])


# --- answering: everything below runs in the child -------------------------------------------------------------------


def main() -> None:
    """Read one request from standard input, answer it on standard output."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # What a library prints must not become part of the answer.
    request = json.load(sys.stdin)
    _confine(int(request["memory_bytes"]), int(request["cpu_seconds"]))
    _load(request)
    # From here on what happens is the file's doing. The last limit comes late, as finding libmagic may write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(request.get("max_bytes", 0)),) * 2)
    os.write(answers, _READY)
    os.dup2(nowhere, 2)
    os.write(answers, json.dumps(_answer(request)).encode())


def _confine(memory_bytes: int, cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(5)
    # Should the machine run out of memory, this is the process to end; elsewhere than on Linux nobody asks.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _load(request: Answer) -> None:
    """Import the decoders that the request needs, so that one that is missing is not taken for a bad file."""
    if request["do"] == "examine":
        import pylibmagic  # noqa: F401
        import magic  # noqa: F401  # isort: skip

        from socialpub.media import images, videos  # noqa: F401

    if request["do"] == "fit" or kind_of(request["declared"]) == "image":
        from PIL import GifImagePlugin, JpegImagePlugin, MpoImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: F401
    else:
        import av  # noqa: F401


def _answer(request: Answer) -> Answer:
    from socialpub.media import inspect, resize

    do = request["do"]
    try:
        if do == "examine":
            limits = Limits(**request["limits"])
            return {"answer": asdict(inspect.examine(Path(request["path"]), request["declared"], limits))}
        names = ("types", "max_bytes", "max_width", "max_height", "max_short_side")
        wanted = {name: request[name] for name in names}
        return {"answer": resize.fit(Path(request["source"]), Path(request["target"]), **wanted)}
    except (Refused, CannotFit) as error:
        return {"refused": error.reason}
    except MemoryError:
        return {"refused": "Decoding the file needs more memory than one upload may take."}
    except OSError as error:
        return {"failed": f"The examiner could not {do} the file: {error.strerror or error}."}
    except Exception as error:
        # Decoders meet hostile bytes with all kinds of errors. There is nobody else in this process to handle them.
        return {"refused": f"The file does not decode ({type(error).__name__})."}


if __name__ == "__main__":
    main()
