"""`socialpub post` and `retry`: publish from a shell and report the outcome (contract 10.5.3 to 10.5.7)."""

import sys
from collections.abc import Sequence
from datetime import datetime

import click
from click.shell_completion import CompletionItem

from socialpub.cli.client import arguments
from socialpub.cli.client.arguments import Options
from socialpub.cli.client.connection import connect
from socialpub.cli.client.outcome import Json, Report
from socialpub.cli.client.publication import PostToSend, new_key, send_thread, set_reply
from socialpub.cli.output import print_note
from socialpub.core.post_summary import Result


def _complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    return [CompletionItem(incomplete, type="file")]


json_option = click.option("--json", "as_json", is_flag=True, help="Print the API's response instead.")
wait_option = click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=click.IntRange(0),
    default=600,
    show_default=True,
    help="Wait for the outcome at most this long.",
)
no_wait_option = click.option("--no-wait", is_flag=True, help="Do not wait for the outcome.")


@click.command()
@click.argument("text", metavar="[TEXT|-]", required=False)
@click.option(
    "--to",
    "references",
    metavar="REF",
    multiple=True,
    required=True,
    help="An account: its id, network, @username, label or network:label. Can be repeated.",
)
@click.option(
    "--media",
    "sources",
    metavar="FILE|URL",
    multiple=True,
    shell_complete=_complete_file,
    help="An image or a video. Can be repeated.",
)
@click.option("--alt", "alts", metavar="TEXT", multiple=True, help="The alt text of the --media at the same position.")
@click.option("--at", metavar="TIME", help=f"Publish at this time: {arguments.TIME_FORMS}.")
@click.option(
    "--option",
    "pairs",
    metavar="NETWORK.KEY=VALUE",
    multiple=True,
    help="An option of a network, such as x.replySettings=following. Can be repeated.",
)
@click.option("--reply-to", metavar="POST", help="Reply to your own post with this id, after it is published.")
@click.option(
    "--thread",
    metavar="FILE",
    shell_complete=_complete_file,
    help="Publish the parts of this file as a thread. Lines `---` separate the parts.",
)
@click.option("--once", metavar="KEY", help="Accept nothing if KEY was used in the last 24 hours.")
@wait_option
@no_wait_option
@click.option("--no-strict", is_flag=True, help="Accept the post even if a network would refuse it.")
@json_option
def post(
    text: str | None,
    references: tuple[str, ...],
    sources: tuple[str, ...],
    alts: tuple[str, ...],
    at: str | None,
    pairs: tuple[str, ...],
    reply_to: str | None,
    thread: str | None,
    once: str | None,
    wait_seconds: int,
    no_wait: bool,
    no_strict: bool,
    as_json: bool,
) -> None:
    """Publish TEXT (- reads stdin) and wait for the outcome.

    SOCIALPUB_URL and SOCIALPUB_KEY are the URL and a key of the appliance. Without these variables, the command reads
    `url` and `key` from ~/.config/socialpub/client.toml.

    \b
    Exit codes:
      0  Published or, without waiting, accepted.
      1  A delivery failed.
      2  Wrong usage.
      3  An outcome is unknown.
      4  Nothing was accepted.
      5  Still pending when the waiting ended.
    """
    if thread is not None and text is not None:
        raise click.UsageError("Give TEXT or --thread, not both.")
    texts = arguments.read_thread(thread) if thread is not None else [arguments.read_text(text)]
    if not (texts[0] or sources):
        raise click.UsageError("Give TEXT, --media or both.")
    arguments.check_once(once, f"/{len(texts)}" if thread is not None else "")
    scheduled_at = None if at is None else arguments.read_time(at)
    options = arguments.read_options(pairs)
    items, files = arguments.read_media(sources, alts)
    wait_seconds = 0 if no_wait or scheduled_at is not None else wait_seconds
    with connect() as connection, Report(connection, as_json, wait_seconds) as report:
        profiles = arguments.find_profiles(references, connection.get("profiles")["data"])
        if thread is not None or reply_to is not None:
            arguments.refuse_without_replies(profiles, "--reply-to" if thread is None else "--thread")
        ids, networks = [profile["id"] for profile in profiles], {profile["provider"] for profile in profiles}
        first = _draft(texts[0], ids, scheduled_at, options)
        if items:
            first["media"] = items
        if reply_to is not None:
            set_reply(first, reply_to, networks)
        shared = arguments.options_of_each_part(options) if len(texts) > 1 else {}
        drafts = [first, *(_draft(text, ids, scheduled_at, shared) for text in texts[1:])]
        keys = [once if once is None or thread is None else f"{once}/{number}" for number in range(1, len(texts) + 1)]
        parts = [PostToSend(draft, key) for draft, key in zip(drafts, keys, strict=True)]
        parts[0].files = files
        if scheduled_at is not None:
            print_note(f"Time: {scheduled_at.isoformat()}")
        result = send_thread(report, parts, strict=not no_strict)
        if len(report.posts) == len(parts) and wait_seconds == 0:
            result = Result.PUBLISHED  # accepted
    sys.exit(result)


def _draft(text: str | None, profile_ids: Sequence[str], scheduled_at: datetime | None, options: Options) -> Json:
    content = {"body": text, "scheduledAt": scheduled_at.isoformat() if scheduled_at else None}
    draft: Json = {"post": {name: value for name, value in content.items() if value}, "profiles": profile_ids}
    return {**draft, "providerOptions": options} if options else draft


@click.command()
@click.argument("post_id", metavar="ID")
@click.option("--include-unknown", is_flag=True, help="Also retry unknown outcomes, which can then appear twice.")
@wait_option
@no_wait_option
@json_option
def retry(post_id: str, include_unknown: bool, wait_seconds: int, no_wait: bool, as_json: bool) -> None:
    """Publish a post again where it failed, and wait for the outcome. The exit codes are those of `post`."""
    wait_seconds = 0 if no_wait else wait_seconds
    with connect() as connection, Report(connection, as_json, wait_seconds) as report:
        body = {"includeUnknown": include_unknown}
        report.send(lambda: connection.post("posts", post_id, "retry", idempotency_key=new_key(), json=body))
        result = report.wait()
    sys.exit(result if wait_seconds else Result.PUBLISHED)
