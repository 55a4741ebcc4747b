"""The output of a command: results and tables on stdout, notes and errors on stderr.

Text from callers, networks and files may be hostile, so control characters are escaped and nothing is markup.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import click

from socialpub.core import progress, units
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.core.secrets.redaction import redact, visible, visible_json

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text


EXEC_TERMINAL = " (for a container: `podman exec -it`)"

Part = str | tuple[str, str]
"""A text, or a text and rich's name of its style."""


def print_line(text: str = "") -> None:
    click.echo(visible(text))


def print_script(script: str) -> None:
    """Print a script of ours as it is: control characters belong to it."""
    click.echo(script)


def accept_every_character() -> None:
    """Escape the characters that a terminal does not have, such as one that is set to Latin-1."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def print_outcome(text: str) -> None:
    """Print a line about something that has happened. If stdout cannot be written, print on stderr from now on.

    The failure must not end the command, whose exit code reports the outcome.
    """
    try:
        click.echo(text)
    except OSError as error:
        with suppress(OSError):
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        print_note(f"Standard output cannot be written: {error.strerror}.")
        try:
            sys.stdout.flush()  # the line is still in the buffer
        except OSError:
            _discard(sys.stdout)


def _discard(stream: IO[Any]) -> None:
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        stream.flush()  # at exit, a line that remains in the buffer would change the exit code


def print_note(text: str = "") -> None:
    """Print one line that is not a result, unless stderr cannot be written."""
    try:
        click.echo(visible(text), err=True)
    except OSError:
        _discard(sys.stderr)


def ask(label: str) -> str:
    return str(click.prompt(visible(label), err=True))


def ask_hidden(label: str) -> str:
    return str(click.prompt(label, hide_input=True, err=True))


def ask_to_continue(question: str) -> None:
    """Raise click.Abort if the user does not agree."""
    click.confirm(visible(question), abort=True, err=True)


def print_error(message: str, hint: str | None = None, file: IO[Any] | None = None) -> None:
    for label, text in (("Error", message), ("Hint", hint)):
        if text:
            click.echo(f"{label}: {error_text(text)}", file=file, err=file is None)


def error_text(message: str) -> str:
    """Return a message whose further lines are indented, so that they cannot imitate our own lines."""
    first, *more = visible(message, keep="\n").split("\n")
    return "\n".join([first, *(line if line.startswith(("- ", " ")) else f"  {line}" for line in more)])


def print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    import traceback

    lines = "".join(traceback.format_exception(kind, error, trace))
    click.echo(visible(redact(lines), keep="\n"), err=True, nl=False)


def print_json(value: Any, indent: int | None = 2) -> None:
    click.echo(json_text(value, indent))


def json_text(value: Any, indent: int | None = None) -> str:
    import json

    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    return visible_json(json.dumps(value, ensure_ascii=not is_unicode, indent=indent))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | None]], empty: str) -> None:
    """Print a table on stdout, a line for each row, or `empty` on stderr if it has no rows."""
    if not rows:
        print_note(empty)
        return
    from rich.cells import cell_len

    lines = [list(columns), *([visible(cell or "") for cell in row] for row in rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    for line in (lines[0], ["─" * width for width in widths], *lines[1:]):
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        click.echo("   ".join(padded).rstrip())


def print_styled(*parts: Part) -> None:
    """Print one line of a result, with colors on a terminal. It is never wrapped."""
    from rich.console import Console

    Console(highlight=False).print(_text(*parts), soft_wrap=True)


def print_markdown(text: str) -> None:
    """Print Markdown with styles on a terminal, and as it is in a file or a pipe."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Markdown
    from rich.text import Text

    class UnwrappedCode(CodeBlock):
        """A line of code stays one line, so that a person can copy a command from the terminal."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(str(self.text).rstrip(), style="bold", no_wrap=True, overflow="ignore")

    class ManualPage(Markdown):
        elements = {**Markdown.elements, "fence": UnwrappedCode}  # noqa: RUF012

    Console(highlight=False).print(ManualPage(text), crop=False)


@contextmanager
def spinner(text: str) -> Iterator[None]:
    from rich.console import Console

    with Console(stderr=True).status(_text(text)):
        yield


LINE_SECONDS = 30.0


@contextmanager
def progress_bar(*, lines: bool = True) -> Iterator[None]:
    """Show the progress of the work on stderr: a bar on a terminal, otherwise a line every 30 seconds, if wanted."""
    if progress.is_reported():
        yield
    elif sys.stderr.isatty():
        with ExitStack() as stack, progress.report_to(_Bar(stack)):
            yield
    elif lines:
        with progress.report_to(ProgressLines(print_note)):
            yield
    else:
        yield


class _Bar:
    """A bar that appears with the first step, and is removed at the end."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._shown: Progress | None = None
        self._step = ""

    def __call__(self, done: int, total: int, step: str) -> None:
        if self._shown is None:
            self._shown = self._stack.enter_context(_rich_progress())
        if step != self._step:
            for task in self._shown.task_ids:
                self._shown.remove_task(task)
            self._shown.add_task(step, total=None, amount="")  # without a total, the bar only moves
            self._step = step
        if total:
            self._shown.update(self._shown.task_ids[0], completed=done, total=total, amount=_amount(done, total))


def _rich_progress() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    text, amount = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[amount]}", markup=False)
    return Progress(text, BarColumn(), amount, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


class ProgressLines:
    """Progress without a terminal: a line every 30 seconds."""

    def __init__(self, print_progress: Callable[[str], None]) -> None:
        self._print = print_progress
        self._next_at = time.monotonic() + LINE_SECONDS

    def __call__(self, done: int, total: int, step: str) -> None:
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + LINE_SECONDS
            share = f": {100 * done // total} %, {_amount(done, total)}" if total else ""
            self._print(f"{step}{share}")


def _amount(done: int, total: int) -> str:
    """Return "1.2 GB of 3.9 GB"."""
    return " of ".join(units.size(size).partition(" (")[0] for size in (done, total))


def format_time(stamp: str | None) -> str:
    """Return a timestamp for people: `2026-11-21 11:30:00 UTC`."""
    return "" if stamp is None else f"{stamp[:10]} {stamp[11:19]} UTC"


def _text(*parts: Part) -> "Text":
    from rich.text import Text

    # Text, not markup: a name may contain brackets.
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((visible(text), style) for text, style in styled))


# --- failures --------------------------------------------------------------------------------------------------------


class CommandError(click.ClickException):
    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        print_error(self.message, self.hint, file)


class WrongUsage(click.UsageError):
    """A mistake in the arguments, which click's message repeats."""

    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error_text(error.format_message().replace("\t", "  ")), error.ctx)


def as_command_error(
    error: Exception, find_fault: "Callable[[BaseException], OperatorError | None] | None" = None
) -> CommandError | None:
    """Return the message for an error of the packages below, or None for a bug, which needs a traceback."""
    match error:
        case click.FileError():
            return CommandError(error.format_message())
        case OperatorError():
            return CommandError(error.message, error.hint)
        case _ if find_fault is not None and (fault := find_fault(error)) is not None:
            return CommandError(fault.message, fault.hint)
        case SocialpubError():
            # `detail` contains the first field error.
            fields = [field.sentence for field in error.errors[1:] if field.message not in error.detail]
            return CommandError("\n- ".join([error.detail, *fields]))
        case _ if _is_of_database(error) or _is_of_database(error.__context__):  # peewee's own errors have a context
            return CommandError(
                f"The database cannot be used: {error}.", "Check the disk and the owner of the files in data_dir."
            )
        case PermissionError() if error.filename:
            return CommandError(
                f"{error.filename} cannot be used: {error.strerror}.",
                "Run the command as the user that socialpub runs as.",
            )
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EROFS | errno.EIO):
            where = f" for {error.filename}" if error.filename else ""
            return CommandError(
                f"The disk cannot be used{where}: {error.strerror}.", "Free some space, or check the disk."
            )
        case FileExistsError() | NotADirectoryError() | IsADirectoryError() if error.filename:
            return CommandError(
                f"{error.filename} cannot be used: {error.strerror}.",
                "Move or rename the file or folder with this name, then run the command again.",
            )
        case _:
            return None


def _is_of_database(error: BaseException | None) -> bool:
    # A command without a database does not import sqlite3. With too many open files, no import works.
    sqlite = sys.modules.get("sqlite3")
    return sqlite is not None and isinstance(error, sqlite.DatabaseError)
