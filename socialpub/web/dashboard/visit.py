"""One request to the dashboard: who asks, what they sent, and how they are answered.

A page's handler gets it beside the parts (`rt`), asks the domain, and returns `visit.show(template, …)` for a page or
`visit.go(address, status=…)` after an action.
"""

from functools import cached_property
from typing import Any

from markupsafe import Markup

from socialpub.accounts.browser_sessions import BrowserSession
from socialpub.core.clock import parse
from socialpub.db import appliance_state
from socialpub.runtime import Runtime
from socialpub.web import static_files
from socialpub.web.answer import Answer, Header
from socialpub.web.dashboard import cookies, forgery, notices, rendering, times
from socialpub.web.dashboard.forms import Form
from socialpub.web.dashboard.navigation import NAVIGATION
from socialpub.web.dashboard.notices import Kind, Notice
from socialpub.web.pages import pages
from socialpub.web.request import Request

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
        self.zone = times.zone_named(cookie_values.get(cookies.ZONE, "").replace("%2F", "/"))
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
        forgery.check(self.request, self._secret, token)

    def check_origin(self) -> None:
        """Raises Forbidden for a request that does not come from our own pages, before anything of it is read."""
        forgery.check_origin(self.request)

    def become(self, session: BrowserSession) -> None:
        """The browser is signed in from this answer on."""
        self.session, self._secret = session, session.token

    @cached_property
    def notice(self) -> Notice | None:
        """What the last action came to. Asking for it takes it off the next page."""
        value = self._cookie_values.get(cookies.name_of(self.request, "notice"))
        if not value:
            return None
        self.headers.append(cookies.drop(self.request, "notice"))
        return notices.unpack(value, self._secret)

    # --- what goes out -----------------------------------------------------------------------------------------------

    @property
    def form_token(self) -> str:
        """For the hidden field of a form; another one each time."""
        return forgery.token(self._secret)

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
            "navigation": NAVIGATION,
            "href": self.href,
            "asset": lambda name: self.root + static_files.url(name),
            "vendored": lambda package, name: self.root + static_files.vendored_url(package, name),
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

    def _notice_header(self, kind: Kind, text: str) -> Header:
        return cookies.put(self.request, "notice", notices.pack(Notice(kind, text), self._secret), NOTICE_SECONDS)
