"""`show-post` and `stop-post`."""

import json
from typing import TYPE_CHECKING, Any

import click

from socialpub.cli.admin.arguments import ID
from socialpub.cli.context import Appliance, pass_appliance
from socialpub.cli.errors import Failure
from socialpub.cli.output import moment, say, show_json, show_table

if TYPE_CHECKING:
    from socialpub.db.database import Row
    from socialpub.runtime import Runtime

SIGNS = {"pending": "…", "published": "✓", "failed": "✗", "canceled": "–"}


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@pass_appliance
def show_post(appliance: Appliance, post_id: str, as_json: bool) -> None:
    """Show how a post fared: plans, attempts, answers."""
    from socialpub.db import json_views

    with appliance.open() as rt:
        post = _post(rt, post_id)
        attempts = json.loads(json_views.attempts(rt.reader, post_id, rt.stamp()))
        rows = rt.reader.all("SELECT * FROM delivery WHERE post_id = ? ORDER BY position", (post_id,))
    if as_json:
        plans = [{"deliveryId": row["id"], "profileId": row["profile_id"], "steps": _steps(row)} for row in rows]
        show_json({"post": post, "plans": plans, "attempts": attempts})
        return
    _show_head(post)
    for row, delivery in zip(rows, post["deliveries"], strict=True):
        _show_delivery(row, delivery, [one for one in attempts if one["deliveryId"] == row["id"]])


@click.command()
@click.argument("post_id", metavar="ID", type=ID)
@pass_appliance
def stop_post(appliance: Appliance, post_id: str) -> None:
    """Send nothing more of a post. What is past its commit goes on; a scheduled post is canceled."""
    from socialpub.db.models import State
    from socialpub.publishing import posts

    with appliance.open() as rt:
        before = _post(rt, post_id)["status"]
        states = rt.write(posts.stop, post_id)
        after = _post(rt, post_id)
        for delivery, state in zip(after["deliveries"], states.values(), strict=True):
            click.echo(f"{delivery['provider']} {delivery['profileName']}: {delivery['status']}")
            if not State(state).final:
                say("  It is past its commit: what the network made of it counts, and it is not sent again.")
        if before in ("settled", "canceled"):
            say(f"The post was {before} already; nothing was left to stop.")


def _post(rt: "Runtime", post_id: str) -> dict[str, Any]:
    from socialpub.db import json_views

    found = json_views.post(rt.reader, post_id)
    if found is None:
        raise Failure("No post has this id.", "The id stands in the answer to POST /api/v1/posts.")
    post: dict[str, Any] = json.loads(found)
    return post


def _steps(row: "Row") -> list[dict[str, Any]]:
    plan = json.loads(row["plan"] or "[]")
    published = row["state"] == "published"
    return [
        {"step": name, "kind": kind, "done": published or index < row["step"]}
        for index, (name, kind) in enumerate(plan)
    ]


def _show_head(post: dict[str, Any]) -> None:
    click.echo(f"Post {post['id']}: {post['status']}")
    for label, key in (("accepted", "createdAt"), ("scheduled", "scheduledAt"), ("canceled", "canceledAt")):
        if key in post:
            click.echo(f"  {label:<10}{moment(post[key])}")
    for line in post.get("body", "").splitlines():
        click.echo(f"  | {line}")
    for media in post["media"]:
        alt = f", “{media['alt']}”" if "alt" in media else ""
        click.echo(f"  + {media.get('contentType', 'media')} {media['artifactId']}{alt}")


def _show_delivery(row: "Row", delivery: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    sign = SIGNS[delivery["status"]]
    click.echo(f"\n{sign} {delivery['provider']} “{delivery['profileName']}”: {delivery['status']}")
    for key in ("url", "providerPostId", "errorMessage"):
        if key in delivery:
            click.echo(f"  {delivery[key]}")
    if delivery["providerOptions"]:
        click.echo(f"  options {json.dumps(delivery['providerOptions'], ensure_ascii=False)}")
    steps = _steps(row)
    if not steps:
        click.echo(f"  no plan yet; it starts at {moment(row['run_at'])}" if delivery["status"] == "pending" else "")
    for index, step in enumerate(steps):
        here = delivery["status"] == "pending" and index == row["step"]
        tick = "✓" if step["done"] else "▸" if here else "·"
        mark = "  (makes it public)" if step["kind"] == "commit" else ""
        click.echo(f"  {tick} {step['step']}{mark}")
    if attempts:
        _show_attempts(attempts)


def _show_attempts(attempts: list[dict[str, Any]]) -> None:
    rows = [
        (
            moment(one["startedAt"]),
            one["step"],
            one["outcome"],
            one.get("providerCode"),
            one.get("requestId"),
            " ".join(
                part
                for part in (one.get("message"), f"Next: {moment(one['nextAt'])}." if "nextAt" in one else None)
                if part
            ),
        )
        for one in attempts
    ]
    show_table(("Time", "Step", "Outcome", "Code", "Request id", "Message"), rows, "")
