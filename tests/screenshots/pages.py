"""The pages of the screenshots, and how to open them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from playwright.sync_api import Page, expect

from tests.screenshots.camera import Camera
from tests.screenshots.stage import PASSWORD, TEXT, Stage

PAGES = {
    "overview": "/",
    "compose": "/compose",
    "posts": "/posts",
    "posts-that-do-not-exist": "/posts?search=nowhere&providers=x",
    "calendar": "/calendar",
    "calendar-a-week": f"/calendar?week={datetime.now(UTC):%G-W%V}",
    "profiles": "/profiles",
    "keys": "/keys",
    "log": "/log",
    "audit": "/audit",
    "system": "/system",
    "findings": "/system/findings",
    "reference": "/api/v1/openapi-docs",
    "manual": "/manual/backups",
    "no-such-page": "/posts/nothing",
}
EMPTY = ("overview", "compose", "posts", "calendar", "profiles", "keys", "log", "system")


def first_start(stage: Stage, cameras: Sequence[Camera]) -> None:
    """Show a new installation."""
    url = stage.new.url
    for camera in cameras:
        camera.take("new-no-password", f"{url}/")
        camera.take("new-set-up", stage.set_up_link)
    stage.new.admin("set-password", stdin=f"{PASSWORD}\n")
    for camera in cameras:
        sign_in(camera.page, url)
        for name in EMPTY:
            camera.take(f"new-{name}", url + PAGES[name])


def at_work(stage: Stage, camera: Camera) -> None:
    url = stage.installation.url
    camera.page.goto(f"{url}/login")
    camera.page.get_by_label("Password").fill("a wrong password")
    camera.page.get_by_role("button", name="Sign in").click()
    camera.take("sign-in-refused")
    sign_in(camera.page, url)
    for name, path in {**PAGES, **stage.page_of}.items():
        camera.take(name, url + path)
    compose(camera, url, stage)
    camera.page.goto(f"{url}/keys")
    camera.page.get_by_label("Name", exact=True).fill("my laptop")
    camera.page.get_by_role("button", name="Create key").click()
    camera.take("key-created")
    camera.page.goto(f"{url}/keys")
    camera.page.get_by_role("link", name=re.compile("^Revoke")).first.click()
    camera.take("key-revoke")
    camera.page.get_by_role("button", name="Revoke").click()


def in_trouble(stage: Stage, camera: Camera) -> None:
    url = stage.installation.url
    for name, path in stage.troubled.items():
        camera.take(name, url + path)


def compose(camera: Camera, url: str, stage: Stage) -> None:
    """Compose a post with two images for every network, with and without problems."""
    page = camera.page
    page.goto(f"{url}/compose")
    page.get_by_label("Text", exact=True).fill(TEXT)
    for profile in stage.installation.profile_on.values():
        page.locator(f"input[name=profiles][value='{profile}']").check()
    page.get_by_label("Media", exact=True).set_input_files(stage.pictures)
    alts = page.get_by_label(re.compile("^Alt text"))
    expect(alts).to_have_count(2)
    for number, alt in enumerate(("The studio in the evening", "A shelf with four colours of linen")):
        alts.nth(number).fill(alt)
    page.get_by_role("group", name="TikTok").get_by_label("How to post").select_option("direct")
    page.get_by_role("button", name="Check", exact=True).click()
    camera.take("compose-with-problems")
    page.get_by_role("group", name="TikTok").get_by_label("Who can").select_option("SELF_ONLY")
    page.get_by_role("group", name="Pinterest").get_by_label("Board", exact=True).select_option(index=1)
    page.get_by_role("button", name="Check", exact=True).click()
    camera.take("compose-checked")
    with page.expect_response(re.compile("/compose/check")):
        page.get_by_label("Text", exact=True).fill(f"{TEXT} ")
    camera.take("compose-filled")


def sign_in(page: Page, url: str) -> None:
    page.goto(f"{url}/login")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
