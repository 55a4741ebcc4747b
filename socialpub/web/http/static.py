"""Files as responses: `/static/…` and stored files. Refusals of Starlette become problems.

A URL below `/static/` contains a hash of all static files, so browsers can keep a file for a year.
"""

import gzip
import hashlib
import json
import mimetypes
import os
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import starlette.responses
import starlette.staticfiles
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Message, Receive, Scope, Send

from socialpub.core.errors import InvalidRequest

# --- responses --------------------------------------------------------------------------------------------------------


class RangeNotSatisfiable(InvalidRequest):
    status: ClassVar[int] = 416


class FileResponse(starlette.responses.FileResponse):
    """Starlette's response, with a problem for a range that the file does not have, or that cannot be read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_unless_refused(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                sent = Headers(scope=scope)["range"]
                if message["status"] == RangeNotSatisfiable.status:
                    held = Headers(raw=message["headers"])["content-range"]
                    raise RangeNotSatisfiable(
                        f"The file has {held.rpartition('/')[2]} bytes, and the requested range contains none of them.",
                        headers=(("content-range", held),),
                    )
                raise InvalidRequest.at("range", message=f"is not a range of bytes: {sent[:100]}; send bytes=0-99")
            await send(message)

        await super().__call__(scope, receive, send_unless_refused)


# --- static files -----------------------------------------------------------------------------------------------------

FOLDER = Path(__file__).parents[1] / "static"
VENDORED = "vendored"
"""The folder of third-party files, which `vendored.json` in this folder lists."""

TYPES = {
    ".css": "text/css",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Files of other types, such as licenses, are not served."""
HEADERS = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
HASH_CHARACTERS = 16

for _ending, _type in TYPES.items():
    mimetypes.add_type(_type, _ending)  # the tables of machines differ


class StaticFiles(starlette.staticfiles.StaticFiles):
    """The folder of static files. A file that is stored compressed is sent compressed."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["path_params"]["version"] != version() or Path(path).suffix not in TYPES:
            raise HTTPException(404)
        return await super().get_response(path, scope)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        full_path, stat = super().lookup_path(path)
        return (full_path, stat) if stat is not None else super().lookup_path(f"{path}.gz")

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        file = Path(full_path)
        headers = dict(HEADERS)
        if file.suffix == ".gz":
            if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
                return Response(gzip.decompress(file.read_bytes()), 200, headers, TYPES[Path(file.stem).suffix])
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
        media_type = TYPES[Path(file.name.removesuffix(".gz")).suffix]
        response = FileResponse(full_path, status_code, headers, media_type, stat_result=stat_result)
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response


@cache
def version() -> str:
    """Return a hash of all static files."""
    digest = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:HASH_CHARACTERS]


def list_static() -> list[str]:
    """Return the name of each served file."""
    names = (path.relative_to(FOLDER).as_posix().removesuffix(".gz") for path in FOLDER.rglob("*"))
    return sorted(name for name in names if Path(name).suffix in TYPES)


def static_url(name: str) -> str:
    """Return the URL of a file relative to `/`."""
    return f"static/{version()}/{name}"


@cache
def vendored_url(package: str, file_name: str) -> str:
    """Return the URL of a file of a third-party package. Raises KeyError."""
    versions = {row["package"]: row["version"] for row in vendored_packages()}
    return static_url(f"{vendored_folder(package, versions[package])}/{file_name}")


def vendored_packages() -> list[dict[str, Any]]:
    """Return the entries of `vendored.json`: `package`, `version`, `licence` and `files` of each package."""
    packages: list[dict[str, Any]] = json.loads((FOLDER / VENDORED / "vendored.json").read_bytes())["packages"]
    return packages


def vendored_folder(package: str, version: str) -> str:
    """Return the folder of a package, such as `vendored/picocss-pico-2.1.1` for `@picocss/pico`."""
    return f"{VENDORED}/{package.removeprefix('@').replace('/', '-')}-{version}"
