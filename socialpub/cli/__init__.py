"""The command line: results on stdout, everything else on stderr, and every failure says what to do next."""

import os
import sys
from pathlib import Path

import click

from socialpub.cli.context import CommandContext
from socialpub.cli.group import LazyGroup
from socialpub.cli.output import print_line, print_traceback
from socialpub.core import commands

COMMANDS = {
    "init": ("socialpub.cli.setup:init", "Write a configuration, a data folder and secret.key."),
    "config": ("socialpub.cli.setup:show_config", "Show which configuration is used, or an example of every key."),
    "serve": ("socialpub.cli.run:serve", "Run the appliance: web and worker together."),
    "demo": ("socialpub.cli.demo.command:demo", "See everything at work, without any account."),
    "doctor": ("socialpub.cli.doctor:run_doctor", "Check everything, and say what to do about each finding."),
    "admin": ("socialpub.cli.admin:admin", "Keys, profiles, posts: everything that needs its owner."),
    "backup": ("socialpub.cli.backup:write_backup", "Write a consistent backup of database and media."),
    "verify-backup": ("socialpub.cli.backup:verify_backup", "Read a backup to its end and report whether it is whole."),
    "restore": ("socialpub.cli.backup:restore_backup", "Restore a backup into an empty data_dir, paused."),
    "web": ("socialpub.cli.run:web", "Run the web server alone."),
    "worker": ("socialpub.cli.run:worker", "Run the worker alone."),
    "install-service": (
        "socialpub.cli.install.command:install_service",
        "Make a service of this machine, with systemd.",
    ),
    "uninstall-service": (
        "socialpub.cli.install.command:uninstall_service",
        "Take the service away again; configuration and data stay.",
    ),
    "go-back": ("socialpub.cli.install.go_back:go_back", "Undo an upgrade of the service."),
    "sandbox": ("socialpub.cli.sandbox:sandbox", "Run stand-ins for the networks, to try everything."),
}


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        # Nothing else needs it, and in a checkout it starts git.
        from socialpub.core import version

        print_line(f"socialpub {version.current()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),  # the loader says how to read it
    help="The configuration. Default: $SOCIALPUB_CONFIG, else ./config.toml, else /etc/socialpub/config.toml.",
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
    """Publish to X, TikTok and Pinterest through one HTTP API, from a machine of your own."""
    # No other user may read posts, tokens and addresses in any new file. Child processes inherit this.
    os.umask(0o077)
    sys.excepthook = print_traceback
    commands.settle(config)
    ctx.ensure_object(CommandContext).config = config
