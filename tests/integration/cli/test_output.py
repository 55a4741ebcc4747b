"""Tables fit the terminal, and what is copied out of them is never broken."""

import re

import click
import pytest
from click.testing import CliRunner

from socialpub.cli.output import print_table

ID = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"
COLUMNS = ("ID", "Name", "Network", "Account", "Status", "Expires", "Notes")
ROW = (
    ID,
    "a name of quite some length",
    "pinterest",
    "@somebody",
    "reauthRequired",
    "2026-12-01 10:00:00 UTC",
    "Its tokens are refused: " + "connect it again, " * 8 + "and look here: https://example.com/a/longer/address",
)


def shown(monkeypatch: pytest.MonkeyPatch, width: int | None) -> list[str]:
    """The lines on a terminal of this width; None is a pipe."""
    if width is not None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))

    @click.command()
    def command() -> None:
        print_table(COLUMNS, [ROW, ROW], "")

    done = CliRunner().invoke(command, catch_exceptions=False)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 130, 160, 190, 220, 250])
def test_every_width_holds_every_word_whole(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    lines = shown(monkeypatch, width)
    words = " ".join(lines).split()
    for word in {word for cell in ROW for word in cell.split()}:
        assert words.count(word) >= 2 or len(word) > width - 4, (width, word)
    assert max(map(len, lines)) <= max(width, len(ID) + 9)


def test_a_narrow_terminal_shows_a_line_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80)
    assert lines[0] == f"ID       {ID}"
    assert lines[1] == "Name     a name of quite some length"
    assert lines.count("") == 1, "between two rows"


def test_a_wide_terminal_shows_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 200)
    assert lines[0].split() == list(COLUMNS)


def test_in_a_pipe_a_row_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, None)
    assert len(lines) == 4
    for line in lines[2:]:
        assert all(cell in line for cell in ROW)
