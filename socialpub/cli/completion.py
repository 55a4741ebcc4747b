"""`socialpub completion`: the completion of commands and options in a shell (contract 10.5.8)."""

import click
from click.shell_completion import get_completion_class

from socialpub.cli.output import print_script
from socialpub.core.commands import NAME

SHELLS = ("bash", "zsh", "fish")
VARIABLE = f"_{NAME.upper()}_COMPLETE"
"""The variable through which click's scripts ask the program for completions."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell. Add the line of your shell to its configuration file.

    \b
    bash:  `eval "$(socialpub completion bash)"`
    zsh:   `eval "$(socialpub completion zsh)"`
    fish:  `socialpub completion fish | source`
    """
    kind = get_completion_class(shell)
    assert kind is not None
    print_script(kind(ctx.find_root().command, {}, NAME, VARIABLE).source())
