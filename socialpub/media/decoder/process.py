"""The child process in which whatever a caller sent is decoded.

It lives for one request, with limits on memory, processor time and files, so that nothing a file contains may block,
fill or crash the process that asks (`decoder_client.py`). Its kernel refuses it all files but one, sockets and programs
(`decoder_confinement.py`). An end before it wrote `READY` is our fault. Decoders are loaded only once its memory is
limited, and only those that the request needs.
"""

import contextlib
import errno
import functools
import json
import mmap
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from socialpub.media import types
from socialpub.media.decoder import confinement, inspect
from socialpub.media.types import CannotFit, FitLimits, MediaLimits, MediaRejected, media_kind

READY = b"ready\n"

_SPARE_BYTES = 16 * 1024 * 1024
"""Left out when asking for all the memory that the limit leaves: what lies between may be lost to rounding."""


def main() -> None:
    """Read one request from standard input, write the response to standard output."""
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # What a library prints must not become part of the response.
    request = json.load(sys.stdin)
    _confine(int(request["memory_bytes"]), int(request["cpu_seconds"]))
    work = _load_work(request)
    if "reserved_bytes" in request:
        _limit_to_reservation(int(request["reserved_bytes"]))
    # While the files that tell them can be opened.
    _promises_are_kept(), _address_space()
    target = Path(request["target"]) if "target" in request else None
    lacks = confinement.confine(Path(request["path"]), target)
    # From here on what happens is the file's doing. The last limit comes late, as finding libmagic may write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(request.get("max_output_bytes", 0)),) * 2)
    os.write(output, READY)
    os.dup2(nowhere, 2)
    os.write(output, json.dumps({"lacks": lacks, **_respond(request, work)}).encode())


def _confine(memory_bytes: int, cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(5)
    # If the machine runs out of memory, this process ends first. Only Linux asks.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_to_reservation(reserved_bytes: int) -> None:
    """No more than that on top of what is loaded by now."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (min(_address_space() + reserved_bytes, hard), hard))


def _address_space() -> int:
    try:
        return int(os.pread(_open_statm(), 100, 0).split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0


@functools.cache
def _open_statm() -> int:
    """The kernel's figures of this process. A confined process could not open them."""
    return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)


def _load_work(request: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Import the decoders that the request needs, so that one that is missing is not taken for a bad file. Return the
    work on the file."""
    source, limits, declared = Path(request["path"]), request["limits"], request.get("declared")
    if request["do"] == "inspect":
        inspect.load_libmagic()
        if (types.detect_kind(source) if declared is None else media_kind(declared)) == "image":
            from socialpub.media.decoder import images  # noqa: F401
        else:
            from socialpub.media.decoder import videos
        return lambda: asdict(inspect.inspect_file(source, declared, MediaLimits(**limits)))
    from socialpub.media.decoder import resize

    if request["do"] == "thumbnail" and types.detect_kind(source) == "video":
        from socialpub.media.decoder import videos  # noqa: F401
    work = resize.fit if request["do"] == "fit" else resize.write_thumbnail
    return lambda: work(source, Path(request["target"]), FitLimits(**limits))


def _respond(request: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    out_of_memory = False
    try:
        result = work()
        # A smaller picture is right only where no more memory can be had.
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
    except ImportError as error:
        out_of_memory = "reserved_bytes" in request  # it takes memory, and another turn has more
        if not out_of_memory:
            return {"failed": f"The decoder process could not load the module {error.name}."}
    except Exception as error:
        # Decoders meet hostile bytes with all kinds of errors. Nothing else in this process handles them.
        reason = f"The file does not decode ({type(error).__name__})."
    # A machine that is out of memory usually kills (SIGKILL, which is never held against a file) rather than refuse:
    # what it promised it has to find. A refusal is therefore that of our own limit, unless the machine promises no more
    # than it has, or has less altogether than was asked for in one piece. It is asked for all that our limit leaves:
    # that it gives this much shows that it would have given the file less. Where it never promises too much, a decoder
    # that was refused memory may have called the file broken instead.
    if (out_of_memory or _promises_are_kept()) and _memory_is_short():
        return {"failed": "The machine has too little memory at the moment."}
    return {"rejected": _TOO_LARGE[request["do"]] if out_of_memory else reason}


_TOO_LARGE = {
    "inspect": "Decoding the file needs more memory than one upload may take.",
    "fit": "Making the picture fit needs more memory than one picture may take.",
    "thumbnail": "Making a thumbnail needs more memory than one may take.",
}


@functools.cache
def _promises_are_kept() -> bool:
    """Whether the kernel refuses memory rather than promise more than there is."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2"
    except OSError:
        return False


def _memory_is_short() -> bool:
    """Whether the machine refuses memory that our own limit would leave us."""
    try:
        left = resource.getrlimit(resource.RLIMIT_AS)[0] - _address_space() - _SPARE_BYTES
        if left > 0:
            mmap.mmap(-1, left, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


if __name__ == "__main__":
    main()
