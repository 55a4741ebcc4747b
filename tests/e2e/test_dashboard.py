"""The dashboard in Chromium with real processes and real consent pages, from the first start to a failed post.

Controls are found by role and name. The browser reports no error, and axe finds no violation on any page.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.e2e.installation import Installation
from tests.e2e.processes import until
from tests.samples import media
from tests.support import axe
from tests.support.chromium import chromium

PASSWORD = "correct horse battery"
NETWORKS = {"x": "X", "tiktok": "TikTok", "pinterest": "Pinterest"}
ALLOW = re.compile("Authorize app|Give access")
PATIENCE_MS = 60_000
GONE_ON = "net::ERR_ABORTED"
"""Requests that end because the page was left."""

TOO_WIDE = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const reaches = (one) => one.getBoundingClientRect().right > root.clientWidth && !one.closest(".scroll");
  return [...document.querySelectorAll("body *")].filter(reaches).map((one) => one.outerHTML.slice(0, 200));
}"""
"""Return the elements that are wider than the window."""

SCREENS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 860}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path / "home", pace=0)
    try:
        installation.create()
        installation.sandbox()
        installation.tiktok.tell("settings", processing_ticks=0)
        yield installation
    finally:
        installation.close()


class Owner:
    """A user of the browser, who checks every opened page."""

    def __init__(self, page: Page, installation: Installation, *, examines_all: bool) -> None:
        self.page = page
        self.examines_all = examines_all
        self.examined: set[str] = set()
        self.at = installation
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._note_failure)
        page.on(
            "response", lambda one: self.complaints.append(f"{one.url}: {one.status}") if one.status >= 400 else None
        )

    def _note_failure(self, request: Request) -> None:
        if request.failure != GONE_ON:
            self.complaints.append(f"{request.url}: {request.failure}")

    def open(self, path: str, heading: str | None = None) -> None:
        self.page.goto(f"{self.at.url}{path}")
        self.look(heading)

    def look(self, heading: str | None = None) -> None:
        """Assert that the page is sound. Axe takes half a second, so a phone examines each kind of page once."""
        if heading is not None:
            expect(self.page.get_by_role("heading", level=1)).to_have_text(heading)
        expect(self.page.get_by_role("heading", level=1)).to_have_count(1)
        kind = self.page.get_by_role("heading", level=1).inner_text()
        if self.examines_all or kind not in self.examined:
            self.examined.add(kind)
            assert axe.violations(self.page) == [], self.page.url
        assert self.page.evaluate(TOO_WIDE) == [], f"wider than the window: {self.page.url}"

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def told(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_role("status").filter(has_text=text).first).to_be_visible()

    def sees_published(self, deliveries: int) -> None:
        """Wait until the page of a post shows this number of published deliveries."""
        states = self.page.locator("article h3 .state").filter(has_text=re.compile("^Published$"))
        expect(states).to_have_count(deliveries, timeout=PATIENCE_MS)

    def consent(self) -> None:
        """Give consent on the page of the network and return."""
        self.page.wait_for_url(lambda url: url.startswith(self.at.sandbox_url))
        self.page.get_by_role("button", name=ALLOW).click()
        self.page.wait_for_url(lambda url: url.startswith(self.at.url))


@pytest.mark.parametrize("screen", [pytest.param("desktop", marks=pytest.mark.endurance), "phone"])
def test_the_dashboard_from_the_first_start_to_a_failed_post(
    browser: Browser, installation: Installation, tmp_path: Path, screen: str
) -> None:
    serve = installation.start("serve")
    context = browser.new_context(timezone_id="Europe/Berlin", **SCREENS[screen])
    owner = Owner(context.new_page(), installation, examines_all=screen == "desktop")
    set_a_password(owner, serve.output)
    connect_all_three(owner)
    make_a_key_and_use_it(owner)
    post = compose_with_two_pictures(owner, tmp_path)
    see_it_at_the_networks(owner, post)
    reconnect_an_account_and_see_held_posts_go_out(owner)
    move_and_cancel_from_the_calendar(owner)
    post_again_what_failed(owner)
    look_at_the_rest(owner)
    assert owner.complaints == []
    context.close()


def set_a_password(owner: Owner, printed: str) -> None:
    link = re.search(r"http://\S+/setup\?token=\S+", printed)
    assert link is not None, printed
    owner.open("/", "Set a password first")
    owner.page.goto(link[0])
    owner.look("Set a password")
    owner.page.get_by_label("Password", exact=True).fill(PASSWORD)
    owner.page.get_by_label("Repeat password").fill(PASSWORD)
    owner.press("Set password")
    owner.told("The password is set")
    owner.look("Overview")
    owner.press("Sign out")
    owner.look("Sign in")
    owner.page.get_by_label("Password").fill(PASSWORD)
    owner.press("Sign in")
    owner.look("Overview")


def connect_all_three(owner: Owner) -> None:
    for label in NETWORKS.values():
        owner.open("/profiles", "Profiles")
        owner.press(f"Connect {label}")
        owner.consent()
        owner.look()
        expect(owner.page.get_by_text("is connected").first).to_be_visible()
    owner.open("/profiles")
    expect(owner.page.get_by_text("@demo").first).to_be_visible()


def make_a_key_and_use_it(owner: Owner) -> None:
    owner.open("/keys", "Keys")
    owner.page.get_by_label("Name", exact=True).fill("my script")
    owner.page.get_by_label("May write").check()
    owner.press("Create key")
    owner.look()
    key = re.search(r"spk_\w+_[\w-]{43}", owner.page.content())
    assert key is not None
    answer = httpx2.get(
        f"{owner.at.url}/api/v1/profiles", headers={"authorization": f"Bearer {key[0]}"}, trust_env=False
    )
    assert sorted(one["provider"] for one in answer.json()["data"]) == sorted(NETWORKS)
    owner.at.key = key[0]
    owner.open("/keys")
    assert key[0] not in owner.page.content()


def choose_profiles(owner: Owner, *providers: str) -> None:
    for provider in providers:
        owner.page.locator(f"input[name=profiles][data-provider={provider}]").check()


def choose_options(owner: Owner) -> None:
    tiktok = owner.page.get_by_role("group", name="TikTok")
    tiktok.get_by_label("How to post").select_option("Publish directly")
    tiktok.get_by_label("Who can").select_option("SELF_ONLY")
    board = owner.page.get_by_role("group", name="Pinterest").get_by_label("Board", exact=True)
    board.select_option(index=1)


def compose_with_two_pictures(owner: Owner, folder: Path) -> str:
    owner.open("/compose", "Compose")
    owner.page.get_by_label("Text", exact=True).fill("Two pictures from the dashboard")
    choose_profiles(owner, *NETWORKS)
    pictures = [media.jpeg(folder / f"{name}.jpg", 900, 700) for name in ("one", "two")]
    owner.page.get_by_label("Media", exact=True).set_input_files(pictures)
    alts = owner.page.get_by_label(re.compile("^Alt text"))
    expect(alts).to_have_count(2)
    for number in range(2):
        alts.nth(number).fill(f"Picture number {number + 1}")
    choose_options(owner)
    owner.look()
    owner.press("Publish")
    owner.page.wait_for_url(re.compile(r"/posts/[0-9a-f-]{36}"))
    owner.sees_published(len(NETWORKS))
    owner.look()
    return urlsplit(owner.page.url).path.rpartition("/")[2]


def see_it_at_the_networks(owner: Owner, post: str) -> None:
    shown = owner.at.fresh_caller().post(post)
    assert [one["status"] for one in shown["deliveries"]] == ["published"] * 3
    assert [one["alt"] for one in shown["media"]] == ["Picture number 1", "Picture number 2"]
    for network in NETWORKS:
        owner.page.goto(f"{owner.at.sandbox_url}/{network}/feed")
        expect(owner.page.get_by_text("Two pictures from the dashboard").first).to_be_visible()


def reconnect_an_account_and_see_held_posts_go_out(owner: Owner) -> None:
    caller = owner.at.caller()
    (profile,) = (one["id"] for one in caller.ask("GET", "/api/v1/profiles").json()["data"] if one["provider"] == "x")
    owner.at.x.tell("tokens", username="demo", end="removed")
    post = caller.publish("This one waits for its owner", profile)
    until(lambda: caller.ask("GET", f"/api/v1/profiles/{profile}").json()["data"]["status"] == "reauthRequired", "held")
    owner.open("/", "Overview")
    expect(owner.page.get_by_text("connect", exact=False).first).to_be_visible()
    owner.open(f"/profiles/{profile}")
    owner.press("Reconnect")
    owner.consent()
    owner.look()
    assert caller.delivery(post)["status"] == "published"
    owner.open(f"/posts/{post}")
    owner.sees_published(1)


def move_and_cancel_from_the_calendar(owner: Owner) -> None:
    caller = owner.at.caller()
    (profile,) = (one["id"] for one in caller.ask("GET", "/api/v1/profiles").json()["data"] if one["provider"] == "x")
    at = (datetime.now(UTC) + timedelta(days=40)).replace(hour=10, minute=0, second=0, microsecond=0)
    body = {"post": {"body": "Far ahead", "scheduledAt": at.isoformat()}, "profiles": [profile]}
    post = caller.ask("POST", "/api/v1/posts", json=body).json()["data"]["id"]
    owner.open(f"/calendar?month={at:%Y-%m}")
    owner.look()
    owner.page.get_by_role("link", name=re.compile("^Move")).first.click()
    later = (at + timedelta(days=1)).replace(tzinfo=None)
    owner.look()
    owner.page.get_by_label(re.compile("^Time")).fill(f"{later:%Y-%m-%dT%H:%M}")
    owner.press("Reschedule")
    owner.told(re.compile("resched|moved|now", re.I))
    moved = datetime.fromisoformat(caller.post(post)["scheduledAt"])
    assert f"{moved:%Y-%m-%d}" == f"{later:%Y-%m-%d}"
    owner.page.get_by_role("link", name=re.compile("Far ahead")).first.click()
    owner.look()
    owner.page.get_by_role("link", name="Cancel post").or_(owner.page.get_by_role("button", name="Cancel post")).click()
    owner.look()
    owner.press("Cancel post")
    owner.told(re.compile("cancel", re.I))
    assert caller.post(post)["status"] == "canceled"


def post_again_what_failed(owner: Owner) -> None:
    caller = owner.at.caller()
    (profile,) = (one["id"] for one in caller.ask("GET", "/api/v1/profiles").json()["data"] if one["provider"] == "x")
    refusal = {"title": "Forbidden", "detail": "<b>Not</b> today.", "type": "about:blank", "status": 403}
    owner.at.x.script("create_post", "fails_with", status=403, body=refusal)
    post = caller.publish("A second attempt", profile)
    assert caller.delivery(post)["status"] == "failed"
    owner.open(f"/posts/{post}")
    expect(owner.page.get_by_text("<b>Not</b> today.").first).to_be_visible()  # as text
    owner.press("Post again")
    owner.look()
    if owner.page.get_by_role("button", name="Post again").count():
        owner.press("Post again")
    owner.page.wait_for_url(lambda url: "/posts/" in url and post not in url)
    owner.sees_published(1)
    assert owner.at.x.texts().count("A second attempt") == 1


def look_at_the_rest(owner: Owner) -> None:
    for path in ("/", "/posts", "/posts?search=dashboard", "/calendar", "/log", "/audit", "/system"):
        owner.open(path)
