"""`/system/sessions/…` and `/system/password`: who is signed in, and with what."""

from socialpub.accounts import browser_sessions, password
from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.core.errors import InvalidRequest
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import forms, known_browser, password_turns, system
from socialpub.web.dashboard.page import page, session_cookies
from socialpub.web.dashboard.visit import Visit


@page()
async def end_session(rt: Runtime, visit: Visit) -> Answer:
    """Another browser has to sign in again; one's own is `/logout`."""
    await rt.write_soon(browser_sessions.end, visit.params["sessionId"])
    return visit.go("/system", status="The session is ended: that browser has to sign in again.")


@page()
async def change_password(rt: Runtime, visit: Visit) -> Answer:
    """Another password. Every other browser has to sign in again."""
    assert visit.session is not None
    limits, address = visit.request.state.rate_limits, visit.request.client_address
    # A session is proof enough that the owner signed in here, also where the browser dropped the other cookie.
    browser_id = known_browser.find(visit.request) or visit.session.id
    limits.count_password(address, browser_id)
    if password.is_set(rt.reader) and not await password_turns.matches(rt, visit.form.text("current"), known=True):
        return await system.render(rt, visit, {"current": "This is not the present password."})
    limits.forgive_passwords(address, browser_id)
    try:
        hashed = await password_turns.hashed(rt, visit.form.text("password"), visit.form.text("repeated"))
    except InvalidRequest as error:
        return await system.render(rt, visit, forms.field_errors(error))
    session = await rt.write_soon(_change, hashed, visit.session)
    visit.become(session)
    visit.headers += session_cookies(visit.request, session)
    return visit.go("/system", status="The password is changed. Every other browser has to sign in again.")


def _change(rt: Runtime, tx: Tx, hashed: str, session: BrowserSession) -> BrowserSession:
    password.put(rt, tx, hashed)
    return browser_sessions.begin(rt, tx, session.address, session.user_agent)
