"""The address `/`, and addresses with a slash at the end."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.settings.schema import DashboardSection
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from socialpub.web.routes import API, DASHBOARD, PAGES
from tests.integration.uploads.caller import Caller
from tests.support.appliance import add_profile

BROWSER = {"accept": "text/html,application/xhtml+xml"}
BASE = "https://social.example/base"


@pytest.fixture
def appliance_options(appliance_options: dict[str, Any]) -> dict[str, Any]:
    return {**appliance_options, "base_url": BASE, "dashboard": DashboardSection(enabled=False)}


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        yield caller


def draft(profile: str) -> dict[str, Any]:
    return {"post": {"body": "Hello", "scheduledAt": "2100-01-01T00:00:00Z"}, "profiles": [profile]}


def test_the_root_links_to_the_public_pages_for_a_browser(caller):
    page = caller.ask("GET", "/", headers=BROWSER)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    links = re.findall(r'href="([^"]+)"', page.body.decode())
    assert f"{BASE}/api/v1/openapi-docs" in links
    assert f"{BASE}/readyz" in links
    for link in links:
        assert caller.ask("GET", link.removeprefix(BASE), headers=BROWSER).status in (200, 503), link


@pytest.mark.parametrize("path", ["/", "/problems/internal-error", "/manual", "/api/v1/openapi-docs?format=page"])
def test_every_public_page_marks_its_content(caller, path):
    assert caller.ask("GET", path, headers=BROWSER).body.count(b"<main") == 1


def test_the_root_links_to_the_public_addresses_for_a_script(caller):
    reply = caller.ask("GET", "/", headers={"accept": "*/*"})
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    shown = reply.json()
    assert shown.pop("name") == "socialpub"
    assert {"reference", "readiness"} <= shown.keys()
    assert json.loads(caller.ask("GET", shown["openapi"].removeprefix(BASE), headers=BROWSER).body)["openapi"]
    assert all(link.startswith(f"{BASE}/") for link in shown.values())


def test_a_slash_at_the_end_is_ignored_for_every_method(caller, rt):
    created = caller.post("/posts/", draft(add_profile(rt)))
    assert created.status == 201, created.body
    post = created.data["id"]
    assert caller.get(f"/posts/{post}/").data["id"] == post
    assert caller.get("/posts/?status=scheduled").json()["pagination"]["total"] == 1
    assert caller.post(f"/posts/{post}/cancel/", {}).data["status"] == "canceled"
    assert caller.ask("GET", "/healthz/").status == 200
    assert caller.ask("DELETE", "/api/v1/posts/").status == 405


@pytest.mark.parametrize("path", ["/nowhere/", "/api/v1/posts//", "/api/v1/", "/storage/media/a/"])
def test_an_unknown_address_with_a_slash_is_not_found(caller, path):
    assert caller.ask("GET", path).status in (403, 404)


def test_a_slash_at_the_end_of_a_signed_url_is_not_ignored(caller):
    reservation = caller.reserve(4)
    address, _, query = reservation["uploadUrl"].removeprefix(BASE).partition("?")
    assert caller.ask("PUT", f"{address}/?{query}", b"1234", reservation["requiredHeaders"]).status == 404


def test_a_route_without_parameters_is_never_hidden_by_one_with_parameters():
    for found in (API, [*PAGES, *DASHBOARD]):
        for place, route in enumerate(found):
            if "{" not in route.path:
                hiding = [earlier.path for earlier in found[:place] if earlier.path_regex.match(route.path)]
                assert set(hiding) <= {route.path}
