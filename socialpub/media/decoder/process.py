"""The child process that decodes files of callers.

It runs for one request, with limits on memory, processor time and files, so a file cannot block or crash its parent
(`client.py`). The kernel denies it sockets, programs and all files but one (`confinement.py`). If it ends before it
wrote `READY`, the file is not the cause. It loads only the decoders for the request, after its memory is limited.
"""

import contextlib
import errno
import functools
import json
import mmap
import os
import resource
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from socialpub.media import types
from socialpub.media.decoder import confinement, inspect
from socialpub.media.types import CannotFit, FitLimits, MediaLimits, MediaRejected, media_kind

READY = b"ready\n"

_SPARE_BYTES = 16 * 1024 * 1024
"""A tolerance for rounding when the process requests all memory that its limit leaves."""


def main() -> None:
    """Read one request from standard input, write the response to standard output."""
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # output of a library must not become part of the response
    request = json.load(sys.stdin)
    _confine(int(request["memory_bytes"]), int(request["cpu_seconds"]))
    work = _load_work(request)
    if "reserved_bytes" in request:
        _limit_to_reservation(int(request["reserved_bytes"]))
    # Read these files of the kernel before the confinement.
    _has_strict_overcommit(), _address_space()
    target = Path(request["target"]) if "target" in request else None
    lacks = confinement.confine(Path(request["path"]), target)
    # The last limit comes here because loading libmagic may write files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(request.get("max_output_bytes", 0)),) * 2)
    os.write(output, READY)
    os.dup2(nowhere, 2)
    os.write(output, json.dumps({"lacks": lacks, **_respond(request, work)}).encode())


def _confine(memory_bytes: int, cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(5)
    # If the machine runs out of memory, Linux ends this process first.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_to_reservation(reserved_bytes: int) -> None:
    """Limit the memory to this reservation, in addition to the memory in use."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (min(_address_space() + reserved_bytes, hard), hard))


def _address_space() -> int:
    try:
        return int(os.pread(_open_statm(), 100, 0).split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0


@functools.cache
def _open_statm() -> int:
    """Open the kernel's memory statistics, which a confined process cannot open."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _load_work(request: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Import the decoders for the request before their confinement. Return the work."""
    source, limits, declared = Path(request["path"]), request["limits"], request.get("declared")
    if request["do"] == "inspect":
        inspect.load_libmagic()
        if (types.detect_kind(source) if declared is None else media_kind(declared)) == "image":
            from socialpub.media.decoder import images

            images.load_decoder(source)
        else:
            from socialpub.media.decoder import videos
        return lambda: asdict(inspect.inspect_file(source, declared, MediaLimits(**limits)))
    from socialpub.media.decoder import images, resize

    images.load_decoder(source)
    if request["do"] == "thumbnail" and types.detect_kind(source) == "video":
        from socialpub.media.decoder import videos  # noqa: F401
    work = resize.fit if request["do"] == "fit" else resize.write_thumbnail
    return lambda: work(source, Path(request["target"]), FitLimits(**limits))


def _respond(request: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    out_of_memory = False
    try:
        result = work()
        # A smaller image is only correct if no more memory is available.
        if not (result.pop("gave_way", False) and ("reserved_bytes" in request or _memory_is_short())):
            return {"result": result}
        out_of_memory = True
    except (MediaRejected, CannotFit) as error:
        reason = error.reason
    except MemoryError:
        out_of_memory = True
    except OSError as error:
        out_of_memory = error.errno == errno.ENOMEM
        if not out_of_memory:
            return {"failed": f"The decoder process could not {request['do']} the file: {error.strerror or error}."}
    except Exception as error:
        out_of_memory = "reserved_bytes" in request  # the next child has more memory
        if not out_of_memory:
            *_, (frame, line) = traceback.walk_tb(error.__traceback__)
            where = f"{frame.f_code.co_filename}:{line}"
            return {"failed": f"The decoder process failed ({type(error).__name__} at {where}: {str(error)[:200]})."}
    # A machine without memory usually kills the process (SIGKILL) instead of denying memory. So a denial comes from the
    # process's own limit, unless the machine has strict overcommit or less memory than the request. To find out, the
    # process requests all memory that its limit leaves. With strict overcommit, a decoder without memory may report any
    # error of the file.
    if (out_of_memory or _has_strict_overcommit()) and _memory_is_short():
        return {"failed": "The machine has too little memory now."}
    return {"rejected": _TOO_LARGE[request["do"]] if out_of_memory else reason}


_TOO_LARGE = {
    "inspect": "Decoding the file needs more memory than the limit for an upload.",
    "fit": "Resizing the image needs more memory than the limit.",
    "thumbnail": "Creating the thumbnail needs more memory than the limit.",
}


@functools.cache
def _has_strict_overcommit() -> bool:
    """Return whether the kernel denies memory that the machine does not have."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2"
    except OSError:
        return False


def _memory_is_short() -> bool:
    """Return whether the machine denies memory that this process's limit leaves."""
    try:
        left = resource.getrlimit(resource.RLIMIT_AS)[0] - _address_space() - _SPARE_BYTES
        if left > 0:
            mmap.mmap(-1, left, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


if __name__ == "__main__":
    main()
