"""The child process in which whatever a caller sent is decoded.

It lives for one request, with limits on memory, processor time and files, so that nothing a file contains may block,
fill or crash the process that asks (`decoder_client.py`). An end before it wrote `READY` is our fault, any later one
that of the file. Decoders are loaded only once it is confined, and only those that the request needs.
"""

import contextlib
import json
import os
import resource
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from socialpub.media import inspect
from socialpub.media.types import CannotFit, MediaLimits, MediaRejected, kind_of

READY = b"ready\n"


def main() -> None:
    """Read one request from standard input, write the response to standard output."""
    output = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # What a library prints must not become part of the response.
    request = json.load(sys.stdin)
    _confine(int(request["memory_bytes"]), int(request["cpu_seconds"]))
    _load_decoders(request)
    # From here on what happens is the file's doing. The last limit comes late, as finding libmagic may write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(request.get("max_bytes", 0)),) * 2)
    os.write(output, READY)
    os.dup2(nowhere, 2)
    os.write(output, json.dumps(_respond(request)).encode())


def _confine(memory_bytes: int, cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(5)
    # Should the machine run out of memory, this is the process to end; elsewhere than on Linux nobody asks.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _load_decoders(request: dict[str, Any]) -> None:
    """Import the decoders that the request needs, so that one that is missing is not taken for a bad file."""
    if request["do"] == "fit":
        from socialpub.media import resize  # noqa: F401

        return
    import pylibmagic  # noqa: F401
    import magic  # noqa: F401  # isort: skip

    if kind_of(request["declared"]) == "image":
        from socialpub.media import images  # noqa: F401
    else:
        from socialpub.media import videos  # noqa: F401


def _respond(request: dict[str, Any]) -> dict[str, Any]:
    do = request["do"]
    try:
        return {"result": _fit(request) if do == "fit" else _inspect(request)}
    except (MediaRejected, CannotFit) as error:
        return {"rejected": error.reason}
    except MemoryError:
        return {"rejected": "Decoding the file needs more memory than one upload may take."}
    except OSError as error:
        return {"failed": f"The decoder process could not {do} the file: {error.strerror or error}."}
    except Exception as error:
        # Decoders meet hostile bytes with all kinds of errors. There is nobody else in this process to handle them.
        return {"rejected": f"The file does not decode ({type(error).__name__})."}


def _inspect(request: dict[str, Any]) -> dict[str, Any]:
    limits = MediaLimits(**request["limits"])
    return asdict(inspect.inspect_file(Path(request["path"]), request["declared"], limits))


def _fit(request: dict[str, Any]) -> dict[str, Any]:
    from socialpub.media import resize

    names = ("types", "max_bytes", "max_width", "max_height", "max_short_side")
    return resize.fit(Path(request["source"]), Path(request["target"]), **{name: request[name] for name in names})


if __name__ == "__main__":
    main()
