"""The commands `list-posts`, `show-post`, `approve-post`, `stop-post` and `retry-post`."""

import json
import sys
from collections import Counter
from typing import Any

import click

from socialpub.accounts.api_keys import OWNER
from socialpub.cli.admin import ID
from socialpub.cli.admin.appliance import note_paused
from socialpub.cli.context import CommandContext, pass_command_context
from socialpub.cli.output import (
    CommandError,
    ask_to_continue,
    format_time,
    print_json,
    print_line,
    print_note,
    print_table,
)
from socialpub.core import commands
from socialpub.core.post_summary import api_outcome, next_try
from socialpub.db.queries import api_json, post_list
from socialpub.db.queries.post_list import PostFilter
from socialpub.db.states import OUTCOME_LETTERS, PostStatus, State
from socialpub.publishing.posts import details as post_details
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.details import DeliveryDetails, PostDetails
from socialpub.runtime import Runtime

LONGEST_TEXT = 60
SIGNS = {"pending": "…", "published": "✓", "failed": "✗", "unknown": "?", "canceled": "–"}


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@pass_command_context
def show_post(context: CommandContext, post_id: str, as_json: bool) -> None:
    """Show a post with its plans and attempts."""
    with context.open() as rt:
        note_paused(rt)
        details = _load(rt, post_id)
    if as_json:
        plans = [_plan_json(delivery) for delivery in details.deliveries]
        print_json({"post": details.post, "version": details.version, "plans": plans, "attempts": details.attempts})
        return
    _show(details)


@click.command()
@click.option("--status", type=click.Choice([status.value for status in PostStatus]), help="Only posts in this status.")
@click.option(
    "--delivery-status", type=click.Choice(list(OUTCOME_LETTERS)), help="Only posts with a delivery in this status."
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="The maximum number of posts."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@pass_command_context
def list_posts(
    context: CommandContext, status: str | None, delivery_status: str | None, limit: int, as_json: bool
) -> None:
    """List posts, the newest first. A delivery that is `unknown` failed, but may have been published anyway."""
    with context.open() as rt:
        note_paused(rt)
        page = post_list.load_page(rt.db, PostFilter(status=status, outcome=delivery_status, per_page=limit))
        posts = [json.loads(post) for post in page.shown] + [_find(rt, post_id) for post_id in page.rest]
    if as_json:
        print_json(posts)
        return
    print_table(("ID", "Time", "Status", "Deliveries", "Text"), [_line(post) for post in posts], "No posts found.")
    if more := page.total - len(posts):
        print_note(f"{more} older {'post is' if more == 1 else 'posts are'} not shown. Use --limit to show more.")


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@click.option(
    "--include-unknown", is_flag=True, help="Also retry deliveries with an unknown outcome. A post may appear twice."
)
@pass_command_context
def retry_post(context: CommandContext, post_id: str, include_unknown: bool) -> None:
    """Retry the failed deliveries of a post now, and print the id of the new post."""
    with context.open() as rt:
        new_id = rt.write(retries.retry, post_id, OWNER, include_unknown)
        new = _find(rt, new_id)
        note_paused(rt)
    print_line(new_id)
    for delivery in new["deliveries"]:
        print_note(f"The post is sent to {delivery['provider']} “{delivery['profileName']}”.")


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@click.option("--if-version", metavar="VERSION", help="Approve only this version, which `show-post` prints.")
@pass_command_context
def approve_post(context: CommandContext, post_id: str, if_version: str | None) -> None:
    """Approve a post of a key with approval. The post is published at its time, or now if its time has passed.

    The command shows the post and asks. In a script, `--if-version` is required. A later change by such a key needs
    another approval.
    """
    if if_version is None and not sys.stdin.isatty():
        show = commands.line("admin", "show-post", post_id)
        raise click.UsageError(f"There is no terminal, so --if-version is required. `{show}` prints the version.")
    with context.open() as rt:
        details = _load(rt, post_id)
        if if_version is None:
            _show(details)
            if details.waits_for_approval:
                ask_to_continue("Approve this version?")
        if not rt.write(posts.approve, post_id, details.version if if_version is None else if_version):
            raise CommandError("The post does not wait for an approval.")
        details = _load(rt, post_id)
        note_paused(rt)
    if if_version is not None:
        _show_head(details.post)
    at = details.post.get("scheduledAt", "")
    when = f"at {format_time(at)}" if at > rt.stamp() else "now"
    if details.waits_for_post:
        when = "after the post to which it replies"
    print_note(f"The post is approved and is published {when}.")


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@pass_command_context
def stop_post(context: CommandContext, post_id: str) -> None:
    """Stop the open deliveries of a post. A delivery past its commit continues. A scheduled post is canceled."""
    with context.open() as rt:
        before = _find(rt, post_id)["status"]
        states = rt.write(posts.stop, post_id)
        after = _find(rt, post_id)
    for delivery, state in zip(after["deliveries"], states.values(), strict=True):
        print_line(f"{delivery['provider']} {delivery['profileName']}: {delivery['status']}")
        if not State(state).final:
            print_note("  The delivery is past its commit. The outcome is read back, and the post is not sent again.")
    if before in ("settled", "canceled"):
        print_note(f"The post is already {before}. There is nothing to stop.")


def _load(rt: Runtime, post_id: str) -> PostDetails:
    details = post_details.load_details(rt, rt.db, post_id)
    if details is None:
        raise _no_post()
    return details


def _find(rt: Runtime, post_id: str) -> dict[str, Any]:
    text = api_json.post(rt.db, post_id)
    if text is None:
        raise _no_post()
    post: dict[str, Any] = json.loads(text)
    return post


def _no_post() -> CommandError:
    return CommandError("No post has this id.", "The response to POST /api/v1/posts contains the id.")


def _line(post: dict[str, Any]) -> tuple[str, ...]:
    counted = Counter((SIGNS[api_outcome(delivery)], delivery["provider"]) for delivery in post["deliveries"])
    deliveries = ", ".join(f"{sign} {provider}{f' ×{n}' if n > 1 else ''}" for (sign, provider), n in counted.items())
    text = " ".join(post.get("body", "").split()) or f"({len(post['media'])} media)"
    time = format_time(post.get("scheduledAt", post["createdAt"]))
    return (
        post["id"],
        time,
        post["status"],
        deliveries,
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…",
    )


def _plan_json(details: DeliveryDetails) -> dict[str, Any]:
    steps = [{"step": step.name, "kind": step.kind, "done": step.done} for step in details.steps]
    plan = {"deliveryId": details.delivery.id, "profileId": details.delivery.profile_id, "steps": steps}
    return plan if details.link_card is None else {**plan, "linkCard": details.link_card}


def _show(details: PostDetails) -> None:
    _show_head(details.post)
    print_line(f"  version   {details.version}")
    for delivery in details.deliveries:
        _show_delivery(delivery)


def _show_head(post: dict[str, Any]) -> None:
    print_line(f"Post {post['id']}: {post['status']}")
    for label, key in (("accepted", "createdAt"), ("scheduled", "scheduledAt"), ("canceled", "canceledAt")):
        if key in post:
            print_line(f"  {label:<10}{format_time(post[key])}")
    for line in post["body"].split("\n") if "body" in post else ():
        print_line(f"  | {line}")
    for media in post["media"]:
        alt = f", “{media['alt']}”" if "alt" in media else ""
        print_line(f"  + {media.get('contentType', 'media')} {media['artifactId']}{alt}")


def _show_delivery(details: DeliveryDetails) -> None:
    delivery = details.shown
    print_line()
    print_line(f"{SIGNS[delivery['status']]} {delivery['provider']} “{delivery['profileName']}”: {delivery['status']}")
    for key in ("url", "providerPostId", "errorMessage"):
        if key in delivery:
            print_line(f"  {delivery[key]}")
    if delivery["providerOptions"]:
        print_line(f"  options {json.dumps(delivery['providerOptions'], ensure_ascii=False)}")
    if card := details.link_card:
        for text in _card_lines(card):
            print_line(f"  link card: {text}")
    if not details.steps:
        starts = f"starts at {format_time(details.delivery.run_at)}"
        waits = "waits for your approval" if details.is_unapproved else starts
        print_line(f"  no plan yet, {waits}" if delivery["status"] == "pending" else "")
    for step in details.steps:
        mark = "✓" if step.done else "▸" if step.is_next else "·"
        note = "  (makes it public)" if step.commits else ""
        print_line(f"  {mark} {step.name}{note}")
    if details.attempts:
        print_table(
            ("Time", "Step", "Outcome", "Code", "Request id", "Message"),
            [_attempt_row(attempt) for attempt in details.attempts],
            "",
        )


def _card_lines(card: dict[str, Any]) -> list[str]:
    if "unread" in card:
        return [f"{card['uri']} is being read. You can approve the post after that."]
    image = "with an image, which the dashboard shows" if "image" in card else None
    values = (card["uri"], card.get("title"), card.get("description"), image, card.get("note"))
    return [text for text in values if text]


def _attempt_row(attempt: dict[str, Any]) -> tuple[str | None, ...]:
    instant = next_try(attempt)
    next_at = f"Next: {format_time(instant)}." if instant else None
    return (
        format_time(attempt["startedAt"]),
        attempt["step"],
        attempt["outcome"],
        attempt.get("providerCode"),
        attempt.get("requestId"),
        " ".join(part for part in (attempt.get("message"), next_at) if part),
    )
