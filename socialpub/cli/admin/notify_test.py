"""`notify-test`: whether messages to the owner arrive."""

import click

from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.errors import CommandError
from socialpub.cli.output import print_line
from socialpub.core.errors import OperatorError
from socialpub.ops.notify import findings, sending


@click.command("notify-test")
@pass_command_context
def notify_test(context: CommandContext) -> None:
    """Send a test message to every service of `[notify] urls`, and say what became of each.

    Ends with 1 when one of them did not take it.
    """
    with context.open() as rt:
        if not rt.settings.notify.urls:
            raise OperatorError(
                "There is nobody to tell: notify.urls is empty.",
                "Add an address under [notify] in the configuration: socialpub config --example shows how.",
            )
        findings.refuse_wrong_addresses(rt.settings)
        failed = 0
        for service, failure in sending.test(rt):
            print_line(f"{service.name}: {'sent' if failure is None else f'not sent, {failure}'}")
            failed += failure is not None
    if failed:
        raise CommandError(
            "1 service did not take the message." if failed == 1 else f"{failed} services did not take the message.",
            "Check their addresses in [notify] urls: https://appriseit.com/services/",
        )
