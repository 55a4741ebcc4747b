"""`/login`, `/setup` and signing out: the doors of the dashboard."""

from socialpub.accounts import browser_sessions, password, sign_in_links
from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.accounts.sign_in_links import Purpose
from socialpub.core.errors import Conflict, Forbidden, InvalidRequest
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import addresses, cookies, forms, known_browser, password_turns
from socialpub.web.dashboard.page import page, session_cookies
from socialpub.web.dashboard.visit import Visit

WRONG = "This is not the password. If you have forgotten it, set another one: socialpub admin set-password"
SET_ALREADY = "A password is set already. Sign in with it, or set another one: socialpub admin set-password"
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
        return visit.show("no_password.html", base_url=rt.settings.base_url)
    return visit.show("login.html")


@page(signed_in=False)
async def submit(rt: Runtime, visit: Visit) -> Answer:
    """Check the password. Wrong passwords are counted by address, and for a known browser by its cookie alone."""
    limits = visit.request.state.rate_limits
    address, browser_id = visit.request.client_address, known_browser.find(visit.request)
    limits.count_password(address, browser_id)
    if not await password_turns.matches(rt, visit.form.text("password"), known=browser_id is not None):
        return visit.show("login.html", http_status=403, problem=WRONG)
    limits.forgive_passwords(address, browser_id)
    return await _enter(rt, visit, _next(visit.query.text("next")))


@page(signed_in=False)
async def set_up_form(rt: Runtime, visit: Visit) -> Answer:
    """The first password, for whoever has the link that `serve` printed."""
    if password.is_set(rt.reader):
        return visit.go("/login", status=SET_ALREADY)
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
        raise Conflict(SET_ALREADY)
    if not sign_in_links.is_valid(rt, rt.reader, Purpose.SET_UP, visit.query.text("token")):
        visit.request.state.rate_limits.count_guess(visit.request.client_address)
        raise Forbidden(f"{SPENT} A new one is printed when `socialpub serve` starts.")


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


def _browser(visit: Visit) -> tuple[str, str]:
    agent = visit.request.headers.get(b"user-agent", b"").decode("latin-1")
    return visit.request.client_address, agent


def _next(path: str) -> str:
    return path if addresses.is_local(path) else "/"
