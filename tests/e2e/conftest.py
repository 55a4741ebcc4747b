import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from socialpub.core.locks import FileLock
from tests.e2e.caller import Caller
from tests.e2e.installation import Installation
from tests.e2e.small_disk import SmallDisk

HERE = Path(__file__).parent

MakeInstallation = Callable[..., Installation]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation whose key and profiles the others begin with: making them by commands takes a while, so that all
    processes of one run of the tests share it."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    with FileLock(folder / "prepared.lock"):
        installation = Installation(folder / "prepared", pace=0)
        try:
            if not installation.remember_preparation():
                installation.prepare()
        finally:
            installation.close()
    return installation


@pytest.fixture
def make_installation(tmp_path: Path, prepared: Installation) -> Iterator[MakeInstallation]:
    """Makes an installation with a key and profiles; of its processes nothing runs yet."""
    installations: list[Installation] = []

    def make(**how: object) -> Installation:
        installation = Installation(tmp_path / f"installation{len(installations)}", **how)  # type: ignore[arg-type]
        installations.append(installation)
        installation.copy_from(prepared)
        return installation

    yield make
    for installation in installations:
        installation.close()


@pytest.fixture
def installation(make_installation: MakeInstallation) -> Installation:
    """With the sandbox running."""
    installation = make_installation()
    installation.sandbox()
    return installation


@pytest.fixture
def caller(installation: Installation) -> Caller:
    return installation.caller()


@pytest.fixture
def make_small_disk() -> Iterator[Callable[[Installation], SmallDisk]]:
    """Puts an installation's data on a disk of a few megabytes, before anything of it runs."""
    disks: list[SmallDisk] = []

    def make(installation: Installation) -> SmallDisk:
        disks.append(SmallDisk(installation))
        return disks[-1]

    yield make
    for disk in disks:
        disk.close()
