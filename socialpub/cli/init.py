"""`socialpub init`: the folder in which everything begins."""

from pathlib import Path

import click

from socialpub.cli.output import print_line, print_note
from socialpub.core.settings import init_template


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path), default=Path())
def init(folder: Path) -> None:
    """Write config.toml, the data folder and secret.key into DIR (default: here). Overwrites nothing."""
    for path in init_template.create(folder):
        print_line(str(path))
    config = folder / "config.toml"
    here = "" if folder == Path() else f" --config {config}"
    print_note()
    print_note(f"Next: fill in [providers.x] in {config}, then start it with: socialpub{here} serve")
    print_note("Keep secret.key safe: without it the stored tokens cannot be read.")
