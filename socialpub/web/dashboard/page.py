"""`page`: what happens to every request to the dashboard before its handler.

Who is not signed in is led to `/login`, and back. A form counts only with the token that this browser was given, sent
from our own pages. Failures of the domain become a page that says what to do; what was typed stays in the browser.
"""

import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from socialpub.accounts import browser_sessions, password
from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.core import commands
from socialpub.core.actor import DASHBOARD, acting
from socialpub.core.errors import NotFound, OperatorError, PayloadTooLarge, SocialpubError, UnsupportedMediaType
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer, Header
from socialpub.web.dashboard import cookies, forgery, forms, known_browser
from socialpub.web.dashboard.forms import Form
from socialpub.web.dashboard.visit import Visit
from socialpub.web.request import MOST_BODY_BYTES, Request
from socialpub.web.stream import RequestStream

LONGEST_WAY_BACK = 2000
"""Characters of an address to return to after signing in. No link of ours has as many."""

PageHandler = Callable[[Runtime, Visit], Awaitable[Answer | None]]


class Page:
    """A handler with everything that stands before it."""

    def __init__(self, handler: PageHandler, *, signed_in: bool, streams: bool) -> None:
        self.handler = handler
        self.signed_in = signed_in
        self.streams = streams
        self.__doc__ = handler.__doc__

    async def __call__(self, request: Request) -> Answer | None:
        visit = await visit_of(request)
        if self.signed_in and visit.session is None:
            if not request.has_body:
                return _lead_to_sign_in(visit)
            # Without a session no form is read, however large it is.
            await RequestStream(request).leave(_lead_to_sign_in(visit))
            return None
        if self.streams and request.method == "POST":
            visit.check_origin()  # refused as a problem, which scripts can read and browsers show
        try:
            if request.method != "POST":
                await request.finish()
            elif not self.streams:
                visit.form = await _read_form(request)
                visit.check_form(visit.form.text(forgery.FIELD) or _token_header(request))
            with acting(DASHBOARD), commands.in_dashboard():
                return await self.handler(request.state.rt, visit)
        except SocialpubError as error:
            if error.status >= 500:
                raise
            if isinstance(error, PayloadTooLarge) and not request.is_whole:
                await RequestStream(request).leave(refusal(visit, error))
                return None
            return refusal(visit, error)
        except OperatorError as error:
            return visit.show("failure.html", http_status=409, title="That did not work", detail=error.sentence)


def page(*, signed_in: bool = True, streams: bool = False) -> Callable[[PageHandler], Page]:
    """Make `async def name(rt, visit) -> Answer` a page, or what a form of one does.

    `signed_in=False`: for everybody; `visit.session` may be None. With `streams` the handler takes the body itself,
    which comes from a page of ours, and calls `visit.check_form` with the token that it finds there (`check_header` of
    this module for scripts).
    """
    return lambda handler: Page(handler, signed_in=signed_in, streams=streams)


def refusal(visit: Visit, error: SocialpubError) -> Answer:
    """A page that says what did not work."""
    if error.retry_after_seconds is not None:
        visit.headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return visit.show("failure.html", http_status=error.status, title=error.title, detail=error.detail)


def nothing_here() -> NotFound:
    """For an id in an address that leads to nothing."""
    return NotFound("This page no longer exists. Use the menu to continue.")


async def missing(request: Request, error: NotFound) -> Answer:
    """Return the page for an address that leads nowhere. The menu is on it only for the owner."""
    return refusal(await visit_of(request), error)


def check_header(visit: Visit) -> None:
    """The token of a request that a script of ours sends. Raises Forbidden."""
    visit.check_form(_token_header(visit.request))


async def visit_of(request: Request) -> Visit:
    """Who asks, whatever the address."""
    values = cookies.read(request)
    rt = request.state.rt
    session = None
    token = values.get(cookies.name_of(request, "session"))
    if token:
        session = browser_sessions.find(rt, rt.reader, token)
    if session is not None:
        request.most_body_bytes = MOST_BODY_BYTES
    visitor = values.get(cookies.name_of(request, "visitor"), "")
    fresh = session is None and not visitor
    if fresh:
        visitor = secrets.token_urlsafe(32)
    visit = Visit(request, values, session, visitor)
    if fresh:
        visit.headers.append(cookies.put(request, "visitor", visitor))
    if session is not None and browser_sessions.is_due(rt, session):
        await rt.write_soon(browser_sessions.note, session.id, request.client_address)
        visit.headers += session_cookies(request, session)
    return visit


def session_cookies(request: Request, session: BrowserSession) -> tuple[Header, Header]:
    """Return the cookie of this session, which lasts as long as the session may be unused, and that of its browser."""
    lifetime = int(request.state.rt.settings.dashboard.session_lifetime.total_seconds())
    return cookies.put(request, "session", session.token, lifetime), known_browser.cookie(request)


def _lead_to_sign_in(visit: Visit) -> Answer:
    if visit.is_fragment:
        # A page that refreshes itself: the whole of it has to be loaded anew.
        visit.headers.append((b"hx-redirect", visit.href("/login").encode()))
        return Answer(401, b"", tuple(visit.headers))
    if not password.is_set(visit.rt.reader):
        return set_a_password_first(visit)
    back = visit.address if visit.request.method in ("GET", "HEAD") else "/"
    if len(back) > LONGEST_WAY_BACK:
        back = "/"
    return visit.go("/login" if back == "/" else f"/login?next={quote(back, safe='/')}")


async def _read_form(request: Request) -> Form:
    body = await request.read()
    if request.content_type not in (forms.URLENCODED, b""):
        raise UnsupportedMediaType("A form of the dashboard is sent as a browser sends it.")
    return Form.read(body)


def _token_header(request: Request) -> str:
    return request.headers.get(forgery.HEADER, b"").decode("latin-1")


def set_a_password_first(visit: Visit) -> Answer:
    """Show how the first password is set. Anyone may see this page."""
    with commands.in_public():
        return visit.show("no_password.html")
