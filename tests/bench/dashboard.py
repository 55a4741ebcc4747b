"""The dashboard: how long the server takes for each page, and the bytes of a page."""

import gzip
import http.client
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode, urljoin, urlsplit

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import Purpose
from tests.bench.figures import Figure
from tests.bench.load import median_ms
from tests.bench.reading import Appliances, latency
from tests.bench.servers import MeasuredAppliance
from tests.bench.turns import Turns
from tests.support.select import select_value

PASSWORD = "correct horse battery"
PAGE_MS, SIGN_IN_MS = 20, 50
FIRST_KB, LATER_KB = 150, 20


def measure(appliances: Appliances, turns: Turns, count: int) -> list[Figure]:
    """Measure each page and the sign-in, one request after the other, and the bytes that a browser fetches."""
    few, many = min(appliances), max(appliances)
    visitors = {size: Visitor(appliances[size]) for size in {few, many}}
    paths = {size: pages(appliances[size]) for size in visitors}
    found = []
    for name in paths[many]:

        def median(size: int, name: str = name) -> float:
            return visitors[size].milliseconds(paths[size][name], count)

        found.append(latency(turns, appliances, f"page {name}", median, PAGE_MS))
    entering = turns.once(lambda: visitors[many].milliseconds_to_sign_in(count))
    found.append(Figure("signing in", entering, "ms", most=SIGN_IN_MS))
    weights = {name: visitors[many].weigh(path) for name, path in paths[many].items()}
    for what, at, most in (("first", 0, FIRST_KB), ("later", 1, LATER_KB)):
        heaviest = max(weight[at] for weight in weights.values()) / 1000
        found.append(Figure(f"heaviest page, {what} time", heaviest, "kB", most=most))
    return found


def pages(appliance: MeasuredAppliance) -> dict[str, str]:
    """Return the address of each page, by its name in the table. Lists appear with their most expensive filters."""
    reader = appliance.rt.db
    post = select_value(reader, "SELECT id FROM post ORDER BY created_at DESC LIMIT 1")
    profile = appliance.profiles[3]
    first, middle = (
        select_value(reader, "SELECT created_at FROM post ORDER BY created_at LIMIT 1 OFFSET ?", (at,))[:10]
        for at in (0, select_value(reader, "SELECT count(*) FROM post") // 2)
    )
    plain = ("/compose", "/posts", "/profiles", "/keys", "/log", "/audit", "/system")
    return {
        "/": "/",
        **{path: path for path in plain},
        "/posts, a common word": "/posts?search=post",
        "/posts, a word nowhere": "/posts?search=nowhere-to-be-found",
        "/posts, failed": "/posts?deliveryStatus=failed",
        "/posts, of a profile": f"/posts?profileIds={profile}",
        "/posts/{id}": f"/posts/{post}",
        "/profiles/{id}": f"/profiles/{profile}",
        "/calendar": f"/calendar?month={middle[:7]}",
        "/log, all entries": "/log?type=all",
        "/log, one day": f"/log?from={middle}&to={middle}",
        "/log, window over everything": f"/log?from={first}&to={middle}&type=all",
        "/log, failed in a window": f"/log?from={first}&to={middle}&type=failed",
        "/log, one network in a window": f"/log?from={first}&to={middle}&network=tiktok",
        "/log, one profile": f"/log?profile={profile}",
        "/log, a message": "/log?search=nowhere-to-be-found",
    }


class Visitor:
    """A browser that is signed in."""

    def __init__(self, appliance: MeasuredAppliance) -> None:
        self.url = appliance.url
        rt = appliance.rt
        rt.write(sign_in.set_password, sign_in.hash_password(PASSWORD, PASSWORD))
        reply = self.ask(f"/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}", {})
        self.cookie = _cookie(reply, "session")

    def milliseconds(self, path: str, count: int) -> float:
        request = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nAccept: text/html\r\n"
        request += f"Accept-Encoding: gzip\r\nCookie: {self.cookie}\r\n\r\n"
        return median_ms(self.url, request, count)

    def milliseconds_to_sign_in(self, count: int) -> float:
        reply = self.ask("/login", {})
        token = re.search(r'name="csrf" value="([^"]+)"', reply.text)
        assert token is not None
        body = urlencode({"csrf": token[1], "password": PASSWORD}, quote_via=quote)
        head = f"POST /login HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nCookie: {_cookie(reply, 'visitor')}"
        head += f"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        return median_ms(self.url, head + body, count, 303)

    def weigh(self, path: str) -> tuple[int, int]:
        """Return the bytes of a page with everything that it loads, and of the page alone."""
        page = self.ask(path, {"cookie": self.cookie})
        linked = re.findall(r'(?:src|href)="([^"]*static/[^"]+)"', page.text)
        others = sum(self.ask(urlsplit(urljoin(self.url + path, one)).path, {}).size for one in set(linked))
        return page.size + others, page.size

    def ask(self, path: str, headers: Mapping[str, str]) -> "Fetched":
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
        connection.request("GET", path, headers={"accept": "text/html", "accept-encoding": "gzip", **headers})
        fetched = Fetched(connection.getresponse())
        connection.close()
        return fetched


class Fetched:
    """One response. `size` is its length on the wire."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        body = response.read()
        if response.status >= 400:
            raise SystemExit(f"A page of the dashboard was answered with {response.status}: {body[:300]!r}")
        self.size = len(body)
        self.cookies = [value for name, value in response.getheaders() if name.lower() == "set-cookie"]
        packed = response.getheader("content-encoding") == "gzip"
        self.text = (gzip.decompress(body) if packed else body).decode("utf-8", "replace")


def _cookie(reply: Fetched, name: str) -> str:
    return next(one.partition(";")[0] for one in reply.cookies if name in one)
