"""The command line: results on stdout, everything else on stderr, and every failure with its next step.

`--help` and `--version` load almost nothing: this module imports the others where it needs them.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from socialpub.cli.context import CommandContext
from socialpub.cli.fast_import import load

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@contextmanager
def _safe_usage() -> Iterator[None]:
    """Make the message about wrong arguments safe to print."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        from socialpub.cli.output import WrongUsage

        if isinstance(error, WrongUsage):
            raise
        raise WrongUsage(_explain_misplaced_config(error) or error) from error


def _explain_misplaced_config(error: click.UsageError) -> click.UsageError | None:
    if not isinstance(error, click.NoSuchOption) or error.option_name != "--config" or error.ctx is None:
        return None
    program, _, command = error.ctx.command_path.partition(" ")
    message = f"Write --config before the command: {program} --config FILE {command}"
    return click.UsageError(message, error.ctx)


class LazyGroup(click.Group):
    """A group that imports a command only when the command runs, and turns errors into messages."""

    def __init__(self, *, sections: Mapping[str, Mapping[str, tuple[str, str]]], **kwargs: Any) -> None:
        """`sections` maps each command to its place (`module:function`) and its line in the help, by heading."""
        self.sections = sections
        places = {name: place for commands in sections.values() for name, place in commands.items()}
        placeholders = {name: click.Command(name, short_help=line) for name, (_, line) in places.items()}
        super().__init__(commands=placeholders, **kwargs)
        self._places = {name: place for name, (place, _) in places.items()}

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _safe_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _safe_usage():
                return super().invoke(ctx)
        except click.UsageError:
            raise
        except Exception as error:
            from socialpub.cli.output import CommandError, as_command_error

            if isinstance(error, CommandError):
                raise
            command = ctx.find_object(CommandContext)
            failure = as_command_error(error, command.find_fault if command else None)
            if failure is None:
                raise
            raise failure from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._places:
            return None
        module, _, function = self._places[cmd_name].partition(":")
        command: click.Command = getattr(load(module), function)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands that begin with this text, without their modules."""
        from click.shell_completion import CompletionItem

        items = [CompletionItem(name, help=item.short_help) for name, item in self.commands.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in items if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


class MainGroup(LazyGroup):
    """The group of all commands, whose help also lists those of `admin`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        admin = load("socialpub.cli.admin").SECTIONS
        for heading in {**self.sections, **admin}:
            rows = [(name, line) for name, (_, line) in self.sections.get(heading, {}).items()]
            rows += [(f"admin {name}", line) for name, (_, line) in admin.get(heading, {}).items()]
            with formatter.section(heading):
                formatter.write_dl(rows)


SECTIONS = {
    "Run": {
        "init": ("socialpub.cli.setup:init", "Create a configuration, a data folder and secret.key."),
        "config": ("socialpub.cli.setup:show_config", "Show which configuration is used, or an example of every key."),
        "serve": ("socialpub.cli.run:serve", "Run the appliance: web server and worker together."),
        "web": ("socialpub.cli.run:web", "Run the web server alone."),
        "worker": ("socialpub.cli.run:worker", "Run the worker alone."),
        "doctor": ("socialpub.cli.setup:run_doctor", "Check everything, and print a remedy for each finding."),
        "manual": ("socialpub.cli.manual:show_manual", "Print the manual."),
        "demo": ("socialpub.cli.demo.command:demo", "Run a demo of all functions, without any account."),
        "sandbox": ("socialpub.cli.sandbox:sandbox", "Run simulated networks for tests."),
        "completion": ("socialpub.cli.completion:completion", "Print the completion script of a shell."),
        "admin": ("socialpub.cli.admin:admin", "Manage keys, profiles, posts and the appliance."),
    },
    "Publish": {
        "post": ("socialpub.cli.client.post:post", "Publish from a shell, and wait for the outcome."),
        "status": ("socialpub.cli.client.posts:status", "Show the state of a post, or of the newest posts."),
        "cancel": ("socialpub.cli.client.posts:cancel", "Cancel a scheduled post."),
        "retry": ("socialpub.cli.client.post:retry", "Publish a post again where it failed."),
        "profiles": ("socialpub.cli.client.posts:profiles", "Show the accounts that a key sees."),
        "mcp": ("socialpub.cli.client.mcp:mcp", "Serve the tools for agents over stdin and stdout."),
    },
    "Accounts": {},
    "Keys": {},
    "Backups": {
        "backup": ("socialpub.cli.backup:write_backup", "Write a consistent backup of the database and the media."),
        "verify-backup": ("socialpub.cli.backup:verify_backup", "Check whether a backup is complete and unchanged."),
        "restore": (
            "socialpub.cli.backup:restore_backup",
            "Restore a backup into an empty data_dir, and pause publishing.",
        ),
    },
}
"""The commands under the headings of the manual's page Commands."""


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from socialpub.cli.output import print_line
        from socialpub.core import version

        print_line(f"socialpub {version.VERSION}")
        ctx.exit()


@click.group(
    cls=MainGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),  # the loader reports a file that it cannot read
    help="The configuration file. Default: $SOCIALPUB_CONFIG, ./config.toml or /etc/socialpub/config.toml.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Publish to X, TikTok and Pinterest through one HTTP API, from your own server."""
    from socialpub.cli.output import accept_every_character, print_traceback
    from socialpub.core import commands

    # Other users must not read posts, tokens and addresses in new files. Child processes inherit the mask.
    os.umask(0o077)
    sys.excepthook = print_traceback
    accept_every_character()
    commands.repeat_config(config)
    ctx.ensure_object(CommandContext).config = config
