"""Promises of the README and the manual: commands exist, links lead to headings, tables are current."""

import re
from pathlib import Path

import click
import pytest

from socialpub.cli.main import main
from socialpub.core import errors
from socialpub.core.settings.loader import KEYS
from socialpub.core.settings.schema import AlertKind
from socialpub.db import upgrade
from socialpub.db.states import PostStatus, ProfileStatus, State
from socialpub.ops.health import FindingCode
from tests import manual_tables, release
from tests.support.readme import MANUAL, README, topic
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
PAGES = [README, *sorted(MANUAL.glob("*.md"))]
EXAMPLE = (ROOT / "config.example.toml").read_text()


def commands(group: click.Command, *path: str) -> dict[tuple[str, ...], click.Command]:
    """Return every command and group by the words that call it."""
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
"""The words before the last word of a command, which texts may leave out."""


def code_in(text: str) -> list[str]:
    """Return the lines of fenced shell blocks and the text between backticks."""
    fenced = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    return [*lines, *re.findall(r"`([^`]+)`", prose)]


def calls_in(text: str) -> list[tuple[tuple[str, ...], set[str]]]:
    """Return the words and the options of every `socialpub …` in the text."""
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


SKILL = ROOT / "socialpub" / "cli" / "examples" / "SKILL.md"
SHOWN = [
    *((page.name, page.read_text(), 0) for page in PAGES),
    ("config.example.toml", EXAMPLE, 2),
    ("SKILL.md", SKILL.read_text(), 10),
]


@pytest.mark.parametrize(("text", "least"), [page[1:] for page in SHOWN], ids=[page[0] for page in SHOWN])
def test_every_command_and_option_that_is_shown_exists(text: str, least: int) -> None:
    calls = calls_in(text)
    assert len(calls) >= least
    for path, options in calls:
        assert options <= OPTIONS[path], f"socialpub {' '.join(path)} has no {options - OPTIONS[path]}"
    alone = {code.split()[0] for code in code_in(text) if code.startswith("--")}
    assert alone <= set().union(*OPTIONS.values()), "an option that no command has"


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 200


def test_the_readme_names_the_button_of_the_sandboxs_consent_page() -> None:
    (button,) = re.findall(r"press \*([^*]+)\*", README.read_text())
    page = ROOT / "socialpub" / "sandbox" / "templates" / "consent.html"
    assert f">{button}</button>" in page.read_text()


def test_every_command_is_in_the_manuals_list_of_commands() -> None:
    named = {path[-1] for path in KNOWN if path} - {"admin"}
    listed = topic("commands").read_text()
    assert {name for name in named if not re.search(rf"\b{name}\b", listed)} == set()


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_tables_of_the_manual_are_those_of_the_code(page: Path) -> None:
    text = page.read_text()
    assert manual_tables.render(text) == text, (
        "the manual's tables are stale: run `make manual-tables` (python -m tests.manual_tables) and commit the result"
    )


def test_the_manual_has_a_place_for_every_table() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert {found[2] for found in manual_tables.MARKS.finditer(text)} == manual_tables.TABLES.keys()


@pytest.mark.parametrize("name", [error.code for error in errors.ALL])
def test_every_code_has_its_line_in_the_manual(name: str) -> None:
    status = next(error.status for error in errors.ALL if error.code == name)
    assert f"| {status} | `{name}` |" in topic("publishing").read_text()


def test_every_reason_of_readiness_is_in_the_manual() -> None:
    text = topic("monitoring").read_text()
    assert [code for code in FindingCode if f"`{code}`" not in text] == []


def test_every_cause_of_a_notification_is_in_the_manual() -> None:
    assert [kind for kind in AlertKind if f"| `{kind}` |" not in topic("notifications").read_text()] == []


@pytest.mark.parametrize("state", [*PostStatus, *ProfileStatus, *sorted({state.api_status for state in State})])
def test_every_state_that_a_caller_can_see_is_explained(state: str) -> None:
    assert any(f"| `{state}` |" in topic(name).read_text() for name in ("publishing", "networks"))


def test_every_control_and_sentence_that_the_manual_quotes_exists() -> None:
    folders = [ROOT / "socialpub" / name for name in ("web", "ops", "accounts")]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".html", ".py")]
    shown = "".join(path.read_text() for path in sources)
    quoted = {" ".join(one.split()) for page in PAGES for one in re.findall("“([^”]+)”", page.read_text())}
    assert {one for one in quoted if one not in shown and not one.startswith("Connect ")} == set()


def test_every_key_of_the_configuration_is_in_the_manual() -> None:
    text = topic("configure").read_text()
    assert [key for key in KEYS if f"| `{key[-1]}` |" not in text] == []


def test_the_changelog_says_of_the_next_release_what_an_older_version_refuses() -> None:
    """Its newest migration, and no configuration key that does not exist."""
    section = release.section(ROOT / release.CHANGELOG, release.next_release())
    assert max(upgrade.list_known())[:4] in section
    (keys,) = re.findall(r"^\*\*New configuration keys\.\*\* (.*?)\n\n", section, re.MULTILINE | re.DOTALL)
    known = {part for key in KEYS for part in (key[-1], f"[{'.'.join(key[:-1])}]")}
    assert {name for name in re.findall("`([^`]+)`", keys) if not name.startswith('"')} <= known


def test_every_make_target_that_is_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = [code for page in PAGES for code in code_in(page.read_text())]
    targets = [found[1] for code in lines if (found := re.match(r"make ([a-z-]+)", code))]
    assert len(targets) > 5
    for target in targets:
        assert f"\n{target}:" in makefile, target


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S))
    for link in (link for link in links if not link.startswith("https://")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as code hosts name them."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_source_layout_shows_the_packages_from_top_to_bottom() -> None:
    layout = topic("development").read_text().split("## Source layout")[1].split("```")[1]
    shown = [line.split()[0].strip("/") for line in layout.strip().splitlines()[1:]]
    for rooms in reversed([floor - {"__main__"} for floor in ROOMS]):
        assert set(shown[: len(rooms)]) == rooms
        shown = shown[len(rooms) :]
    assert shown == ["sandbox"]


def test_the_commands_say_in_one_line_what_they_do() -> None:
    for path, command in KNOWN.items():
        assert len(command.get_short_help_str(100)) > 10, path


def test_no_text_installs_a_package_that_is_not_published() -> None:
    """No package index has socialpub."""
    asks = re.compile(r"(?:pipx?|uv tool|uv pip) (?:install|upgrade) (?:--?\S+ (?:/\S+ )?)*socialpub\b")
    assert asks.search("pipx install --python /usr/bin/python3 socialpub")
    texts = [*(page.read_text() for page in PAGES), *(path.read_text() for path in (ROOT / "socialpub").rglob("*.py"))]
    assert [found[0] for text in texts for found in asks.finditer(text)] == []
