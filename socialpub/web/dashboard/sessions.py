"""`/system/sessions/…` and `/system/password`: who is signed in, and with what."""

from socialpub.accounts import browser_sessions, password
from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.core.errors import InvalidRequest
from socialpub.db.transaction import Tx
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard import forms, password_turns, system
from socialpub.web.dashboard.page import page, session_cookie
from socialpub.web.dashboard.visit import Visit


@page()
async def end_session(rt: Runtime, visit: Visit) -> Answer:
    """Another browser has to sign in again; one's own is `/logout`."""
    await rt.write_soon(browser_sessions.end, visit.params["sessionId"])
    return visit.go("/system", status="The session is ended: that browser has to sign in again.")


@page()
async def change_password(rt: Runtime, visit: Visit) -> Answer:
    """Another password. Every other browser has to sign in again."""
    limits, address = visit.request.state.rate_limits, visit.request.client_address
    limits.count_password(address)
    if password.is_set(rt.reader) and not await password_turns.matches(rt, visit.form.text("current")):
        return await system.render(rt, visit, {"current": "This is not the present password."})
    limits.forgive_passwords(address)
    try:
        hashed = await password_turns.hashed(rt, visit.form.text("password"), visit.form.text("repeated"))
    except InvalidRequest as error:
        return await system.render(rt, visit, forms.field_errors(error))
    assert visit.session is not None
    session = await rt.write_soon(_change, hashed, visit.session)
    visit.become(session)
    visit.headers.append(session_cookie(visit.request, session))
    return visit.go("/system", status="The password is changed. Every other browser has to sign in again.")


def _change(rt: Runtime, tx: Tx, hashed: str, session: BrowserSession) -> BrowserSession:
    password.put(rt, tx, hashed)
    return browser_sessions.begin(rt, tx, session.address, session.user_agent)
