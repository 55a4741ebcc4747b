"""One request to the dashboard and its page.

`page` checks the session and the form token before it calls the handler, and shows errors as a page. The handler
returns `visit.show(template, …)` for a page, or `visit.go(address, status=…)` after an action.

A page does not load from other hosts and does not contain inline scripts, so a script in a text of a user cannot run.
No cache stores a page.
"""

import gzip
import io
import re
import secrets
from collections.abc import Awaitable, Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import BrowserSession
from socialpub.core import commands, units
from socialpub.core.actor import DASHBOARD, act_as
from socialpub.core.clock import parse
from socialpub.core.errors import NotFound, OperatorError, PayloadTooLarge, SocialpubError, UnsupportedMediaType
from socialpub.db import appliance_state
from socialpub.providers.registry import LABELS
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import forms, security, times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.security import Notice
from socialpub.web.http import files, problems
from socialpub.web.http.answer import Answer, Header, accepts_gzip
from socialpub.web.http.request import MAX_BODY_BYTES, Request
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
"""The refresh interval while a post is in progress."""
REFRESH_LATER_SECONDS = 30
"""The refresh interval while a post waits for its time."""

NOTICE_SECONDS = 60

IMAGE_CACHE_SECONDS = 7 * 86400
"""The URL of an image changes with the content of the image."""
IMAGE_HEADERS = (
    (b"cache-control", b"private, max-age=%d, immutable" % IMAGE_CACHE_SECONDS),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
)


class MenuItem(NamedTuple):
    path: str
    label: str
    also: str = ""

    def holds(self, path: str) -> bool:
        return path in (self.path, self.also) or (self.path != "/" and path.startswith(f"{self.path}/"))


MENU = (
    MenuItem("/", "Overview"),
    MenuItem("/compose", "Compose"),
    MenuItem("/posts", "Posts"),
    MenuItem("/calendar", "Calendar"),
    MenuItem("/profiles", "Profiles"),
    MenuItem("/keys", "Keys"),
    MenuItem("/log", "Log", also="/audit"),
    MenuItem("/system", "System"),
)


class Visit:
    """`session` is None on pages that need no sign-in (`/login`, `/setup`)."""

    def __init__(
        self, request: Request, cookie_values: dict[str, str], session: BrowserSession | None, visitor: str
    ) -> None:
        self.request = request
        self.rt: Runtime = request.state.rt
        self.session = session
        self.form = Form()
        self.query = Form.read(request.query_string)
        self.path, self.params = request.path, request.path_params
        self.root = request.relative_root
        self.zone = times.find_zone(cookie_values.get(security.ZONE_COOKIE, "").replace("%2F", "/"))
        self.now = self.rt.now()
        self.headers: list[Header] = []
        self._cookie_values = cookie_values
        self._secret = session.token if session is not None else visitor

    @property
    def restored_from(self) -> str | None:
        """The time of the backup of a restored, paused installation. The overview and System have their own message."""
        if self.session is None or self.path in ("/", "/system"):
            return None
        return appliance_state.restored_from(self.rt.reader)

    @property
    def is_fragment(self) -> bool:
        """Whether htmx requests a part of the page."""
        return b"hx-request" in self.request.headers

    def check_form(self, token: str = "") -> None:
        """Raise Forbidden unless the token belongs to this browser. Scripts send the token in a header."""
        header = self.request.headers.get(security.CSRF_HEADER, b"").decode("latin-1")
        security.check_token(self.request, self._secret, token or header)

    @cached_property
    def notice(self) -> Notice | None:
        """The result of the last action. Reading the notice removes it from the next page."""
        value = self._cookie_values.get(security.cookie_name(self.request, "notice"))
        if not value:
            return None
        self.headers.append(security.drop_cookie(self.request, "notice"))
        return security.unpack_notice(value, self._secret)

    @property
    def form_token(self) -> str:
        return security.form_token(self._secret)

    def href(self, path: str) -> str:
        """Return a URL of the appliance (`/posts/…`) relative to this page."""
        return self.root + path.removeprefix("/")

    def own_href(self, url: str) -> str:
        """Return a URL below base_url relative to this page. The browser may use another host."""
        return self.href(url.removeprefix(self.rt.settings.base_url.rstrip("/")))

    def show(self, template: str, *, http_status: int = 200, **values: Any) -> Answer:
        """Render a page. `problem` is the error that the page shows.

        Each template also has `visit`, `navigation`, `href(path)`, `asset(name)`, `vendored(package, name)`,
        `when(stamp)`, `zone_name`, `commands`, `networks` (of this appliance, with their labels), `labels` (of all
        networks) and `words` (`labels.py`).
        """
        shared = {
            "visit": self,
            "navigation": MENU,
            "href": self.href,
            "asset": lambda name: self.root + files.static_url(name),
            "vendored": lambda package, name: self.root + files.vendored_url(package, name),
            "when": self._when,
            "zone_name": times.zone_name(self.zone),
            "networks": {name: provider.label for name, provider in self.rt.providers.items()},
            "problem": None,
        }
        body = _environment().get_template(template).render({**shared, **values}).encode()
        headers = (*self.headers, *HEADERS)
        if len(body) > SMALL_BYTES and accepts_gzip(self.request.headers.get(b"accept-encoding")):
            body, headers = _compress(body), (*headers, (b"content-encoding", b"gzip"))
        return Answer(http_status, body, headers, pages.HTML)

    def show_failure(self, error: SocialpubError) -> Answer:
        if error.retry_after_seconds is not None:
            self.headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
        return self.show("failure.html", http_status=error.status, title=error.title, detail=error.detail)

    def show_image(self, jpeg: bytes) -> Answer:
        return Answer(200, jpeg, (*self.headers, *IMAGE_HEADERS), b"image/jpeg")

    async def start_file(self, name: str, content_type: bytes, size_bytes: int | None = None) -> None:
        """Start a response that the browser saves as a file. The handler sends the content."""
        headers: list[Header] = [
            *self.headers,
            (b"content-type", content_type),
            (b"content-disposition", f'attachment; filename="{name}"'.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]
        if size_bytes is not None:
            headers.append((b"content-length", b"%d" % size_bytes))
        await self.request.start(200, tuple(headers))

    def go(self, path: str, *, status: str | None = None, alert: str | None = None) -> Answer:
        """Redirect to a page that shows the result of the action."""
        headers: list[Header] = [*self.headers, (b"location", self.href(path).encode("utf-8", "surrogatepass"))]
        text = status if alert is None else alert
        if text is not None:
            notice = security.pack_notice(Notice("status" if alert is None else "alert", text), self._secret)
            headers.append(security.put_cookie(self.request, "notice", notice, NOTICE_SECONDS))
        return Answer(303, b"", tuple(headers), pages.HTML)

    def reload(self, path: str, http_status: int = 200) -> Answer:
        """Make a page that refreshes a part of itself load this URL."""
        return Answer(http_status, b"", (*self.headers, (b"hx-redirect", self.href(path).encode())))

    def sign_in(self, session: BrowserSession) -> None:
        self.session, self._secret = session, session.token
        self.renew_cookies(session)

    def renew_cookies(self, session: BrowserSession) -> None:
        lifetime = int(self.rt.settings.dashboard.session_lifetime.total_seconds())
        self.headers.append(security.put_cookie(self.request, "session", session.token, lifetime))
        self.headers.append(security.known_browser_cookie(self.request))

    def written(self, text: str) -> str:
        return times.format_time(parse(text), self.zone)

    def _when(self, text: str | None, absent: str = "–", *, seconds: bool = False) -> Markup:
        return times.time_element(text, self.zone, self.now, absent=absent, seconds=seconds)


PageHandler = Callable[[Runtime, Visit], Awaitable[Answer | None]]


class Page:
    def __init__(self, handler: PageHandler, *, signed_in: bool, streams: bool) -> None:
        self.handler = handler
        self.signed_in = signed_in
        self.streams = streams

    async def __call__(self, request: Request) -> Answer | None:
        visit = await read_visit(request)
        if self.signed_in and visit.session is None:
            if not request.has_body:
                return _redirect_to_sign_in(visit)
            # Without a session, the form is not read.
            await problems.answer_and_close(request, _redirect_to_sign_in(visit))
            return None
        if self.streams and request.method == "POST":
            security.check_origin(request)  # answered as a problem, which scripts can read
        try:
            if request.method != "POST":
                await request.finish()
            elif not self.streams:
                visit.form = await _read_form(request)
                visit.check_form(visit.form.text(security.CSRF_FIELD))
            with act_as(DASHBOARD), commands.in_dashboard():
                return await self.handler(request.state.rt, visit)
        except SocialpubError as error:
            if error.status >= 500:
                raise
            if isinstance(error, PayloadTooLarge) and not request.is_whole:
                await problems.answer_and_close(request, visit.show_failure(error))
                return None
            return visit.show_failure(error)
        except OperatorError as error:
            return visit.show("failure.html", http_status=409, title="The action failed", detail=error.sentence)


def page(*, signed_in: bool = True, streams: bool = False) -> Callable[[PageHandler], Page]:
    """Make `async def name(rt, visit) -> Answer` a page or an action.

    With `signed_in=False`, everyone can open the page, and `visit.session` may be None. With `streams`, the handler
    reads the body and calls `visit.check_form` with its token.
    """
    return lambda handler: Page(handler, signed_in=signed_in, streams=streams)


def no_such_page() -> NotFound:
    return NotFound("This page no longer exists. Use the menu to continue.")


async def missing(request: Request, error: NotFound) -> Answer:
    """Return the page for an unknown URL. Only the owner sees the menu."""
    return (await read_visit(request)).show_failure(error)


def set_a_password_first(visit: Visit) -> Answer:
    with commands.in_public():
        return visit.show("no_password.html")


async def read_visit(request: Request) -> Visit:
    values = security.read_cookies(request)
    rt = request.state.rt
    token = values.get(security.cookie_name(request, "session"))
    session = sign_in.find_session(rt, rt.reader, token) if token else None
    visitor = values.get(security.cookie_name(request, "visitor"), "")
    if session is not None:
        request.max_body_bytes = MAX_BODY_BYTES
        visit = Visit(request, values, session, visitor)
        if sign_in.is_use_due(rt, session):
            await rt.write_soon(sign_in.record_use, session.id, request.client_address)
            visit.renew_cookies(session)
        return visit
    if visitor:
        return Visit(request, values, None, visitor)
    visitor = secrets.token_urlsafe(32)
    visit = Visit(request, values, None, visitor)
    visit.headers.append(security.put_cookie(request, "visitor", visitor))
    return visit


def _redirect_to_sign_in(visit: Visit) -> Answer:
    if visit.is_fragment:
        return visit.reload("/login", 401)
    if not sign_in.is_password_set(visit.rt.reader):
        return set_a_password_first(visit)
    query = visit.request.query_string.decode("latin-1")
    address = f"{visit.path}?{query}" if query else visit.path
    back = forms.local_path(address, "/") if visit.request.method in ("GET", "HEAD") else "/"
    return visit.go("/login" if back == "/" else f"/login?next={quote(back, safe='/')}")


async def _read_form(request: Request) -> Form:
    body = await request.read()
    if request.content_type not in (forms.URLENCODED, b""):
        raise UnsupportedMediaType("The dashboard accepts only forms that a browser submits.")
    return Form.read(body)


def _compress(body: bytes) -> bytes:
    """Compress with a file name of random length, so that the length of a page reveals nothing about its secrets."""
    packed = io.BytesIO()
    with gzip.GzipFile("x" * (1 + secrets.randbelow(64)), "wb", 5, packed, mtime=0) as stream:
        stream.write(body)
    return packed.getvalue()


def _code(text: str) -> Markup:
    """Return the text with commands in backticks as code. A stored message may add a command to its button."""
    plain, code = Markup("%s"), Markup("<code>%s</code>")
    parts = re.sub(", or run `[^`]*`", "", text).split("`")
    whole = len(parts) % 2 == 1
    return Markup("").join(
        (code if index % 2 else plain) % part for index, part in enumerate(parts if whole else [text])
    )


@cache
def _environment() -> "Environment":
    # Imported here, because jinja2 needs memory and many appliances never show a page.
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
