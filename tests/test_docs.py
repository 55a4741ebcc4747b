"""What the README promises is read back: its commands exist, its tables are those of the code."""

import re
from pathlib import Path

import click
import pytest

from socialpub.cli import main
from socialpub.core import errors
from socialpub.db.models import PostStatus, ProfileStatus, State
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def commands(group: click.Command, *path: str) -> list[tuple[str, ...]]:
    if not isinstance(group, click.Group):
        return [path]
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += commands(command, *path, name)
    return found


KNOWN = commands(main)


def test_every_command_that_the_readme_shows_exists() -> None:
    shown = re.findall(r"socialpub ((?:admin )?[a-z]+(?:-[a-z]+)*)", README)
    assert len(shown) > 10
    for line in set(shown) - {"admin"}:
        assert tuple(line.split()) in KNOWN, line


@pytest.mark.parametrize("name", [error.code for error in errors.ALL])
def test_every_code_has_its_line_in_the_readme(name: str) -> None:
    status = next(error.status for error in errors.ALL if error.code == name)
    assert f"| {status} | `{name}` |" in README


@pytest.mark.parametrize("state", [*PostStatus, *ProfileStatus, *sorted({state.outside for state in State})])
def test_every_state_that_a_caller_can_see_is_explained(state: str) -> None:
    assert f"| `{state}` |" in README


def test_every_make_target_that_the_readme_shows_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README):
        if target != "and":
            assert f"\n{target}:" in makefile, target


def test_the_map_shows_the_rooms_from_the_top_floor_down() -> None:
    house = README.split("## The house")[1].split("```")[1]
    shown = [line.split()[0].strip("/") for line in house.strip().splitlines()[1:]]
    for rooms in reversed([floor - {"__main__"} for floor in ROOMS]):
        assert set(shown[: len(rooms)]) == rooms
        shown = shown[len(rooms) :]
    assert shown == ["sandbox"]


def test_the_commands_say_in_one_line_what_they_do() -> None:
    for path in KNOWN:
        command: click.Command = main
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), name)
            assert found is not None
            command = found
        assert len(command.get_short_help_str(100)) > 10, path
