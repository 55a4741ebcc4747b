"""`notify-test`: whether messages to the owner arrive."""

import click

from socialpub.accounts.remedies import Door
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.errors import CommandError
from socialpub.cli.output import print_line, print_note
from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.ops.notify import findings, sending, services


@click.command("notify-test")
@pass_command_context
def notify_test(context: CommandContext) -> None:
    """Send a test message to every service of `[notify] urls` and of the dashboard, and say what became of each.

    Ends with 1 when one of them did not accept it.
    """
    with context.open() as rt:
        if not services.list_all(rt):
            raise OperatorError(
                "There is no address to send a message to: notify.urls is empty.",
                "Add an address under System in the dashboard, or under [notify] in the configuration. "
                f"`{commands.line('config', '--example')}` shows how.",
            )
        findings.refuse_wrong_addresses(rt.settings)
        failed = 0
        for service, failure in sending.test(rt):
            print_line(f"{service.name}: {'sent' if failure is None else f'not sent, {failure}'}")
            failed += failure is not None
        unknown = findings.unknown_to_processes(rt, Door.SHELL)
        if unknown is not None:
            print_note(unknown)
    if failed:
        raise CommandError(
            "1 service did not accept the message."
            if failed == 1
            else f"{failed} services did not accept the message.",
            "Check their addresses under System in the dashboard or in [notify] urls: https://appriseit.com/services/",
        )
