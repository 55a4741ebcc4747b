"""`socialpub demo`: the whole appliance at work within seconds, without an account anywhere."""

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import click
import httpx2

from socialpub.cli.demo import walkthrough
from socialpub.cli.demo.api_client import ApiClient, Transcript
from socialpub.cli.demo.media import DemoVideo
from socialpub.cli.demo.processes import DemoProcesses
from socialpub.cli.demo.walkthrough import Posts
from socialpub.cli.output import CommandError, print_line, print_styled, spinner
from socialpub.core import commands
from socialpub.providers.registry import LABELS

POLL_SECONDS = 1.0


@click.command()
@click.option("--once", is_flag=True, help="End with 0 when all is published.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where it keeps its data. Default: socialpub-demo in your cache folder.",
)
def demo(once: bool, folder: Path | None) -> None:
    """Show everything at work: the appliance, stand-ins for the networks, and first posts. Needs no account."""
    # A variable of another appliance must not send the demo's posts to a real network.
    for name in [name for name in os.environ if name.startswith("SOCIALPUB_")]:
        del os.environ[name]
    # SIGTERM tidies up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    processes = DemoProcesses(folder or Path(cache, "socialpub-demo"))
    # The commands that it shows follow this variable, as `use_config` says.
    os.environ[commands.CONFIG_VARIABLE] = str(processes.config)
    commands.settle(None)
    try:
        with ExitStack() as ending:
            video = DemoVideo(processes.folder / walkthrough.VIDEO)
            ending.callback(video.cancel)
            with spinner("Starting the appliance and the sandbox"):
                ending.enter_context(processes)
            print_styled(("socialpub", "bold"), f" runs at {processes.url}")
            print_line(f"The sandbox at {processes.sandbox_url} stands in for X, TikTok and Pinterest;")
            print_line("nothing leaves this machine.")
            transcript = Transcript()
            client = ApiClient(processes.url, transcript)
            ending.callback(client.close)
            posts = walkthrough.run(processes, client, transcript, video)
            _show_addresses(processes, posts)
            require_success(processes, posts)
            if not once:
                _stay(processes)
    except httpx2.TransportError as error:
        raise CommandError(
            f"The appliance or the sandbox stopped answering: {error}", f"The logs are in {processes.folder}."
        ) from error
    except KeyboardInterrupt:
        if once:
            raise


def _show_addresses(processes: DemoProcesses, posts: Posts) -> None:
    rows = [
        *((f"{label} as a reader sees it", f"{processes.sandbox_url}/{name}/feed") for name, label in LABELS.items()),
        ("The API’s reference", f"{processes.url}/api/v1/openapi-docs"),
        ("Is it healthy?", f"{processes.url}/readyz"),
    ]
    print_line()
    print_styled(("Have a look", "bold"))
    for label, value in rows:
        print_styled(f"   {label:<30}", (value, "cyan"))
    print_line()
    print_styled(("How they were published, call by call", "bold"))
    print_styled((f"   {walkthrough.use_config(processes.config)}", "dim"))
    for kind, post in posts.items():
        print_styled((f"   {commands.line('admin', 'show-post', post['id'])}   # the {kind}", "dim"))


def require_success(processes: DemoProcesses, posts: Posts) -> None:
    """Raises CommandError, which names every network that has not got its post, and why."""
    missing = [
        f"The {kind} is not on {LABELS[delivery['provider']]} “{delivery['profileName']}” ({delivery['status']}): "
        f"{delivery.get('errorMessage') or 'it has no outcome yet'}"
        for kind, post in posts.items()
        for delivery in post["deliveries"]
        if delivery["status"] != "published"
    ]
    if missing:
        raise CommandError(
            "\n".join(missing), f"The logs are in {processes.folder}. To start with new data: --folder DIR"
        )


def _stay(processes: DemoProcesses) -> None:
    """Until Ctrl-C."""
    print_line()
    print_styled(("The dashboard, in which this link signs you in, once", "bold"))
    print_styled("   ", (walkthrough.sign_in_link(processes), "cyan"))
    print_line()
    print_line("Everything keeps running until you press Ctrl-C.")
    pause = threading.Event()
    while (name := processes.exited()) is None:
        pause.wait(POLL_SECONDS)
    raise CommandError(f"The {name} ended unexpectedly.", f"Its log: {processes.logs[name]}")
