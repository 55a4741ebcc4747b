from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller
from tests.samples import media


@pytest.fixture
def png(tmp_path: Path) -> bytes:
    return media.png(tmp_path / "a.png", 64, 48).read_bytes()


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        yield caller
