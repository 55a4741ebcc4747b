"""What the README promises is read back: its commands exist, its tables are those of the code."""

import re
from pathlib import Path

import click
import pytest

from socialpub.cli.main import main
from socialpub.core import errors, version
from socialpub.core.settings.loader import KEYS
from socialpub.db import upgrade
from socialpub.db.states import PostStatus, ProfileStatus, State
from tests import options_table, release
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLE = (ROOT / "config.example.toml").read_text()
RENEW = "the tables are not those of the code: run `make options-table`"


def commands(group: click.Command, *path: str) -> dict[tuple[str, ...], click.Command]:
    """By the words that call it; groups too."""
    found = {path: group}
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            found |= commands(command, *path, name)
    return found


KNOWN = commands(main)
OPTIONS = {
    path: {name for param in command.get_params(click.Context(command)) for name in param.opts}
    for path, command in KNOWN.items()
}
SHORT = {path[-1]: "".join(f"{word} " for word in path[:-1]) for path in KNOWN if path}
"""What stands before the last word of a command, where the text leaves it out."""


def code_in(text: str) -> list[str]:
    """What stands in fenced blocks, line by line, and between backticks."""
    fenced = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    return [*lines, *re.findall(r"`([^`]+)`", prose)]


def calls_in(text: str) -> list[tuple[tuple[str, ...], set[str]]]:
    """Every `socialpub …` of the text: the words of the command, as far as they are ones, and the options."""
    found = []
    for code in code_in(text):
        if code.partition(" ")[0] in SHORT:
            code = f"socialpub {SHORT[code.partition(' ')[0]]}{code}"
        for call in re.findall(r"(?:^|[\s(/])socialpub(?=\s)([^|;&>)]*)", code):
            words = re.sub(r"^\s*--config\s+\S+", "", call.replace("[", " ").replace("]", " ")).split()
            path: tuple[str, ...] = ()
            while words and isinstance(KNOWN[path], click.Group) and not words[0].startswith("-"):
                path = (*path, words.pop(0))
                assert path in KNOWN, f"socialpub {' '.join(path)} does not exist: {code}"
            found.append((path, {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}))
    return found


@pytest.mark.parametrize(("text", "least"), [(README, 30), (EXAMPLE, 2)], ids=["README.md", "config.example.toml"])
def test_every_command_and_option_that_is_shown_exists(text: str, least: int) -> None:
    calls = calls_in(text)
    assert len(calls) >= least
    for path, options in calls:
        assert options <= OPTIONS[path], f"socialpub {' '.join(path)} has no {options - OPTIONS[path]}"
    alone = {code.split()[0] for code in code_in(text) if code.startswith("--")}
    assert alone <= set().union(*OPTIONS.values()), "an option that no command has"


def test_every_command_has_its_place_in_the_readme() -> None:
    named = {path[-1] for path in KNOWN if path} - {"admin"}
    assert {name for name in named if not re.search(rf"\b{name}\b", README)} == set()


def test_the_readme_shows_every_option_of_every_network() -> None:
    assert options_table.split(README)[1] == options_table.tables(), RENEW


@pytest.mark.parametrize("name", [error.code for error in errors.ALL])
def test_every_code_has_its_line_in_the_readme(name: str) -> None:
    status = next(error.status for error in errors.ALL if error.code == name)
    assert f"| {status} | `{name}` |" in README


@pytest.mark.parametrize("state", [*PostStatus, *ProfileStatus, *sorted({state.outside for state in State})])
def test_every_state_that_a_caller_can_see_is_explained(state: str) -> None:
    assert f"| `{state}` |" in README


def test_the_changelog_says_of_the_next_release_what_an_older_version_refuses() -> None:
    """Its newest migration, and no configuration key that does not exist."""
    section = release.section(ROOT / release.CHANGELOG, version.read_release(ROOT))
    assert max(upgrade.list_known())[:4] in section
    (keys,) = re.findall(r"^\*\*New configuration keys\.\*\* (.*?)\n\n", section, re.MULTILINE | re.DOTALL)
    known = {part for key in KEYS for part in (key[-1], f"[{'.'.join(key[:-1])}]")}
    assert {name for name in re.findall("`([^`]+)`", keys) if not name.startswith('"')} <= known


def test_every_make_target_that_the_readme_shows_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [found[1] for code in code_in(README) if (found := re.match(r"make ([a-z-]+)", code))]
    assert len(targets) > 5
    for target in targets:
        assert f"\n{target}:" in makefile, target


def test_every_link_within_the_readme_leads_to_a_heading() -> None:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^ *```.*?^ *```$", "", README, flags=re.M | re.S), re.M)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#([^)]+)\)", README))
    assert len(links) > 10
    assert links <= anchors


def test_the_map_shows_the_rooms_from_the_top_floor_down() -> None:
    house = README.split("## The house")[1].split("```")[1]
    shown = [line.split()[0].strip("/") for line in house.strip().splitlines()[1:]]
    for rooms in reversed([floor - {"__main__"} for floor in ROOMS]):
        assert set(shown[: len(rooms)]) == rooms
        shown = shown[len(rooms) :]
    assert shown == ["sandbox"]


def test_the_commands_say_in_one_line_what_they_do() -> None:
    for path, command in KNOWN.items():
        assert len(command.get_short_help_str(100)) > 10, path


def test_nobody_is_asked_to_install_a_package_that_is_not_published() -> None:
    """No index has socialpub: it is installed from a checkout or from a file."""
    asks = re.compile(r"(?:pipx?|uv tool|uv pip) (?:install|upgrade) (?:--?\S+ (?:/\S+ )?)*socialpub\b")
    assert asks.search("pipx install --python /usr/bin/python3 socialpub")
    texts = [README, *(path.read_text() for path in (ROOT / "socialpub").rglob("*.py"))]
    assert [found[0] for text in texts for found in asks.finditer(text)] == []
