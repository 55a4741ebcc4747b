"""What a person sees: tables on stdout, news on stderr."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

WIDE = 500
"""Columns of a table that goes into a file or a pipe: nothing is wrapped or cut there."""


def say(text: str) -> None:
    """News for the person at the terminal; never a result."""
    click.echo(text, err=True)


def show_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str | None]], empty: str) -> None:
    """A table on stdout; where there is no row, `empty` on stderr."""
    if not rows:
        say(empty)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("ID", "Time"))
    for row in rows:
        # Text, not markup: a name may hold brackets.
        table.add_row(*(Text(cell or "") for cell in row))
    console().print(table)


def console(stderr: bool = False) -> Any:
    """A rich console; wide where no terminal sets the width."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=WIDE, soft_wrap=True)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Shows that something takes a while, on a terminal."""
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def moment(stamp: str | None) -> str:
    """An instant as people read it: `2026-11-21 11:30:00 UTC`."""
    return "" if stamp is None else f"{stamp[:10]} {stamp[11:19]} UTC"
