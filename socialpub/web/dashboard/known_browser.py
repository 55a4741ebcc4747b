"""A browser that was signed in before keeps a cookie, by which its wrong passwords are counted apart.

A stranger who shares the owner's address, as behind a proxy that is not trusted, then cannot lock the owner out. The
cookie is no session. It stays valid after sign-out. It also stays valid when the password changes, because a stranger's
guesses may be why the owner changes it. Its signature binds the installation. No list of browsers is kept, so that none
can be filled or restored.
"""

import secrets

from socialpub.runtime import Runtime
from socialpub.web.answer import Header
from socialpub.web.dashboard import cookies
from socialpub.web.request import Request

LIFETIME_SECONDS = 400 * 86_400
"""Browsers keep no cookie for longer. Each sign-in and each use of a session begins it again."""


def find(request: Request) -> str | None:
    """Return the id of this browser. None: it brings no cookie of ours that is still valid."""
    rt, value = request.state.rt, cookies.read(request).get(cookies.name_of(request, "device"), "")
    browser_id, _, signature = value.partition(".")
    return browser_id if browser_id and rt.secrets.verify(signature, *_signed(rt, browser_id)) else None


def cookie(request: Request) -> Header:
    """Return the header that lets a signed-in browser be known from now on. A known browser keeps its id."""
    rt = request.state.rt
    browser_id = find(request) or secrets.token_urlsafe(18)
    value = f"{browser_id}.{rt.secrets.sign(*_signed(rt, browser_id))}"
    return cookies.put(request, "device", value, LIFETIME_SECONDS)


def _signed(rt: Runtime, browser_id: str) -> tuple[str, ...]:
    return "known browser", rt.instance_id, browser_id
