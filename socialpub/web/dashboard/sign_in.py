"""`/login`, `/setup` and signing out: the doors of the dashboard."""

import contextlib

from socialpub.accounts import browser_sessions, password, sign_in_links
from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.accounts.sign_in_links import Purpose
from socialpub.core import commands
from socialpub.core.errors import Conflict, Forbidden, InvalidRequest, RateLimited, Unavailable
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime
from socialpub.web import client_address
from socialpub.web.answer import Answer
from socialpub.web.dashboard import addresses, cookies, forms, known_browser, password_turns
from socialpub.web.dashboard.page import page, session_cookies, set_a_password_first
from socialpub.web.dashboard.visit import Visit

SPENT = "This link has been used, or it is older than a day."


@page(signed_in=False)
async def form(rt: Runtime, visit: Visit) -> Answer:
    """The password's field; or, with the token of a link, straight in."""
    token = visit.query.text("token")
    if token and visit.session is None and visit.request.method == "GET":
        # Whoever guesses is slowed down, and keeps no writer busy.
        if not sign_in_links.is_valid(rt, rt.reader, Purpose.SIGN_IN, token):
            visit.request.state.rate_limits.count_guess(visit.request.client_address)
            return visit.show("login.html", http_status=403, problem=SPENT)
        if not await rt.write_soon(sign_in_links.take, Purpose.SIGN_IN, token):
            return visit.show("login.html", http_status=403, problem=SPENT)
        return await _enter(rt, visit, "/")
    if visit.session is not None:
        return visit.go(_next(visit.query.text("next")))
    if not password.is_set(rt.reader):
        return set_a_password_first(visit)
    return visit.show("login.html")


@page(signed_in=False)
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """Check the password. Wrong passwords are counted by address, and for a known browser by its cookie alone."""
    limits = visit.request.state.rate_limits
    address, browser_id = visit.request.client_address, known_browser.find(visit.request)
    try:
        limits.count_password(address, browser_id)
    except RateLimited:
        await _note_failure(rt, visit, TrailAction.SIGN_INS_REFUSED)
        raise
    if not await password_turns.matches(rt, visit.form.text("password"), known=browser_id is not None):
        await _note_failure(rt, visit, TrailAction.SIGN_IN_FAILED)
        return visit.show("login.html", http_status=403, problem=_wrong())
    limits.forgive_passwords(address, browser_id)
    return await _enter(rt, visit, _next(visit.query.text("next")))


@page(signed_in=False)
async def set_up_form(rt: Runtime, visit: Visit) -> Answer:
    """The first password, for whoever has the link that `serve` printed."""
    if password.is_set(rt.reader):
        return visit.go("/login", status=_set_already())
    _check_link(rt, visit)
    return visit.show("setup.html", errors={})


@page(signed_in=False)
async def set_up(rt: Runtime, visit: Visit) -> Answer:
    """The password is set, and this browser is signed in."""
    _check_link(rt, visit)
    try:
        hashed = await password_turns.hashed(rt, visit.form.text("password"), visit.form.text("repeated"))
    except InvalidRequest as error:
        return visit.show("setup.html", http_status=400, errors=forms.field_errors(error))
    session = await rt.write_soon(_set_first, hashed, visit.query.text("token"), *_browser(visit))
    return _signed_in(visit, session, "/", "The password is set. This browser is signed in.")


@page()
async def sign_out(rt: Runtime, visit: Visit) -> Answer:
    """End this browser's session, and have the browser forget the pages and pictures that it stored."""
    assert visit.session is not None
    await rt.write_soon(browser_sessions.sign_out, visit.session)
    visit.headers += [cookies.drop(visit.request, "session"), (b"clear-site-data", b'"cache"')]
    return visit.go("/login")


def _check_link(rt: Runtime, visit: Visit) -> None:
    if password.is_set(rt.reader):
        raise Conflict(_set_already())
    if not sign_in_links.is_valid(rt, rt.reader, Purpose.SET_UP, visit.query.text("token")):
        visit.request.state.rate_limits.count_guess(visit.request.client_address)
        raise Forbidden(f"{SPENT} {_other_ways()}")


def _set_password() -> str:
    """Return the command. Anyone may see these pages."""
    with commands.in_public():
        return commands.line("admin", "set-password")


def _other_ways() -> str:
    if commands.is_service():
        return f"Set the password in the shell: `{_set_password()}`"
    with commands.in_public():
        return f"Each start prints a new one in {commands.log()}."


def _wrong() -> str:
    return f"The password is wrong. If you have forgotten it, set a new one: `{_set_password()}`"


def _set_already() -> str:
    return f"A password is set already. Sign in with it, or set a new one: `{_set_password()}`"


def _set_first(rt: Runtime, tx: Tx, hashed: str, token: str, address: str, user_agent: str) -> BrowserSession:
    if not sign_in_links.take(rt, tx, Purpose.SET_UP, token):
        raise Forbidden(SPENT)
    password.put(rt, tx, hashed)
    return browser_sessions.begin(rt, tx, address, user_agent)


async def _enter(rt: Runtime, visit: Visit, path: str) -> Answer:
    return _signed_in(visit, await rt.write_soon(browser_sessions.begin, *_browser(visit)), path, None)


def _signed_in(visit: Visit, session: BrowserSession, path: str, status: str | None) -> Answer:
    # The browser gets a session that it never had before, whatever it brought.
    visit.become(session)
    visit.headers += [*session_cookies(visit.request, session), cookies.drop(visit.request, "visitor")]
    return visit.go(path, status=status)


async def _note_failure(rt: Runtime, visit: Visit, action: TrailAction) -> None:
    address, user_agent = _browser(visit)
    place = client_address.place(address)
    if browser_sessions.is_failure_due(rt, action, place):
        with contextlib.suppress(Unavailable):  # a full disk changes nothing about the answer
            await rt.write_soon(browser_sessions.note_failure, action, place, user_agent)


def _browser(visit: Visit) -> tuple[str, str]:
    agent = visit.request.headers.get(b"user-agent", b"").decode("latin-1")
    return visit.request.client_address, agent


def _next(path: str) -> str:
    return path if addresses.is_local(path) else "/"
