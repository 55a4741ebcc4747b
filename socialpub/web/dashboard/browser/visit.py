"""One request to the dashboard: who asks, what they sent, and how the answer is sent."""

import secrets
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import BrowserSession
from socialpub.core import commands
from socialpub.core.actor import DASHBOARD, act_as
from socialpub.core.clock import parse
from socialpub.core.errors import NotFound, OperatorError, PayloadTooLarge, SocialpubError, UnsupportedMediaType
from socialpub.db import appliance_state
from socialpub.runtime import Runtime
from socialpub.web.dashboard.browser import forms, rendering, security, times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.security import Notice, NoticeKind
from socialpub.web.http import files
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.request import MAX_BODY_BYTES, Request
from socialpub.web.http.stream import RequestStream
from socialpub.web.pages import pages

# MERGED from web/dashboard/navigation.py: The pages that stand in the navigation, in their order.


class MenuItem(NamedTuple):
    path: str
    label: str
    also: str = ""
    """The path of another page that belongs there."""

    def holds(self, path: str) -> bool:
        """Whether the page at this path is the place or lies within it."""
        return path in (self.path, self.also) or (self.path != "/" and path.startswith(f"{self.path}/"))


MENU = (
    MenuItem("/", "Overview"),
    MenuItem("/compose", "Compose"),
    MenuItem("/posts", "Posts"),
    MenuItem("/calendar", "Calendar"),
    MenuItem("/profiles", "Profiles"),
    MenuItem("/keys", "Keys"),
    MenuItem("/log", "Log", also="/trail"),
    MenuItem("/system", "System"),
)


# MERGED from web/dashboard/visit.py: One request to the dashboard: who asks, what they sent, and how they are answ

NOTICE_SECONDS = 60


class Visit:
    """`session` is None on the pages for nobody in particular (`/login`, `/setup`)."""

    def __init__(
        self, request: Request, cookie_values: dict[str, str], session: BrowserSession | None, visitor: str
    ) -> None:
        self.request = request
        self.rt: Runtime = request.state.rt
        self.session = session
        self.form = Form()
        self.query = Form.read(request.query_string)
        self.params = request.path_params
        self.root = request.relative_root
        self.zone = times.zone_named(cookie_values.get(security.ZONE_COOKIE, "").replace("%2F", "/"))
        self.now = self.rt.now()
        self.headers: list[Header] = []
        """What the answer carries besides."""
        self._cookie_values = cookie_values
        self._secret = session.token if session is not None else visitor

    # --- what came in ------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Where the page stands: `/posts`."""
        return self.request.path

    @property
    def address(self) -> str:
        """The same with its query: what this very page is bookmarked as."""
        query = self.request.query_string.decode("latin-1")
        return f"{self.path}?{query}" if query else self.path

    @property
    def restored_from(self) -> str | None:
        """The instant of the copy that this installation is, until it is resumed: whoever is signed in sees it on every
        page, but for the two that begin with it."""
        if self.session is None or self.path in ("/", "/system"):
            return None
        return appliance_state.restored_from(self.rt.reader)

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks, to put a part of the answer into the page that is shown."""
        return b"hx-request" in self.request.headers

    def check_form(self, token: str) -> None:
        """Raises Forbidden for a form that was not given to this browser. `page` does it for ordinary forms."""
        security.check_token(self.request, self._secret, token)

    def check_origin(self) -> None:
        """Raises Forbidden for a request that does not come from our own pages, before anything of it is read."""
        security.check_origin(self.request)

    def become(self, session: BrowserSession) -> None:
        """The browser is signed in from this answer on."""
        self.session, self._secret = session, session.token

    @cached_property
    def notice(self) -> Notice | None:
        """What the last action came to. Asking for it takes it off the next page."""
        value = self._cookie_values.get(security.cookie_name(self.request, "notice"))
        if not value:
            return None
        self.headers.append(security.drop_cookie(self.request, "notice"))
        return security.unpack_notice(value, self._secret)

    # --- what goes out -----------------------------------------------------------------------------------------------

    @property
    def form_token(self) -> str:
        """For the hidden field of a form; another one each time."""
        return security.form_token(self._secret)

    def href(self, path: str) -> str:
        """An address of ours (`/posts/…`) as this page writes it."""
        return self.root + path.removeprefix("/")

    def own_href(self, url: str) -> str:
        """The same for a whole address below base_url, such as a signed one: the browser may know us by another."""
        return self.href(url.removeprefix(self.rt.settings.base_url.rstrip("/")))

    def show(self, template: str, *, http_status: int = 200, **values: Any) -> Answer:
        """The page. `problem` among the values is shown as what went wrong.

        Every template has besides: `visit`, `navigation`, `href(path)`, `asset(name)` and `vendored(package, name)` for
        scripts and styles, `when(stamp)` for a time, `zone_name`.
        """
        shared = {
            "visit": self,
            "navigation": MENU,
            "href": self.href,
            "asset": lambda name: self.root + files.static_url(name),
            "vendored": lambda package, name: self.root + files.vendored_url(package, name),
            "when": self._when,
            "zone_name": times.zone_name(self.zone),
            "problem": None,
        }
        body = rendering.render(template, {**shared, **values})
        return rendering.answer(self.request, http_status, body, tuple(self.headers))

    def go(self, path: str, *, status: str | None = None, alert: str | None = None) -> Answer:
        """After an action: to the page of ours that tells what it came to."""
        headers: list[Header] = [*self.headers, (b"location", self.href(path).encode("utf-8", "surrogatepass"))]
        if alert is not None:
            headers.append(self._notice_header("alert", alert))
        elif status is not None:
            headers.append(self._notice_header("status", status))
        return Answer(303, b"", tuple(headers), pages.HTML)

    def written(self, text: str) -> str:
        """Return a stamp as a time in the browser's zone, for a sentence."""
        return times.written(parse(text), self.zone)

    def _when(self, text: str | None, absent: str = "–", *, seconds: bool = False) -> Markup:
        return times.element(text, self.zone, self.now, absent=absent, seconds=seconds)

    def _notice_header(self, kind: NoticeKind, text: str) -> Header:
        return security.put_cookie(
            self.request, "notice", security.pack_notice(Notice(kind, text), self._secret), NOTICE_SECONDS
        )


# MERGED from web/dashboard/page.py: `page`: what happens to every request to the dashboard before its handler.

MAX_RETURN_ADDRESS_LETTERS = 2000
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
        visit = await read_visit(request)
        if self.signed_in and visit.session is None:
            if not request.has_body:
                return _redirect_to_sign_in(visit)
            # Without a session no form is read, however large it is.
            await RequestStream(request).leave(_redirect_to_sign_in(visit))
            return None
        if self.streams and request.method == "POST":
            visit.check_origin()  # refused as a problem, which scripts can read and browsers show
        try:
            if request.method != "POST":
                await request.finish()
            elif not self.streams:
                visit.form = await _read_form(request)
                visit.check_form(visit.form.text(security.CSRF_FIELD) or _token_header(request))
            with act_as(DASHBOARD), commands.in_dashboard():
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


def no_such_page() -> NotFound:
    """For an id in an address that leads to nothing."""
    return NotFound("This page no longer exists. Use the menu to continue.")


async def missing(request: Request, error: NotFound) -> Answer:
    """Return the page for an address that leads nowhere. The menu is on it only for the owner."""
    return refusal(await read_visit(request), error)


def check_header(visit: Visit) -> None:
    """The token of a request that a script of ours sends. Raises Forbidden."""
    visit.check_form(_token_header(visit.request))


async def read_visit(request: Request) -> Visit:
    """Who asks, whatever the address."""
    values = security.read_cookies(request)
    rt = request.state.rt
    session = None
    token = values.get(security.cookie_name(request, "session"))
    if token:
        session = sign_in.find_session(rt, rt.reader, token)
    if session is not None:
        request.most_body_bytes = MAX_BODY_BYTES
    visitor = values.get(security.cookie_name(request, "visitor"), "")
    fresh = session is None and not visitor
    if fresh:
        visitor = secrets.token_urlsafe(32)
    visit = Visit(request, values, session, visitor)
    if fresh:
        visit.headers.append(security.put_cookie(request, "visitor", visitor))
    if session is not None and sign_in.is_note_due(rt, session):
        await rt.write_soon(sign_in.note_use, session.id, request.client_address)
        visit.headers += session_cookies(request, session)
    return visit


def session_cookies(request: Request, session: BrowserSession) -> tuple[Header, Header]:
    """Return the cookie of this session, which lasts as long as the session may be unused, and that of its browser."""
    lifetime = int(request.state.rt.settings.dashboard.session_lifetime.total_seconds())
    return security.put_cookie(request, "session", session.token, lifetime), security.known_browser_cookie(request)


def _redirect_to_sign_in(visit: Visit) -> Answer:
    if visit.is_fragment:
        # A page that refreshes itself: the whole of it has to be loaded anew.
        visit.headers.append((b"hx-redirect", visit.href("/login").encode()))
        return Answer(401, b"", tuple(visit.headers))
    if not sign_in.is_password_set(visit.rt.reader):
        return set_a_password_first(visit)
    back = visit.address if visit.request.method in ("GET", "HEAD") else "/"
    if len(back) > MAX_RETURN_ADDRESS_LETTERS:
        back = "/"
    return visit.go("/login" if back == "/" else f"/login?next={quote(back, safe='/')}")


async def _read_form(request: Request) -> Form:
    body = await request.read()
    if request.content_type not in (forms.URLENCODED, b""):
        raise UnsupportedMediaType("A form of the dashboard is sent as a browser sends it.")
    return Form.read(body)


def _token_header(request: Request) -> str:
    return request.headers.get(security.CSRF_HEADER, b"").decode("latin-1")


def set_a_password_first(visit: Visit) -> Answer:
    """Show how the first password is set. Anyone may see this page."""
    with commands.in_public():
        return visit.show("no_password.html")


# MERGED from web/dashboard/pictures.py: Pictures of the dashboard's own, as pages load them: thumbnails and the ac

IMAGE_CACHE_SECONDS = 7 * 86400
"""In the browser: a picture's address changes with its bytes."""
IMAGE_HEADERS = (
    (b"cache-control", b"private, max-age=%d, immutable" % IMAGE_CACHE_SECONDS),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
)


def show_image(visit: Visit, jpeg: bytes) -> Answer:
    """The picture, harmless also where it is opened by itself."""
    return Answer(200, jpeg, (*visit.headers, *IMAGE_HEADERS), b"image/jpeg")
