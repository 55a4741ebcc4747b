"""The appliance behind the reverse proxies of the manual, under an address with a path."""

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.e2e.reverse_proxies import PAGE, PROXIES, ReverseProxy
from tests.samples import media
from tests.support.readme import blocks

LARGEST_BYTES = 157_286_400
PIECE = bytes(1024 * 1024)
WAIT_SECONDS = 60
"""The longest that a caller may ask for."""
FAILED_KEYS = 3
PASSWORD = "correct horse battery"


class Exposed(NamedTuple):
    """An appliance and the proxy through which its callers reach it."""

    proxy: ReverseProxy
    installation: Installation

    def caller(self, address: str | None = None) -> httpx2.Client:
        """Somebody with the installation's key; `address` is this machine's as the proxy sees it."""
        return httpx2.Client(
            transport=httpx2.HTTPTransport(verify=self.proxy.trust, local_address=address),
            headers={"authorization": f"Bearer {self.installation.key}"},
            timeout=120,
        )

    def url(self, path: str) -> str:
        return self.proxy.base_url + path

    def stored_bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.installation.data / "media").rglob("*") if file.is_file())


@pytest.fixture(scope="module", params=PROXIES)
def exposed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, prepared: Installation
) -> Iterator[Exposed]:
    """One appliance for all tests of a proxy: its start takes longer than most of them."""
    folder = tmp_path_factory.mktemp("proxy")
    with (
        closing(Installation(folder / "installation", pace=0)) as installation,
        PROXIES[request.param](folder, installation.url.rpartition(":")[2]) as proxy,
    ):
        installation.copy_from(prepared)
        installation.env |= {
            "SOCIALPUB_BASE_URL": proxy.base_url,
            "SOCIALPUB_RATE_LIMIT__FAILED_KEYS_PER_MINUTE": str(FAILED_KEYS),
        }
        installation.start("serve")
        yield Exposed(proxy, installation)


def reserve(web: httpx2.Client, exposed: Exposed, mime_type: str, size: int) -> dict[str, Any]:
    body = {"fileName": "file", "mimeType": mime_type, "fileSize": size}
    answer = web.post(exposed.url("/api/v1/uploads"), json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json()["data"])


def test_the_largest_upload_passes_as_it_comes(exposed: Exposed) -> None:
    before = exposed.stored_bytes()

    def pieces() -> Iterator[bytes]:
        yield PIECE
        until(lambda: exposed.stored_bytes() > before, "the first bytes are stored before the last are sent")
        for _ in range(LARGEST_BYTES // len(PIECE) - 1):
            yield PIECE

    with exposed.caller() as web:
        reserved = reserve(web, exposed, "video/mp4", LARGEST_BYTES)
        assert reserved["uploadUrl"].startswith(exposed.url("/storage/uploads/"))
        headers = {**reserved["requiredHeaders"], "content-length": str(LARGEST_BYTES)}
        answer = web.put(reserved["uploadUrl"], content=pieces(), headers=headers)
    assert answer.status_code == 200, answer.text


def test_media_is_read_in_ranges_and_waits_are_answered(exposed: Exposed, tmp_path: Path) -> None:
    picture = media.jpeg(tmp_path / "picture.jpg").read_bytes()
    payload = {
        "post": {"body": "Later", "scheduledAt": "2100-01-01T00:00:00Z"},
        "profiles": [exposed.installation.profile_on["x"]],
        "media": [{"fileField": "picture"}],
    }
    with exposed.caller() as web:
        accepted = web.post(
            exposed.url("/api/v1/posts"), files={"picture": picture}, data={"payload": json.dumps(payload)}
        )
        assert accepted.status_code == 201, accepted.text
        post = accepted.json()["data"]
        (shown,) = post["media"]
        assert shown["url"].startswith(exposed.url("/storage/media/"))
        assert web.get(shown["url"]).content == picture
        part = web.get(shown["url"], headers={"range": "bytes=10-29"})
        assert (part.status_code, part.content) == (206, picture[10:30])
        assert part.headers["content-range"] == f"bytes 10-29/{len(picture)}"
        waited = web.get(exposed.url(f"/api/v1/posts/{post['id']}"), params={"wait": 1})
        assert waited.json()["data"]["status"] == "scheduled"


def test_wrong_keys_are_counted_by_the_address_that_the_proxy_saw(exposed: Exposed) -> None:
    def statuses(address: str, times: int) -> list[int]:
        found = []
        with exposed.caller(address) as web:
            for number in range(times):
                # A caller cannot choose its own address.
                told = {"authorization": "Bearer spk_wrong", "x-forwarded-for": f"198.51.100.{number}"}
                found.append(web.get(exposed.url("/api/v1/posts"), headers=told).status_code)
        return found

    assert statuses("127.0.0.2", FAILED_KEYS + 1) == [401] * FAILED_KEYS + [429]
    assert statuses("127.0.0.3", 1) == [401], "somebody else"


def test_the_address_without_its_last_slash_leads_to_the_dashboard(exposed: Exposed) -> None:
    with exposed.caller() as browser:
        browser.headers = {"accept": "text/html"}
        answer = browser.get(exposed.url(""))
        assert answer.is_redirect
        assert urlsplit(answer.headers["location"]).path == "/social/"
        page = browser.get(exposed.url(""), follow_redirects=True)
    assert (page.status_code, page.url.path) in ((200, "/social/"), (200, "/social/login"))


def test_metrics_are_for_this_machine(exposed: Exposed) -> None:
    assert "socialpub_" in httpx2.get(f"{exposed.installation.url}/metrics", trust_env=False).text
    with exposed.caller() as web:
        for path in ("/metrics", "/metrics/", "/%6detrics", "/x/../metrics", "//metrics", "/metrics?x=1"):
            answer = web.get(exposed.url(path))
            assert (answer.status_code, "socialpub_" in answer.text) == (404, False), path


@pytest.mark.parametrize("exposed", ["nginx"], indirect=True)
def test_unfinished_bodies_of_one_address_use_up_its_own_connections_alone(exposed: Exposed) -> None:
    (sample,) = blocks(PAGE, "## nginx", "nginx")
    (most,) = re.findall(r"limit_conn socialpub (\d+);", sample)
    server = urlsplit(exposed.proxy.base_url)
    assert isinstance(exposed.proxy.trust, ssl.SSLContext)

    def status(address: str) -> int:
        with exposed.caller(address) as web:
            return web.get(exposed.url("/api/v1/posts")).status_code

    with contextlib.ExitStack() as stack:
        for _ in range(int(most)):
            one = socket.create_connection((server.hostname, server.port), source_address=("127.0.0.2", 0))
            one = stack.enter_context(exposed.proxy.trust.wrap_socket(one, server_hostname=server.hostname))
            one.sendall(b"POST /social/login HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\na")
        until(lambda: status("127.0.0.2") == 503, "the address has no connection left")
        assert status("127.0.0.3") == 200


def test_the_dashboard_is_entered_over_https_and_below_its_path(exposed: Exposed) -> None:
    exposed.installation.admin("set-password", stdin=f"{PASSWORD}\n")
    with exposed.caller() as browser:
        browser.headers = {"accept": "text/html"}
        browser.follow_redirects = True
        page = browser.get(exposed.url("/profiles?x=1"))
        assert (page.url.path, page.status_code) == ("/social/login", 200)
        form = {"password": PASSWORD, "csrf": re.findall(r'name="csrf" value="([^"]+)"', page.text)[0]}
        origin = exposed.proxy.base_url.removesuffix("/social")
        assert browser.post(page.url, data=form, headers={"origin": "https://evil.example"}).status_code == 403
        page = browser.post(page.url, data=form, headers={"origin": origin})
        assert (str(page.url), page.status_code) == (exposed.url("/profiles?x=1"), 200)
        given = [one for answer in page.history for one in answer.headers.get_list("set-cookie")]
        (cookie,) = [one for one in given if "_session" in one]
        assert cookie.startswith("__Host-") == origin.startswith("https") == ("Secure" in cookie)
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page.text):
            target = page.url.join(link)
            if "/api/" not in target.path:
                assert browser.get(target).status_code == 200, target
                assert target.path.startswith("/social/")


def test_the_read_timeout_of_nginx_exceeds_the_longest_wait() -> None:
    """The test does not wait a minute. Caddy has no read timeout."""
    (sample,) = blocks(PAGE, "## nginx", "nginx")
    patience = re.search(r"proxy_read_timeout (\d+)s;", sample)
    assert patience and int(patience[1]) > WAIT_SECONDS + 30
