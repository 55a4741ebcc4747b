"""The argument `path` of the tool `upload_media`, which only `socialpub mcp` has: a file of the agent's machine."""

import os
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from socialpub.web.mcp.messages import tool_result

if TYPE_CHECKING:
    import httpx2

TOOL, ARGUMENT = "upload_media", "path"

_IMAGE_BRANDS = ((b"hei", "heic"), (b"hev", "heic"), (b"mif1", "heif"), (b"msf1", "heif"), (b"avi", "avif"))
_SIGNATURES = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    *((4, b"ftyp" + brand, f"image/{name}") for brand, name in _IMAGE_BRANDS),
    (4, b"ftypqt  ", "video/quicktime"),
    (4, b"ftyp", "video/mp4"),
    (4, b"moov", "video/quicktime"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
)
"""The position and the bytes of each accepted type. The appliance examines the whole file."""


class _UploadRefused(Exception):
    """`problem` is a problem document."""

    def __init__(self, problem: Any) -> None:
        super().__init__()
        self.problem = problem


def find_arguments(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call that uploads a file of this machine. None for every other message."""
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict) or params.get("name") != TOOL:
        return None
    arguments = params.get("arguments")
    return arguments if isinstance(arguments, dict) and ARGUMENT in arguments else None


def describe_path(response: dict[str, Any]) -> None:
    """Add the argument to the list of tools."""
    for tool in response.get("result", {}).get("tools", ()):
        if tool["name"] == TOOL:
            schema = tool["inputSchema"]
            description = "A file on this machine, instead of url"
            schema["properties"][ARGUMENT] = {"type": "string", "description": description}
            schema.pop("required", None)


def upload_file(client: "httpx2.Client", url: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Upload the file, and return the result of the tool. Raises httpx2.HTTPError."""
    try:
        path = arguments[ARGUMENT]
        if not isinstance(path, str) or len(arguments) > 1:
            raise _refusal(url, "must be a string" if len(arguments) == 1 else "must be the only argument")
        return tool_result(_send(client, url, Path(path)))
    except _UploadRefused as refused:
        return tool_result(refused.problem, is_error=True)


def _send(client: "httpx2.Client", url: str, path: Path) -> Any:
    try:
        # Opening a named pipe would wait for its writer.
        file = open(path.expanduser(), "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except (ValueError, RuntimeError):  # a NUL, or an unknown home folder
        raise _refusal(url, "cannot be read: this is not a path") from None
    except OSError as error:
        # An agent that gives a relative path does not know the folder of this command.
        raise _refusal(url, f"cannot be read: {path.expanduser().absolute()}: {error.strerror}") from None
    with file:
        status = os.fstat(file.fileno())
        mime_type = _read_type(file) if stat.S_ISREG(status.st_mode) else None
        if mime_type is None:
            raise _refusal(url, "must be a JPEG, PNG, GIF, WebP, MP4, QuickTime or WebM file")
        reservation = {"fileName": path.name, "mimeType": mime_type, "fileSize": status.st_size}
        reserved = _answer(client.post(f"{url}/api/v1/uploads", json=reservation))["data"]
        # base_url can have another host than the one that this machine uses.
        place = reserved["uploadUrl"]
        place = place[place.index("/storage/uploads/") :]
        _answer(client.put(f"{url}{place}", content=file, headers=reserved["requiredHeaders"]))
    return _answer(client.post(f"{url}/api/v1/uploads/complete", json={"artifactId": reserved["artifactId"]}))


def _read_type(file: IO[bytes]) -> str | None:
    head = file.read(32)
    file.seek(0)
    types = (mime_type for start, mark, mime_type in _SIGNATURES if head[start : start + len(mark)] == mark)
    return next(types, None)


def _answer(response: "httpx2.Response") -> Any:
    """Return the JSON of the response. Raises _UploadRefused with the problem."""
    try:
        content = orjson.loads(response.content) if response.content else None
    except orjson.JSONDecodeError:
        content = None
    if response.is_success:
        return content
    if not isinstance(content, dict):
        detail = f"The URL answered {response.status_code}, and not in the form of a socialpub appliance."
        content = {"status": response.status_code, "title": "No answer", "detail": detail, "code": "unavailable"}
    raise _UploadRefused(content)


def _refusal(url: str, message: str) -> _UploadRefused:
    """Return the problem that the appliance would report for this argument."""
    return _UploadRefused(
        {
            "type": f"{url}/problems/invalid-request",
            "title": "Invalid request",
            "status": 400,
            "detail": f"{ARGUMENT} {message}.",
            "code": "invalidRequest",
            "errors": [{"path": [ARGUMENT], "message": message}],
        }
    )
