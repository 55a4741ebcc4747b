"""`/login`, `/setup`, `/logout`, `/system/sessions/…` and `/system/password`: sign-in, sessions and the password.

Hashing a password is slow on purpose, so one password is hashed at a time. Waiting requests use no thread, because
files and other pages need the threads. If too many requests wait, more requests are refused.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.responses import Response

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import BrowserSession, Purpose
from socialpub.core import commands
from socialpub.core.errors import Conflict, Forbidden, InvalidRequest, RateLimited, Unavailable
from socialpub.db.connection import Database
from socialpub.db.tables.audit_log import AuditAction
from socialpub.runtime import Runtime
from socialpub.web.dashboard import system
from socialpub.web.dashboard.browser import forms, security
from socialpub.web.dashboard.browser.visit import Visit, page, set_a_password_first
from socialpub.web.http import client_address

SPENT = "This link was already used, or it is older than one day."
MAX_WAITING = 100
RETRY_SECONDS = 5


@page(signed_in=False)
async def form(rt: Runtime, visit: Visit) -> Response:
    """Show the password field, or sign in with the token of a link."""
    token = visit.query.text("token")
    if token and visit.session is None and visit.request.method == "GET":
        # Guesses are limited, and they do not use the writer.
        if not sign_in.is_link_valid(rt, rt.db, Purpose.SIGN_IN, token):
            visit.request.app.state.rate_limits.count_guess(client_address.of_request(visit.request))
            return visit.show("login.html", http_status=403, problem=SPENT)
        if not await rt.write_soon(sign_in.use_link, Purpose.SIGN_IN, token):
            return visit.show("login.html", http_status=403, problem=SPENT)
        return await _begin_session(rt, visit, "/")
    if visit.session is not None:
        return visit.go(forms.local_path(visit.query.text("next"), "/"))
    if not sign_in.is_password_set(rt.db):
        return set_a_password_first(visit)
    return visit.show("login.html")


@page(signed_in=False)
async def submit(rt: Runtime, visit: Visit) -> Response:
    """Check the password. Wrong passwords count by IP address, or by cookie for a known browser."""
    limits = visit.request.app.state.rate_limits
    address, browser_id = client_address.of_request(visit.request), security.find_known_browser(visit.request)
    try:
        limits.count_password(address, browser_id)
    except RateLimited:
        await _note_failure(rt, visit, AuditAction.SIGN_INS_REFUSED)
        raise
    if not await _password_matches(visit, "password", known=browser_id is not None):
        await _note_failure(rt, visit, AuditAction.SIGN_IN_FAILED)
        problem = f"The password is wrong. If you forgot it, run `{_set_password()}` to set a new password."
        return visit.show("login.html", http_status=403, problem=problem)
    limits.forgive_passwords(address, browser_id)
    return await _begin_session(rt, visit, forms.local_path(visit.query.text("next"), "/"))


@page()
async def sign_out(rt: Runtime, visit: Visit) -> Response:
    assert visit.session is not None
    await rt.write_soon(sign_in.sign_out, visit.session)
    visit.headers += [security.drop_cookie(visit.request, "session"), ("clear-site-data", '"cache"')]
    return visit.go("/login")


@page()
async def end_session(rt: Runtime, visit: Visit) -> Response:
    await rt.write_soon(sign_in.end_session, visit.params["sessionId"])
    return visit.go("/system", status="The session is ended. That browser must sign in again.")


@page(signed_in=False)
async def set_up_form(rt: Runtime, visit: Visit) -> Response:
    if sign_in.is_password_set(rt.db):
        return visit.go("/login", status=_set_already())
    _check_link(rt, visit)
    return visit.show("setup.html", errors={})


@page(signed_in=False)
async def set_up(rt: Runtime, visit: Visit) -> Response:
    _check_link(rt, visit)
    try:
        hashed = await _hash_password(visit)
    except InvalidRequest as error:
        return visit.show("setup.html", http_status=400, errors=forms.field_errors(error))
    session = await rt.write_soon(_set_first, hashed, visit.query.text("token"), *_browser(visit))
    return _signed_in(visit, session, "/", "The password is set. This browser is signed in.")


@page()
async def change_password(rt: Runtime, visit: Visit) -> Response:
    """Change the password and end all other sessions."""
    assert visit.session is not None
    limits, address = visit.request.app.state.rate_limits, client_address.of_request(visit.request)
    # The session identifies a browser that deleted the other cookie.
    browser_id = security.find_known_browser(visit.request) or visit.session.id
    limits.count_password(address, browser_id)
    if sign_in.is_password_set(rt.db) and not await _password_matches(visit, "current", known=True):
        return await system.render(rt, visit, {"current": "This is not the current password."})
    limits.forgive_passwords(address, browser_id)
    try:
        hashed = await _hash_password(visit)
    except InvalidRequest as error:
        return await system.render(rt, visit, forms.field_errors(error))
    visit.sign_in(await rt.write_soon(_change, hashed, visit.session))
    return visit.go("/system", status="The password is changed. Every other browser must sign in again.")


@asynccontextmanager
async def _hash_alone(visit: Visit, *, known: bool = False) -> AsyncIterator[None]:
    """Wait for the lock. Raises RateLimited, but not for a `known` browser, which has its own limit."""
    state = visit.request.app.state
    if state.passwords_waiting >= MAX_WAITING and not known:
        detail = "Too many sign-ins are in progress. Try again in a few seconds."
        raise RateLimited(detail, retry_after_seconds=RETRY_SECONDS)
    state.passwords_waiting += 1
    try:
        async with state.password_lock:
            yield
    finally:
        state.passwords_waiting -= 1


async def _password_matches(visit: Visit, field: str, *, known: bool) -> bool:
    async with _hash_alone(visit, known=known):
        return await asyncio.to_thread(sign_in.is_password, visit.rt, visit.form.text(field))


async def _hash_password(visit: Visit) -> str:
    async with _hash_alone(visit):
        return await asyncio.to_thread(sign_in.hash_password, visit.form.text("password"), visit.form.text("repeated"))


def _check_link(rt: Runtime, visit: Visit) -> None:
    if sign_in.is_password_set(rt.db):
        raise Conflict(_set_already())
    if not sign_in.is_link_valid(rt, rt.db, Purpose.SET_UP, visit.query.text("token")):
        visit.request.app.state.rate_limits.count_guess(client_address.of_request(visit.request))
        if commands.is_service():
            raise Forbidden(f"{SPENT} To set the password, run `{_set_password()}`.")
        with commands.in_public():
            raise Forbidden(f"{SPENT} Each start prints a new link in {commands.log()}.")


def _set_already() -> str:
    return f"A password is already set. Sign in with it, or run `{_set_password()}` to set a new password."


def _set_password() -> str:
    with commands.in_public():
        return commands.line("admin", "set-password")


def _set_first(rt: Runtime, tx: Database, hashed: str, token: str, address: str, user_agent: str) -> BrowserSession:
    if not sign_in.use_link(rt, tx, Purpose.SET_UP, token):
        raise Forbidden(SPENT)
    sign_in.set_password(rt, tx, hashed)
    return sign_in.begin_session(rt, tx, address, user_agent)


def _change(rt: Runtime, tx: Database, hashed: str, session: BrowserSession) -> BrowserSession:
    sign_in.set_password(rt, tx, hashed)
    return sign_in.begin_session(rt, tx, session.address, session.user_agent)


async def _begin_session(rt: Runtime, visit: Visit, path: str) -> Response:
    return _signed_in(visit, await rt.write_soon(sign_in.begin_session, *_browser(visit)), path)


def _signed_in(visit: Visit, session: BrowserSession, path: str, status: str | None = None) -> Response:
    # Always a new session, so that a planted cookie is never signed in (session fixation).
    visit.sign_in(session)
    visit.headers.append(security.drop_cookie(visit.request, "visitor"))
    return visit.go(path, status=status)


async def _note_failure(rt: Runtime, visit: Visit, action: AuditAction) -> None:
    address, user_agent = _browser(visit)
    place = client_address.client_network(address)
    if sign_in.is_failure_due(rt, action, place):
        with contextlib.suppress(Unavailable):  # a full disk does not change the response
            await rt.write_soon(sign_in.record_failure, action, place, user_agent)


def _browser(visit: Visit) -> tuple[str, str]:
    return client_address.of_request(visit.request), visit.request.headers.get("user-agent", "")
