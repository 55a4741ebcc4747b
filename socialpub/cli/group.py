"""A group of commands: in the order in which they are added, and with failures that say what to do."""

from typing import Any

import click

from socialpub.cli.errors import as_failure


class Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Turn what the rooms below raise into a message and exit code 1."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            failure = as_failure(error)
            if failure is None:
                raise
            raise failure from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """As a newcomer needs them, not by the alphabet."""
        return list(self.commands)
