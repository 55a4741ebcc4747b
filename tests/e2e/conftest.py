from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.caller import Caller
from tests.e2e.stage import Stage

HERE = Path(__file__).parent

MakeStage = Callable[..., Stage]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage whose key and profiles the others begin with: making them by commands takes a while."""
    stage = Stage(tmp_path_factory.mktemp("furnished"), pace=0)
    try:
        stage.furnish()
        yield stage
    finally:
        stage.close()


@pytest.fixture
def make_stage(tmp_path: Path, furnished: Stage) -> Iterator[MakeStage]:
    """Makes a stage with a key and profiles; of its processes nothing runs yet."""
    stages: list[Stage] = []

    def make(**how: object) -> Stage:
        stage = Stage(tmp_path / f"stage{len(stages)}", **how)  # type: ignore[arg-type]
        stages.append(stage)
        stage.move_in(furnished)
        return stage

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """With the sandbox running."""
    stage = make_stage()
    stage.sandbox()
    return stage


@pytest.fixture
def caller(stage: Stage) -> Caller:
    return stage.caller()
