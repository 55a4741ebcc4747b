"""One request to the dashboard and its page.

`page` checks the session and the form token before it calls the handler, and shows errors as a page. The handler
returns `visit.show(template, …)` for a page, or `visit.go(address, status=…)` after an action.

A page does not load from other hosts and does not contain inline scripts, so a script in a text of a user cannot run.
No cache stores a page.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import cache, cached_property, wraps
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import BrowserSession
from socialpub.core import commands, units
from socialpub.core.actor import DASHBOARD, act_as
from socialpub.core.clock import parse
from socialpub.core.errors import NotFound, OperatorError, SocialpubError, UnsupportedMediaType
from socialpub.db import appliance_state
from socialpub.providers.registry import LABELS
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import forms, security, times
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.security import Header, Notice
from socialpub.web.http import client_address, limits, static
from socialpub.web.http.endpoint import content_type
from socialpub.web.http.limits import MAX_BODY_BYTES
from socialpub.web.http.responses import HTML, relative_root

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "Accept, Cookie",
}

REFRESH_SOON_SECONDS = 3
"""The refresh interval while a post is in progress."""
REFRESH_LATER_SECONDS = 30
"""The refresh interval while a post waits for its time."""

NOTICE_SECONDS = 60

IMAGE_CACHE_SECONDS = 7 * 86400
"""The URL of an image changes with the content of the image."""
IMAGE_HEADERS = {
    "cache-control": f"private, max-age={IMAGE_CACHE_SECONDS}, immutable",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
}


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
        self.rt: Runtime = request.app.state.rt
        self.session = session
        self.form = Form()
        self.query = Form.read(request.scope["query_string"])
        self.path: str = request.scope["path"]
        self.params = request.path_params
        self.root = relative_root(request)
        self.zone = times.find_zone(cookie_values.get(security.ZONE_COOKIE, "").replace("%2F", "/"))
        self.now: datetime = self.rt.now()
        self.headers: list[Header] = []
        self._cookie_values = cookie_values
        self._secret = session.token if session is not None else visitor

    @property
    def restored_from(self) -> str | None:
        """The time of the backup of a restored, paused installation. The overview and System have their own message."""
        if self.session is None or self.path in ("/", "/system"):
            return None
        return appliance_state.restored_from(self.rt.db)

    @property
    def is_fragment(self) -> bool:
        """Whether htmx requests a part of the page."""
        return "hx-request" in self.request.headers

    def check_form(self, token: str = "") -> None:
        """Raise Forbidden unless the token belongs to this browser. Scripts send the token in a header."""
        header = self.request.headers.get(security.CSRF_HEADER, "")
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

    def show(self, template: str, *, http_status: int = 200, **values: Any) -> Response:
        """Render a page. `problem` is the error that the page shows.

        Each template also has `visit`, `navigation`, `href(path)`, `asset(name)`, `vendored(package, name)`,
        `when(stamp)`, `zone_name`, `commands`, `networks` (of this appliance, with their labels), `labels` (of all
        networks) and `words` (`labels.py`).
        """
        shared = {
            "visit": self,
            "navigation": MENU,
            "href": self.href,
            "asset": lambda name: self.root + static.static_url(name),
            "vendored": lambda package, name: self.root + static.vendored_url(package, name),
            "when": self._when,
            "zone_name": times.zone_name(self.zone),
            "networks": {name: provider.label for name, provider in self.rt.providers.items()},
            "problem": None,
        }
        body = _environment().get_template(template).render({**shared, **values})
        return self.with_headers(Response(body, http_status, HEADERS, HTML))

    def show_failure(self, error: SocialpubError) -> Response:
        if error.retry_after_seconds is not None:
            self.headers.append(("retry-after", f"{error.retry_after_seconds}"))
        return self.show("failure.html", http_status=error.status, title=error.title, detail=error.detail)

    def show_image(self, jpeg: bytes) -> Response:
        return self.with_headers(Response(jpeg, headers=IMAGE_HEADERS, media_type="image/jpeg"))

    def download(self, name: str, media_type: str, pieces: Iterable[bytes], size_bytes: int | None = None) -> Response:
        """Return a response that the browser saves as a file."""
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        }
        if size_bytes is not None:
            headers["content-length"] = f"{size_bytes}"
        return self.with_headers(StreamingResponse(pieces, headers=headers, media_type=media_type))

    def go(self, path: str, *, status: str | None = None, alert: str | None = None) -> Response:
        """Redirect to a page that shows the result of the action."""
        text = status if alert is None else alert
        if text is not None:
            notice = security.pack_notice(Notice("status" if alert is None else "alert", text), self._secret)
            self.headers.append(security.put_cookie(self.request, "notice", notice, NOTICE_SECONDS))
        return self.with_headers(RedirectResponse(self.href(path), 303))

    def reload(self, path: str, http_status: int = 200) -> Response:
        """Make a page that refreshes a part of itself load this URL."""
        return self.with_headers(Response(status_code=http_status, headers={"hx-redirect": self.href(path)}))

    def with_headers(self, response: Response) -> Response:
        """Add the cookies and other headers of this visit."""
        for name, value in self.headers:
            response.headers.append(name, value)
        return response

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


PageHandler = Callable[[Runtime, Visit], Awaitable[Response]]


def page(
    *, signed_in: bool = True, streams: bool = False
) -> Callable[[PageHandler], Callable[[Request], Awaitable[Response]]]:
    """Make `async def name(rt, visit) -> Response` a page or an action.

    With `signed_in=False`, everyone can open the page, and `visit.session` may be None. With `streams`, the handler
    reads the body and calls `visit.check_form` with its token.
    """

    def decorate(handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
        @wraps(handler)
        async def respond(request: Request) -> Response:
            visit = await read_visit(request)
            if signed_in and visit.session is None:
                return _redirect_to_sign_in(visit)  # the form is not read
            if streams and request.method == "POST":
                security.check_origin(request)  # answered as a problem, which scripts can read
            try:
                if request.method != "POST":
                    await limits.discard(request)
                elif not streams:
                    visit.form = await _read_form(request)
                    visit.check_form(visit.form.text(security.CSRF_FIELD))
                with act_as(DASHBOARD), commands.in_dashboard():
                    return await handler(visit.rt, visit)
            except SocialpubError as error:
                if error.status >= 500:
                    raise
                return visit.show_failure(error)
            except OperatorError as error:
                return visit.show("failure.html", http_status=409, title="The action failed", detail=error.sentence)

        return respond

    return decorate


def no_such_page() -> NotFound:
    return NotFound("This page no longer exists. Use the menu to continue.")


async def missing(request: Request, error: NotFound) -> Response:
    """Return the page for an unknown URL. Only the owner sees the menu."""
    return (await read_visit(request)).show_failure(error)


def set_a_password_first(visit: Visit) -> Response:
    with commands.in_public():
        return visit.show("no_password.html")


async def read_visit(request: Request) -> Visit:
    values = security.read_cookies(request)
    rt: Runtime = request.app.state.rt
    token = values.get(security.cookie_name(request, "session"))
    session = sign_in.find_session(rt, rt.db, token) if token else None
    visitor = values.get(security.cookie_name(request, "visitor"), "")
    if session is not None:
        request.state.body_limits.max_bytes = MAX_BODY_BYTES
        visit = Visit(request, values, session, visitor)
        if sign_in.is_use_due(rt, session):
            await rt.write_soon(sign_in.record_use, session.id, client_address.of_request(request))
            visit.renew_cookies(session)
        return visit
    if visitor:
        return Visit(request, values, None, visitor)
    visitor = secrets.token_urlsafe(32)
    visit = Visit(request, values, None, visitor)
    visit.headers.append(security.put_cookie(request, "visitor", visitor))
    return visit


def _redirect_to_sign_in(visit: Visit) -> Response:
    if visit.is_fragment:
        return visit.reload("/login", 401)
    if not sign_in.is_password_set(visit.rt.db):
        return set_a_password_first(visit)
    query = visit.request.scope["query_string"].decode("latin-1")
    address = f"{visit.path}?{query}" if query else visit.path
    back = forms.local_path(address, "/") if visit.request.method in ("GET", "HEAD") else "/"
    return visit.go("/login" if back == "/" else f"/login?next={quote(back, safe='/')}")


async def _read_form(request: Request) -> Form:
    body = await request.body()
    if content_type(request) not in (forms.URLENCODED, ""):
        raise UnsupportedMediaType("The dashboard accepts only forms that a browser submits.")
    return Form.read(body)


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
