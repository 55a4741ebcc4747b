"""A command line of curl, read as curl reads it: as much of it as the document's own lines use."""

import mimetypes
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

BOUNDARY = b"part-of-a-form"


@dataclass
class CurlLine:
    """What a line asks for. `parts` are those of a form: name, and text or `@file`."""

    url: str = ""
    method: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    data: str | None = None
    file: str | None = None
    parts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def target(self) -> str:
        """Path and query."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def request(self, folder: Path) -> tuple[str, str, bytes, dict[str, str]]:
        """Method, target, body and headers; files are those in `folder`."""
        if self.file is not None:
            return self.method, self.target, (folder / self.file).read_bytes(), self.headers
        if self.parts:
            head = {**self.headers, "content-type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
            return self.method, self.target, self._form(folder), head
        return self.method, self.target, (self.data or "").encode(), self.headers

    def _form(self, folder: Path) -> bytes:
        whole = b""
        for name, value in self.parts:
            head, content = f'form-data; name="{name}"', value.encode()
            if value.startswith("@"):
                kind = mimetypes.guess_type(value)[0] or "application/octet-stream"
                head += f'; filename="{value[1:]}"\r\nContent-Type: {kind}'
                content = (folder / value[1:]).read_bytes()
            whole += b"--%b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % (BOUNDARY, head.encode(), content)
        return whole + b"--%b--\r\n" % BOUNDARY


def read(source: str, variables: Mapping[str, str]) -> CurlLine:
    """The line, with the shell's variables filled in. AssertionError for an argument that is not known here."""
    program, *words = shlex.split(source.replace("\\\n", " "))
    assert program == "curl"
    line = CurlLine()
    while words:
        word = words.pop(0)
        for name, value in variables.items():
            word = word.replace(f"${name}", value)
        match word:
            case "-X":
                line.method = words.pop(0)
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                line.headers[name.lower()] = value.replace("$KEY", variables["KEY"])
            case "-d":
                line.data = words.pop(0)
            case "-T":
                line.file = words.pop(0)
            case "-F" | "--form-string":
                name, _, value = words.pop(0).partition("=")
                line.parts.append((name, value))
            case _:
                assert not line.url and word.startswith("http"), word
                line.url = word
    if not line.method:
        line.method = "PUT" if line.file else "POST" if line.parts or line.data is not None else "GET"
    if line.data is not None:
        line.headers.setdefault("content-type", "application/x-www-form-urlencoded")
    return line
