"""The command line: results on stdout, everything else on stderr, and every failure says what to do next.

Commands import what they need only when they run: `--help` is quick, and a worker never loads the web server.
"""

from pathlib import Path

import click

from socialpub.cli.admin import admin
from socialpub.cli.backup import backup, restore, verify_backup
from socialpub.cli.context import Appliance
from socialpub.cli.demo.command import demo
from socialpub.cli.doctor import doctor
from socialpub.cli.group import Commands
from socialpub.cli.init import init
from socialpub.cli.sandbox import sandbox
from socialpub.cli.serve import serve, web, worker


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The configuration. Default: $SOCIALPUB_CONFIG, else ./config.toml, else /etc/socialpub/config.toml.",
)
@click.version_option(package_name="socialpub", message="socialpub %(version)s")
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Publish to X, TikTok and Pinterest through one HTTP API, from a machine of your own."""
    appliance = ctx.ensure_object(Appliance)
    appliance.config = config


for command in (init, serve, demo, doctor, admin, backup, verify_backup, restore, web, worker, sandbox):
    main.add_command(command)
