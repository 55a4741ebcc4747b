"""`socialpub demo`: the whole appliance at work within seconds, without an account anywhere."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from socialpub.cli.appliance import Appliance
from socialpub.cli.failure import Failure

if TYPE_CHECKING:
    from rich.console import Console

    from socialpub.cli.stage import Stage

WHO = {"username": "demo"}
FILE_NAME = "evening.png"
ALT = "An evening sky over violet hills, with the words: socialpub, hello from your own machine"
LOOK_SECONDS = 1.0


@click.command(short_help="See everything at work, without any account.")
@click.option("--once", is_flag=True, help="End with 0 when all is published.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where it keeps its data. Default: socialpub-demo in your cache folder.",
)
def demo(once: bool, folder: Path | None) -> None:
    """Show everything at work: the appliance, a sandbox that plays X, and a first post. Needs no account."""
    from rich.console import Console

    from socialpub.cli.screen import working
    from socialpub.cli.stage import Stage

    # A stop asked for by SIGTERM tidies up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False)
    stage = Stage(folder or _usual_folder())
    try:
        with working("Starting the appliance and the sandbox"):
            stage.__enter__()
        try:
            post, key = _perform(stage, console)
            _show_around(stage, console, post, key)
            unpublished = [one for one in post["deliveries"] if one["status"] != "published"]
            if unpublished:
                raise Failure("\n".join(_why(one) for one in unpublished), f"The logs lie in {stage.folder}.")
            if not once:
                _stay(stage, console)
        finally:
            stage.__exit__()
    except KeyboardInterrupt:
        if once:
            raise


def _usual_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "socialpub-demo"


def _perform(stage: "Stage", console: "Console") -> tuple[dict[str, Any], str]:
    """Connect an account, make a key, and publish as any caller would; the post as it ended, and the key."""
    from datetime import UTC, datetime

    from rich.text import Text

    from socialpub import keys
    from socialpub.cli.picture import paint
    from socialpub.cli.tour import Tour

    admin = f"socialpub --config {stage.config} admin"
    with Appliance(stage.config).open() as rt:
        console.print(Text("Connect an account", style="bold"))
        grant = f"curl -d '{json.dumps(WHO)}' {stage.sandbox_url}/_control/x/grant"
        console.print(Text(f"   {grant} | {admin} import-profile x", style="dim"), soft_wrap=True)
        profile_id, account = _connect(rt, stage)
        console.print(Text.assemble("   ", ("✓ ", "green"), f"{account}: profile {profile_id}"), soft_wrap=True)
        console.print()
        console.print(Text("Make an API key", style="bold"))
        console.print(Text(f"   {admin} create-key demo", style="dim"), soft_wrap=True)
        key = rt.write(keys.create, "demo")
        console.print(Text.assemble("   ", ("✓ ", "green"), f"KEY={key}"), soft_wrap=True)
    now = datetime.now(UTC)
    picture = paint(f"hello from your own machine, {now:%d %B %Y}")
    (stage.folder / FILE_NAME).write_bytes(picture)
    tour = Tour(stage.url, key, console)
    try:
        artifact_id = tour.upload(picture, FILE_NAME)
        text = f"Hello from my own machine. It is {now:%H:%M:%S} UTC and this went out by itself."
        return tour.wait(tour.publish(text, [profile_id], artifact_id, ALT)), key
    finally:
        tour.close()


def _connect(rt: Any, stage: "Stage") -> tuple[str, str]:
    """One profile on the sandbox's X; its id and the account's name."""
    import httpx2

    from socialpub import credentials, profiles

    answer = httpx2.post(f"{stage.sandbox_url}/_control/x/grant", json=WHO, trust_env=False)
    answer.raise_for_status()
    imported = profiles.import_account(rt, "x", credentials.read(json.dumps(answer.json())))
    profile = profiles.find(rt.reader, imported.profile_id)
    assert profile is not None
    return profile.id, f"@{profile.username}"


def _show_around(stage: "Stage", console: "Console", post: dict[str, Any], key: str) -> None:
    from rich.text import Text

    # The address that X would give it, on the stand-in.
    urls = [
        delivery["url"].replace("https://x.com", f"{stage.sandbox_url}/x")
        for delivery in post["deliveries"]
        if "url" in delivery
    ]
    rows = [
        ("The post", " ".join(urls)),
        ("What a reader sees", f"{stage.sandbox_url}/x/feed"),
        ("The API's reference", f"{stage.url}/api/v1/openapi-docs"),
        ("Is it healthy?", f"{stage.url}/readyz"),
        ("API key", key),
        ("Why it went as it did", f"socialpub --config {stage.config} admin show-post {post['id']}"),
    ]
    console.print()
    for label, value in rows:
        if value:
            console.print(Text.assemble((f"{label:<24}", "bold"), value), soft_wrap=True)


def _why(delivery: dict[str, Any]) -> str:
    reason = delivery.get("errorMessage") or "it has no outcome yet"
    return f"Not published to {delivery['provider']} “{delivery['profileName']}” ({delivery['status']}): {reason}"


def _stay(stage: "Stage", console: "Console") -> None:
    """Until Ctrl-C."""
    console.print("\nIt stays up until you press Ctrl-C.")
    looks = threading.Event()
    while (fallen := stage.fallen()) is None:
        looks.wait(LOOK_SECONDS)
    raise Failure(f"The {fallen} has ended by itself.", f"Its log: {stage.logs[fallen]}")
