"""A browser of one size and color scheme that takes screenshots."""

from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser

SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
MANUAL_HEIGHT = 1200
MANUAL_COLOURS = 128


class Camera:
    def __init__(self, browser: Browser, folder: Path, size: str, scheme: Literal["light", "dark"]) -> None:
        width, height = SIZES[size]
        self.folder, self.suffix = folder, f"{size}-{scheme}"
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            timezone_id="Europe/Berlin",
            is_mobile=size == "phone",
            has_touch=size == "phone",
        )
        self.page = context.new_page()

    def take(self, name: str, address: str | None = None) -> None:
        """Take a screenshot of the whole page at `address`, or of the open page."""
        if address is not None:
            self.page.goto(address)
        self.page.wait_for_load_state("networkidle")
        self.page.screenshot(path=self.folder / f"{name}-{self.suffix}.png", full_page=True)

    def show_in(self, folder: Path, names: tuple[str, ...]) -> None:
        """Store the upper parts of these screenshots as small files for the manual."""
        folder.mkdir(exist_ok=True)
        for name in names:
            with Image.open(self.folder / f"{name}-{self.suffix}.png") as picture:
                part = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, MANUAL_HEIGHT)))
            smaller = part.quantize(MANUAL_COLOURS, dither=Image.Dither.NONE)
            smaller.save(folder / f"{name.partition('-')[0]}.png", optimize=True)
