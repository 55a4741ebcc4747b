"""`make screenshots`: every page, on a desktop and a phone, light and dark."""

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser

from tests.screenshots.stage import Stage
from tests.support.chromium import chromium

PASSWORD = "correct horse battery"
SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
PAGES = {
    "overview": "/",
    "compose": "/compose",
    "posts": "/posts",
    "calendar": "/calendar",
    "calendar, a week": f"/calendar?week={datetime.now(UTC):%G-W%V}",
    "profiles": "/profiles",
    "keys": "/keys",
    "log": "/log",
    "trail": "/trail",
    "system": "/system",
    "reference": "/api/v1/openapi-docs",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="socialpub-screenshots-") as name, Stage(Path(name) / "stage") as stage:
        stage.sign_in(PASSWORD)
        with chromium() as browser:
            for size, (width, height) in SIZES.items():
                for scheme in SCHEMES:
                    take(browser, stage, folder, size, width, height, scheme)
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")


def take(
    browser: Browser, stage: Stage, folder: Path, size: str, width: int, height: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        base_url=stage.installation.url,
        timezone_id="Europe/Berlin",
        is_mobile=size == "phone",
        has_touch=size == "phone",
    )
    page = context.new_page()
    page.goto("/login")
    page.screenshot(path=folder / f"sign-in-{size}-{scheme}.png", full_page=True)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    for name, path in {**PAGES, **stage.page_of}.items():
        page.goto(path)
        page.wait_for_load_state("networkidle")
        slug = name.replace(",", "").replace(" ", "-")
        page.screenshot(path=folder / f"{slug}-{size}-{scheme}.png", full_page=True)
    context.close()


if __name__ == "__main__":
    main()
