from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from socialpub.runtime import Runtime
from tests.support.appliance import open_appliance
from tests.support.copies import file_of, post_with_an_image
from tests.support.hand_clock import HandClock


@pytest.fixture
def appliance_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def image(rt: Runtime, tmp_path: Path) -> str:
    """The artifact of a post with an image."""
    return post_with_an_image(rt, tmp_path)


@pytest.fixture
def stored_image(rt: Runtime, image: str) -> Path:
    return file_of(rt, image)


@pytest.fixture
def original(appliance_folder: Path, clock: HandClock, sandbox_options: dict[str, Any]) -> Iterator[Runtime]:
    """The appliance that backups are made of."""
    rt = open_appliance(appliance_folder, clock, **sandbox_options)
    yield rt
    rt.close()
