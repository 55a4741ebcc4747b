"""`socialpub manual` prints each topic, and names the nearest one for a misspelled name."""

import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from socialpub.cli.main import main
from socialpub.core import manual
from tests.support.readme import MANUAL


def test_without_a_topic_the_list_has_every_file_with_one_line() -> None:
    shown = CliRunner().invoke(main, ["manual"])
    assert shown.exit_code == 0
    names = [line.split()[0] for line in shown.stdout.splitlines()]
    assert names == list(manual.list_topics())
    assert {*names, manual.INDEX} == {file.stem for file in MANUAL.glob("*.md")}
    assert all(len(line.split(maxsplit=1)[1]) > 10 for line in shown.stdout.splitlines())


@pytest.mark.parametrize("topic", manual.list_topics())
def test_a_pipe_gets_the_topic_as_markdown(topic: str) -> None:
    shown = CliRunner().invoke(main, ["manual", topic])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("# ")
    assert shown.stdout == manual.read_topic(topic)
    assert "<!--" not in shown.stdout


def test_an_unknown_topic_names_the_nearest() -> None:
    shown = CliRunner().invoke(main, ["manual", "bakups"])
    assert shown.exit_code == 2
    assert "did you mean backups?" in shown.stderr


def test_a_terminal_shows_each_command_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person copies commands from the terminal."""
    shown = io.StringIO()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout", shown)
    monkeypatch.setattr(shown, "isatty", lambda: True)
    main(["manual", "install"], standalone_mode=False)
    (line,) = [line for line in shown.getvalue().splitlines() if "podman run --detach" in line]
    assert "--publish 127.0.0.1:8000:8000 --volume socialpub:/data socialpub" in line
    assert "# Install" not in shown.getvalue()


@pytest.mark.parametrize("page", sorted(MANUAL.glob("*.md")), ids=lambda page: page.stem)
def test_no_topic_has_code_inside_a_list(page: Path) -> None:
    """A terminal would cut a long line there."""
    assert not re.search(r"^ +```", page.read_text(), re.MULTILINE)
