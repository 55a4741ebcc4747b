"""How a command fails: `Error:` says what, `Hint:` what to do about it, and the exit code is 1."""

import errno
import sqlite3
from typing import IO, Any

import click

from socialpub.cli.command_lines import typed_here
from socialpub.cli.output import error_text, print_error
from socialpub.core.errors import OperatorError, SocialpubError
from socialpub.db import damage


class CommandError(click.ClickException):
    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        # It is shown when the command, and what it was given, are gone.
        super().__init__(typed_here(message))
        self.hint = hint and typed_here(hint)

    def show(self, file: IO[Any] | None = None) -> None:
        print_error(self.message, self.hint, file)


class WrongUsage(click.UsageError):
    """What click says about arguments, which it repeats."""

    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error_text(error.format_message().replace("\t", "  ")), error.ctx)


def as_command_error(error: Exception) -> CommandError | None:
    """What to show for an error that a lower room raised; None for a mistake of ours, whose traceback is wanted."""
    match error:
        case click.FileError():
            return CommandError(error.format_message())
        case OperatorError():
            return CommandError(error.message, error.hint)
        case SocialpubError():
            # The first one is what `detail` says.
            fields = [field.sentence for field in error.errors[1:] if field.message not in error.detail]
            return CommandError("\n- ".join([error.detail, *fields]))
        case _ if (how := damage.of(error)) is not None:
            return CommandError(f"The database is damaged: {how}.", damage.REMEDY)
        case _ if _is_full(error):
            return CommandError("The disk is full: the database cannot be written.", "Free some space, and try again.")
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


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk began it: what SQLite and peewee say after that, in its context, tells nothing."""
    while error is not None:
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        error = error.__context__
    return False
