"""A group of commands that imports each command when it is used, so that `--help` is quick."""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from socialpub.cli.context import CommandContext
from socialpub.cli.output import CommandError, WrongUsage, as_command_error


@contextmanager
def _safe_usage() -> Iterator[None]:
    """Make the message of wrong arguments safe to print. The help stays as it is."""
    try:
        yield
    except (WrongUsage, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        raise WrongUsage(_of_misplaced_config(error) or error) from error


def _of_misplaced_config(error: click.UsageError) -> click.UsageError | None:
    """Return a better message for `--config` behind a command: it belongs before it."""
    if not isinstance(error, click.NoSuchOption) or error.option_name != "--config" or error.ctx is None:
        return None
    program, _, command = error.ctx.command_path.partition(" ")
    message = f"--config stands before the command: {program} --config FILE {command}"
    return click.UsageError(message, error.ctx)


def _load(name: str) -> ModuleType:
    """Import a command's module without garbage collection, which takes a fifth of the time and finds nothing."""
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()


class LazyGroup(click.Group):
    """Shows its commands in their order, and turns failures into messages that say what to do."""

    def __init__(self, *, places: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        """`places` contains for each command its place (`module:function`) and its line in the help."""
        placeholders = {name: click.Command(name, short_help=line) for name, (_, line) in places.items()}
        super().__init__(commands=placeholders, **kwargs)
        self._places = {name: place for name, (place, _) in places.items()}

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _safe_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An error of the packages below becomes a message and exit code 1."""
        try:
            with _safe_usage():
                return super().invoke(ctx)
        except (click.UsageError, CommandError):
            raise
        except Exception as error:
            known = ctx.find_object(CommandContext)
            failure = as_command_error(error, known.find_fault if known else None)
            if failure is None:
                raise
            raise failure from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._places:
            return None
        module, _, function = self._places[cmd_name].partition(":")
        command: click.Command = getattr(_load(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of the help without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help or "") for name, command in self.commands.items()])
