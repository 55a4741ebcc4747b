"""The reference of the API in a browser: a viewer that makes calls, and a page for readers without JavaScript.

Both stand in the same answer; the plain page has an address of its own besides. The viewer holds the reader's key, so
its policy lets nothing run but our own files and lets nothing be asked but this appliance.
"""

import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

from socialpub.web.http import files
from socialpub.web.http.answer import Answer, Header
from socialpub.web.pages import pages

Build = Callable[[str], dict[str, Any]]
"""Makes the OpenAPI document of an appliance that is reached at this base_url."""

_NONCE = b"the-nonce-of-this-answer"
"""Stands in the rendered page until it is sent."""

# The viewer makes style elements, four of them, and writes style attributes into markup. The elements get a nonce; for
# attributes there is none, and a list of their hashes would end with every new version. A style can load nothing here.
_POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src-elem 'self' 'nonce-{nonce}'",
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip


class ReferencePages:
    """The two pages of one set of routes. Rendered on the first request: it takes as long as a hundred requests."""

    def __init__(self, build: Build) -> None:
        self.plain = cache(lambda base_url: Answer(200, pages.reference(build(base_url)), pages.HEADERS, pages.HTML))
        self._viewer = cache(lambda base_url, root: _render(build(base_url), root))

    def viewer(self, base_url: str, relative_root: str) -> Answer:
        """The viewer, with a nonce that no other answer has."""
        nonce = secrets.token_urlsafe(16)
        page = self._viewer(base_url, relative_root).replace(_NONCE, nonce.encode())
        return Answer(200, page, _headers(nonce), pages.HTML)


def _render(document: dict[str, Any], root: str) -> bytes:
    return pages.viewer(
        document,
        root=root,
        nonce=_NONCE.decode(),
        style=files.static_url("reference.css"),
        start=files.static_url("reference.js"),
        viewer=files.vendored_url("@scalar/api-reference", "standalone.js"),
    )


def _headers(nonce: str) -> tuple[Header, ...]:
    return (
        (b"content-security-policy", _POLICY.format(nonce=nonce).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"vary", b"Accept"),
    )
