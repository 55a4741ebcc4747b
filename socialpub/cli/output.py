"""What a person at the terminal sees: results and tables on stdout, notes on stderr."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

FILE_WIDTH = 500
"""Columns of a table that goes into a file or a pipe: nothing is wrapped or cut there."""


def print_note(text: str) -> None:
    """Something the person should know; never a result."""
    click.echo(text, err=True)


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | None]], empty: str) -> None:
    """A table on stdout; where there is no row, `empty` on stderr."""
    if not rows:
        print_note(empty)
        return
    # Only tables pay for rich.
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("ID", "Time"))
    for row in rows:
        # Text, not markup: a name may hold brackets.
        table.add_row(*(Text(cell or "") for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=FILE_WIDTH, soft_wrap=True)
    console.print(table)


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Shows on a terminal that something takes a while."""
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def format_time(stamp: str | None) -> str:
    """A stamp as people read it: `2026-11-21 11:30:00 UTC`."""
    return "" if stamp is None else f"{stamp[:10]} {stamp[11:19]} UTC"
