"""Render pages from their templates, with the headers that each page is sent with.

Nothing on a page comes from another host, and no page contains a script: text from others that contains one would not
run. A page belongs to one browser: no cache stores it.
"""

import gzip
import io
import secrets
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from socialpub.core import commands, units
from socialpub.providers.registry import LABELS
from socialpub.web.dashboard import labels
from socialpub.web.http import answer as http_answer
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.request import Request
from socialpub.web.pages import pages

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SMALL_BYTES = 2000
"""A smaller page is not compressed."""

HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"vary", b"Accept, Accept-Encoding, Cookie"),
)

REFRESH_SOON_SECONDS = 3
"""How often a page reloads what is in progress."""
REFRESH_LATER_SECONDS = 30
"""How often a page reloads what waits for its time."""


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """Render a template. All of them have `commands`, `labels` (of networks) and `words` (`labels.py`)."""
    return _environment().get_template(template).render(values).encode()


def answer(request: Request, status: int, body: bytes, headers: tuple[Header, ...]) -> Answer:
    """Return the rendered page, compressed if the browser accepts that."""
    headers = (*headers, *HEADERS)
    if len(body) > SMALL_BYTES and http_answer.accepts_gzip(request.headers.get(b"accept-encoding")):
        return Answer(status, _compressed(body), (*headers, (b"content-encoding", b"gzip")), pages.HTML)
    return Answer(status, body, headers, pages.HTML)


def _compressed(body: bytes) -> bytes:
    """Compress with a file name of random length in the header: the length of an answer then reveals nothing about its
    secrets."""
    packed = io.BytesIO()
    with gzip.GzipFile("x" * (1 + secrets.randbelow(64)), "wb", 5, packed, mtime=0) as stream:
        stream.write(body)
    return packed.getvalue()


def _code(text: str) -> Markup:
    """Return the text with its commands, which are in backticks, as code."""
    plain, code = Markup("%s"), Markup("<code>%s</code>")
    parts = text.split("`")
    whole = len(parts) % 2 == 1
    return Markup("").join(
        (code if index % 2 else plain) % part for index, part in enumerate(parts if whole else [text])
    )


@cache
def _environment() -> "Environment":
    # jinja2 costs memory: only an appliance whose pages are opened pays for it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("socialpub.web.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["size"] = units.size
    environment.filters["code"] = _code
    environment.globals |= {"commands": commands, "labels": LABELS, "words": labels}
    return environment
