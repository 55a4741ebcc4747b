"""`socialpub status`, `cancel` and `profiles`: posts and accounts from a shell (contract 10.5.6)."""

import click

from socialpub.cli.client.connection import WrongState, connect
from socialpub.cli.client.outcome import describe
from socialpub.cli.client.post import json_option
from socialpub.cli.output import format_time, json_text, print_json, print_line, print_outcome, print_table
from socialpub.core.post_summary import summarize
from socialpub.core.references import clearest_reference
from socialpub.core.secrets.redaction import visible

NEWEST = 10


@click.command()
@click.argument("post_id", metavar="[ID]", required=False)
@json_option
def status(post_id: str | None, as_json: bool) -> None:
    """Show the state of a post, or of the newest ten. The exit code is 0 for every state."""
    with connect() as connection:
        if post_id is None:
            response = connection.get("posts", perPage=NEWEST)
            lines = []
        else:
            response = connection.get("posts", post_id)
            lines = [] if as_json else [response["data"]["id"], *describe(connection, response["data"])]
    if as_json:
        print_json(response, indent=None)
    elif post_id is None:
        columns = ("ID", "Time", "Status", "Deliveries")
        rows = [
            (post["id"], format_time(post["createdAt"]), post["status"], "; ".join(summarize(post)))
            for post in response["data"]
        ]
        print_table(columns, rows, "This key sees no posts.")
    for line in lines:
        print_line(line)


@click.command()
@click.argument("post_id", metavar="ID")
@json_option
def cancel(post_id: str, as_json: bool) -> None:
    """Cancel a scheduled post. The exit code is 4 if the post cannot be canceled."""
    with connect() as connection:
        try:
            response = connection.post("posts", post_id, "cancel")
        except WrongState:
            # The response to the first try was lost, and the repeat finds a canceled post.
            if not connection.has_repeated:
                raise
            response = connection.get("posts", post_id)
            if response["data"]["status"] != "canceled":
                raise
    for line in (
        [json_text(response)] if as_json else [response["data"]["id"], *map(visible, summarize(response["data"]))]
    ):
        print_outcome(line)


@click.command()
@json_option
def profiles(as_json: bool) -> None:
    """Show the accounts that the key sees, and how to name them in --to."""
    with connect() as connection:
        response = connection.get("profiles")
    if as_json:
        print_json(response, indent=None)
        return
    rows = [
        (
            profile["id"],
            clearest_reference(profile),
            f"@{profile['username']}" if "username" in profile else "",
            profile["status"],
        )
        for profile in response["data"]
    ]
    print_table(("ID", "Account", "Username", "Status"), rows, "This key sees no accounts.")
