"""The dashboard: how long the server takes for each page, with few posts and with many, and what a page weighs."""

import gzip
import http.client
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode, urljoin, urlsplit

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import Purpose
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive
from tests.bench.servers import MeasuredAppliance

PASSWORD = "correct horse battery"
MOST_MS = 50
FIRST_KB, LATER_KB = 150, 20
SECONDS = 0.7


def measure(appliances: Mapping[int, MeasuredAppliance]) -> list[Figure]:
    """Each page and the sign-in: median milliseconds of one request after the other, in the largest appliance beside
    the smallest; and the bytes that a browser fetches for a page at first, and later."""
    few, many = min(appliances), max(appliances)
    visitors = {count: Visitor(appliance) for count, appliance in appliances.items()}
    found = []
    for (name, path), path_of_few in zip(pages(appliances[many]).items(), pages(appliances[few]).values(), strict=True):
        large, small = visitors[many].milliseconds(path), visitors[few].milliseconds(path_of_few)
        beside = f"{small:.1f} ms with {few:,}"
        line = f"page {name}, {many:,} posts"
        found.append(figures.at_most(line, f"{large:.1f} ms", beside, large, MOST_MS, " ms"))
    entering = visitors[many].milliseconds_to_sign_in()
    found.append(figures.at_most("signing in", f"{entering:.1f} ms", "", entering, MOST_MS, " ms"))
    weights = {name: visitors[many].weigh(path) for name, path in pages(appliances[many]).items()}
    for what, at, most in (("first", 0, FIRST_KB), ("later", 1, LATER_KB)):
        name, kb = max(((name, weight[at] / 1000) for name, weight in weights.items()), key=lambda one: one[1])
        found.append(figures.at_most(f"heaviest page, {what} time: {name}", f"{kb:.1f} kB", "", kb, most, " kB"))
    return found


def pages(appliance: MeasuredAppliance) -> dict[str, str]:
    """The address of each page, by what the table calls it; the list also in what is asked of it most dearly."""
    reader = appliance.rt.reader
    post = reader.value("SELECT id FROM post ORDER BY created_at DESC LIMIT 1")
    profile = reader.value("SELECT id FROM profile LIMIT 1")
    day = str(reader.value("SELECT max(created_at) FROM post"))
    plain = ("/compose", "/posts", "/profiles", "/keys", "/log", "/audit", "/system")
    return {
        "/": "/",
        **{path: path for path in plain},
        "/posts, a common word": "/posts?search=post",
        "/posts, a word nowhere": "/posts?search=nowhere-to-be-found",
        "/posts, failed ones": "/posts?deliveryStatus=failed",
        "/posts, of a profile": f"/posts?profileIds={profile}",
        "/posts/{id}": f"/posts/{post}",
        "/profiles/{id}": f"/profiles/{profile}",
        "/calendar": f"/calendar?month={day[:7]}",
    }


class Visitor:
    """A browser that is signed in."""

    def __init__(self, appliance: MeasuredAppliance) -> None:
        self.url = appliance.url
        rt = appliance.rt
        rt.write(sign_in.set_password, sign_in.hash_password(PASSWORD, PASSWORD))
        reply = self.ask(f"/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}", {})
        self.cookie = _cookie(reply, "session")

    def milliseconds(self, path: str) -> float:
        request = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nAccept: text/html\r\n"
        request += f"Accept-Encoding: gzip\r\nCookie: {self.cookie}\r\n\r\n"
        return _median(self.url, request)

    def milliseconds_to_sign_in(self) -> float:
        reply = self.ask("/login", {})
        token = re.search(r'name="csrf" value="([^"]+)"', reply.text)
        assert token is not None
        body = urlencode({"csrf": token[1], "password": PASSWORD}, quote_via=quote)
        head = f"POST /login HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\nCookie: {_cookie(reply, 'visitor')}"
        head += f"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        return _median(self.url, head + body, expected=303)

    def weigh(self, path: str) -> tuple[int, int]:
        """Bytes of a page with everything that it loads, and of the page alone."""
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
    """One answer. `size` is what came over the wire."""

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


def _median(url: str, request: str, expected: int = 200) -> float:
    drive(url, [request], seconds=SECONDS / 4, connections=1, expected=expected)
    return float(drive(url, [request], seconds=SECONDS, connections=1, expected=expected)["median_ms"])
