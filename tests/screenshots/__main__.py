"""`make screenshots`: every page, on a desktop and a phone, light and dark; and the images of the manual."""

import argparse
import tempfile
from pathlib import Path

from tests.screenshots import pages
from tests.screenshots.camera import Camera
from tests.screenshots.stage import Stage
from tests.support.chromium import chromium

MANUAL = Path(__file__).parents[2] / "socialpub" / "manual" / "images"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="socialpub-") as name, Stage(Path(name)) as stage, chromium() as browser:
        cameras = [
            Camera(browser, folder, size, scheme) for size in ("desktop", "phone") for scheme in ("light", "dark")
        ]
        pages.first_start(stage, cameras)
        stage.set()
        for camera in cameras:
            pages.at_work(stage, camera)
        stage.trouble()
        for camera in cameras:
            pages.in_trouble(stage, camera)
        cameras[0].show_in(MANUAL, ("overview", "compose-filled", "calendar"))
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")


if __name__ == "__main__":
    main()
