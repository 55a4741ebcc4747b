"""What the demo shows of itself: numbered steps, each command as one could type it, and what came of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from socialpub.cli.output import Part, print_styled

MARGIN = "   "
LINE_WIDTH = 93
"""Characters that a line of JSON may have before it is broken, without the margin."""


class Transcript:
    def __init__(self, file: IO[str] | None = None) -> None:
        """`file`: None is stdout."""
        self._file = file
        self._number = 0
        self._hides_commands = False

    def step(self, title: str) -> None:
        """A numbered heading."""
        self._number += 1
        self._print()
        self._print((f"{self._number}", "bold cyan"), "  ", (title, "bold"))

    def command(self, line: str) -> None:
        if self._hides_commands:
            return
        for one in line.split("\n"):
            self._print((MARGIN + one, "dim"))

    def note(self, text: str) -> None:
        self._print(MARGIN + text)

    def result(self, text: str, good: bool = True) -> None:
        sign = ("✓ ", "green") if good else ("✗ ", "red")
        self._print(MARGIN, sign, text)

    @contextmanager
    def hiding_commands(self) -> Iterator[None]:
        """Show results only: the same commands have been shown before."""
        self._hides_commands = True
        try:
            yield
        finally:
            self._hides_commands = False

    def _print(self, *parts: Part) -> None:
        print_styled(*parts, file=self._file)


def format_json(value: Any, before: int = 0, depth: int = 2) -> str:
    """JSON on one line where it fits, else one member a line; `before` characters stand on its line already."""
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= LINE_WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    indent = "  " * depth
    if isinstance(value, list):
        inner = [format_json(item, len(indent), depth + 1) for item in value]
    else:
        names = [json.dumps(name) + ": " for name in value]
        members = zip(names, value.values(), strict=True)
        inner = [name + format_json(item, len(indent) + len(name), depth + 1) for name, item in members]
    first, last = ("[", "]") if isinstance(value, list) else ("{", "}")
    joined = f",\n{indent}".join(inner)
    return f"{first}\n{indent}{joined}\n{'  ' * (depth - 1)}{last}"
