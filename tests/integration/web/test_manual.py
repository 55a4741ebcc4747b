"""`/manual`: every topic is reachable without a session, and every link and image leads somewhere."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest

from socialpub.accounts import api_keys
from socialpub.core import manual
from socialpub.core.errors import ALL
from socialpub.core.settings.schema import DashboardSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller

BROWSER = {"accept": "text/html"}
BASE = "https://social.example/base"
"""The proxy removes the path, so links must work below it."""


@pytest.fixture(params=[True, False], ids=["dashboard", "api-only"])
def appliance_options(request: pytest.FixtureRequest, appliance_options: dict[str, Any]) -> dict[str, Any]:
    return {**appliance_options, "base_url": BASE, "dashboard": DashboardSection(enabled=request.param)}


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        yield caller


def load(caller: Caller, address: str) -> tuple[str, set[str]]:
    """Return a page below BASE and its anchors."""
    assert address.startswith(f"{BASE}/"), address
    reply = caller.ask("GET", address.removeprefix(BASE), headers=BROWSER)
    assert reply.status == 200, address
    page = reply.body.decode() if reply.headers["content-type"].startswith("text/") else ""
    return page, set(re.findall(r' id="([^"]+)"', page))


def links_in(page: str, address: str) -> set[str]:
    return {urljoin(address, link) for link in re.findall(r'(?:href|src)="([^"]+)"', page)}


def test_every_topic_is_reachable_and_every_link_leads_to_an_anchor(caller):
    start = f"{BASE}/manual"
    pages = {start: load(caller, start)}
    waiting = [start]
    while waiting:
        address = waiting.pop()
        for link in links_in(pages[address][0], address):
            target, _, anchor = link.partition("#")
            if not target.startswith(BASE):
                assert target.startswith("https://"), "another host is only linked, never loaded"
                continue
            if target not in pages:
                pages[target] = load(caller, target)
                waiting.append(target)
            assert not anchor or anchor in pages[target][1], link
    assert {f"{start}/{name}" for name in manual.list_topics()} <= pages.keys()


def test_a_page_loads_no_script_and_nothing_of_another_host(caller):
    reply = caller.ask("GET", "/manual/dashboard", headers=BROWSER)
    page = reply.body.decode()
    assert "<script" not in page
    assert re.findall(r'src="([^"]+)"', page)
    assert not [source for source in re.findall(r'src="([^"]+)"', page) if "://" in source]
    assert reply.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src")
    assert "script-src" not in reply.headers["content-security-policy"]
    assert "color-scheme: light dark" in page
    image = caller.ask("GET", "/manual/images/overview.png", headers=BROWSER)
    assert (image.status, image.headers["content-type"]) == (200, "image/png")
    assert len(image.body) < 150_000


def test_the_marks_of_generated_tables_are_not_shown(caller):
    for name in ("configure", "networks", "publishing"):
        page = caller.ask("GET", f"/manual/{name}", headers=BROWSER).body.decode()
        assert not re.search(r"(&lt;|<)!--", page)
        assert "<table>" in page


def test_an_unknown_topic_is_404_and_names_the_nearest(caller):
    for path in ("/manual/bakups", "/manual/images/nothing.png", "/manual/images/..%2findex.md"):
        assert caller.ask("GET", path).status == 404, path
    assert "Did you mean backups?" in caller.ask("GET", "/manual/bakups").json()["detail"]


def test_every_problem_page_leads_to_the_errors_in_the_manual(caller):
    for slug in (kind.slug for kind in ALL):
        address = f"{BASE}/problems/{slug}"
        (link,) = (one for one in links_in(load(caller, address)[0], address) if "/manual/" in one)
        target, _, anchor = link.partition("#")
        assert anchor in load(caller, target)[1]
