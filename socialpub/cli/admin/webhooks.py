"""The commands for webhooks: the addresses that get events (contract 10.6)."""

import sys

import click

from socialpub.cli.admin import ID
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import CommandError, format_time, print_json, print_line, print_note, print_table
from socialpub.core import commands, units
from socialpub.core.errors import InvalidRequest
from socialpub.ops.webhooks import calls, receivers
from socialpub.ops.webhooks.receivers import DEFAULT_EVENTS, EVENTS, WebhookHealth


@click.command("add-webhook")
@click.argument("url", metavar="URL")
@click.option(
    "--event",
    "events",
    type=click.Choice(EVENTS),
    multiple=True,
    help=f"Repeatable. Default: {', '.join(DEFAULT_EVENTS)}.",
)
@pass_command_context
def add_webhook(context: CommandContext, url: str, events: tuple[str, ...]) -> None:
    """Send the events of deliveries to URL, from now on. Print the id and the secret.

    The secret is shown only once. With it, the receiver verifies the signatures (Standard Webhooks). A user name and a
    password in URL are sent as Basic. If URL is -, the command reads it from standard input.
    """
    try:
        target, name = receivers.parse_url(sys.stdin.readline() if url == "-" else url)
    except InvalidRequest as error:
        raise click.BadParameter(f"it {error.errors[0].message}.", param_hint="URL") from None
    with context.open() as rt:
        webhook_id, secret = rt.write(receivers.add, target, name, events or DEFAULT_EVENTS)
    print_line(webhook_id)
    print_line(secret)
    print_note(f"{name} gets {', '.join(events or DEFAULT_EVENTS)} from now on.")
    print_note("Save the secret now: it is not shown again.")
    print_note(f"To test the webhook, run `{commands.line('admin', 'test-webhook', webhook_id)}`.")


@click.command("list-webhooks")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@pass_command_context
def list_webhooks(context: CommandContext, as_json: bool) -> None:
    """List the webhooks with their lag and last response, without URLs and secrets.

    The lag is the age of the oldest event that was not accepted yet.
    """
    with context.open() as rt:
        webhooks = receivers.list_health(rt.db, rt.now())
    if as_json:
        print_json([_shape(webhook) for webhook in webhooks])
        return
    rows = [
        (
            webhook.row.id,
            webhook.row.name,
            ", ".join(event.removeprefix("delivery.") for event in webhook.row.events),
            units.in_words(webhook.lag_seconds) if webhook.lag_seconds else "none",
            f"{webhook.row.last_response}, {format_time(webhook.row.last_response_at)}"
            if webhook.row.last_response
            else "none",
            _state(webhook),
        )
        for webhook in webhooks
    ]
    add = commands.line("admin", "add-webhook", "URL")
    columns = ("ID", "Address", "Events", "Lag", "Last response", "State")
    print_table(columns, rows, f"No webhooks yet. Add a webhook with `{add}`.")


@click.command("remove-webhook")
@click.argument("webhook_id", type=ID, metavar="ID")
@pass_command_context
def remove_webhook(context: CommandContext, webhook_id: str) -> None:
    """Stop sending events to a webhook. A call in progress may finish."""
    with context.open() as rt:
        name = rt.write(receivers.remove, webhook_id)
    print_note(f"The webhook {name} is removed.")


@click.command("test-webhook")
@click.argument("webhook_id", type=ID, metavar="ID")
@pass_command_context
def test_webhook(context: CommandContext, webhook_id: str) -> None:
    """Send a signed test event to a webhook and print the response.

    The exit code is 1 if the webhook did not accept the event.
    """
    with context.open() as rt:
        response = calls.send_test(rt, webhook_id)
    print_line(response.text)
    if not response.accepted:
        raise CommandError(
            "The webhook did not accept the test event.",
            f"A webhook accepts an event with any 2xx within {calls.SECONDS:.0f} seconds.",
        )


def _shape(webhook: WebhookHealth) -> dict[str, object]:
    row = webhook.row
    shape = {
        "id": row.id,
        "address": row.name,
        "events": row.events,
        "addedAt": row.added_at,
        "lagSeconds": round(webhook.lag_seconds),
        "waitingSince": webhook.waiting_since,
        "lastResponse": row.last_response,
        "lastResponseAt": row.last_response_at,
        "failingSince": row.failing_since,
        "nextTryAt": row.next_at if webhook.waiting_since else None,
        "accepted": row.accepted,
        "failedTries": row.failed,
        "leftOut": row.left_out,
        "disabledAt": row.disabled_at,
    }
    return {name: value for name, value in shape.items() if value is not None}


def _state(webhook: WebhookHealth) -> str:
    if webhook.row.disabled_at:
        return f"disabled by a 410, {format_time(webhook.row.disabled_at)}"
    if webhook.row.failing_since:
        next_try = f", next try {format_time(webhook.row.next_at)}" if webhook.waiting_since else ""
        return f"failing since {format_time(webhook.row.failing_since)}{next_try}"
    return f"{units.count(webhook.row.left_out, 'event', 'events')} left out" if webhook.row.left_out else "works"
