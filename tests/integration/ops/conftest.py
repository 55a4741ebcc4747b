from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from socialpub.runtime import Runtime
from tests.support.appliance import open_appliance
from tests.support.hand_clock import HandClock


@pytest.fixture
def original(tmp_path: Path, clock: HandClock, sandbox_options: dict[str, Any]) -> Iterator[Runtime]:
    """The appliance that copies are made of."""
    (tmp_path / "original").mkdir()
    rt = open_appliance(tmp_path / "original", clock, **sandbox_options)
    yield rt
    rt.close()
