"""How a command fails: `Error:` says what, `Hint:` what to do about it, and the exit code is 1."""

import errno
import sqlite3
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import click

from socialpub.cli.output import error_text, print_error
from socialpub.core.errors import OperatorError, SocialpubError

if TYPE_CHECKING:
    from socialpub.ops.file_owners import FileFault


class CommandError(click.ClickException):
    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        print_error(self.message, self.hint, file)


class WrongUsage(click.UsageError):
    """What click says about arguments, which it repeats."""

    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error_text(error.format_message().replace("\t", "  ")), error.ctx)


def as_command_error(
    error: Exception, find_fault: "Callable[[BaseException], FileFault | None] | None" = None
) -> CommandError | None:
    """What to show for an error that a lower room raised; None for a mistake of ours, whose traceback is wanted."""
    match error:
        case click.FileError():
            return CommandError(error.format_message())
        case OperatorError():
            return CommandError(error.message, error.hint)
        case _ if find_fault is not None and (fault := find_fault(error)) is not None:
            return CommandError(fault.message, fault.remedy)
        case SocialpubError():
            # The first one is what `detail` says.
            fields = [field.sentence for field in error.errors[1:] if field.message not in error.detail]
            return CommandError("\n- ".join([error.detail, *fields]))
        case _ if isinstance(error, sqlite3.DatabaseError) or isinstance(error.__context__, sqlite3.DatabaseError):
            # peewee raises classes of its own, in whose context stands SQLite's.
            return CommandError(
                f"The database cannot be used: {error}.", "Check the disk, and who owns the files in data_dir."
            )
        case PermissionError() if error.filename:
            return CommandError(
                f"{error.filename} cannot be used: {error.strerror}.",
                "Run the command as the user that socialpub runs as.",
            )
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EROFS | errno.EIO):
            where = f" for {error.filename}" if error.filename else ""
            return CommandError(f"The disk cannot be used{where}: {error.strerror}.", "Free some space, or check it.")
        case FileExistsError() | NotADirectoryError() | IsADirectoryError() if error.filename:
            return CommandError(
                f"{error.filename} cannot be used: {error.strerror}.", "Something else lies there. Move it away."
            )
        case _:
            return None
