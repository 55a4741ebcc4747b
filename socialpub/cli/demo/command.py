"""`socialpub demo`: the whole appliance at work within seconds, without an account anywhere."""

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from socialpub.cli.context import Appliance
from socialpub.cli.errors import Failure

if TYPE_CHECKING:
    from rich.console import Console

    from socialpub.cli.demo.processes import Stage
    from socialpub.cli.demo.transcript import Tour
    from socialpub.cli.demo.video import Film

Posts = dict[str, dict[str, Any]]
"""What was published and how it ended, by "picture" and "video"."""

ACCOUNT = "demo"
PICTURE, VIDEO = "evening.png", "sunset.mp4"
ALTS = {
    "picture": "An evening sky over violet hills",
    "video": "The sun goes down behind violet hills",
}
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
    """Show everything at work: the appliance, a sandbox that plays the networks, and first posts. Needs no account."""
    import httpx2
    from rich.console import Console

    from socialpub.cli.demo.processes import Stage
    from socialpub.cli.demo.transcript import Tour
    from socialpub.cli.demo.video import Film
    from socialpub.cli.output import working

    # A variable of the surroundings must not send the demo's posts to a real network.
    for name in [name for name in os.environ if name.startswith("SOCIALPUB_")]:
        del os.environ[name]
    # A stop asked for by SIGTERM tidies up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(highlight=False)
    stage = Stage(folder or _usual_folder())
    try:
        with ExitStack() as ending:
            film = Film(stage.folder / VIDEO)
            ending.callback(film.drop)
            with working("Starting the appliance and the networks"):
                ending.enter_context(stage)
            _greet(stage, console)
            tour = Tour(stage.url, stage.addresses, console)
            ending.callback(tour.close)
            posts = _perform(stage, tour, film)
            _show_around(stage, console, posts)
            _demand_success(stage, posts)
            if not once:
                _stay(stage, console)
    except httpx2.TransportError as error:
        raise Failure(
            f"The appliance or the sandbox stopped answering: {error}", f"The logs lie in {stage.folder}."
        ) from error
    except KeyboardInterrupt:
        if once:
            raise


def _usual_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "socialpub-demo"


def _greet(stage: "Stage", console: "Console") -> None:
    from rich.text import Text

    console.print(Text.assemble(("socialpub", "bold"), f" runs at {stage.url}"))
    console.print(f"X, TikTok and Pinterest are played at {stage.sandbox_url}; nothing leaves this machine.")


def _perform(stage: "Stage", tour: "Tour", film: "Film") -> Posts:
    """Connect accounts, make a key, and publish as any caller would."""
    from datetime import UTC, datetime

    from socialpub.accounts import api_keys
    from socialpub.cli.demo.image import paint

    with Appliance(stage.config).open() as rt:
        tour.step("Connect an account of each network, on its own consent page")
        tour.command(_configured(stage))
        profiles = {}
        for name, provider in rt.providers.items():
            tour.command(f"socialpub admin connect-profile {name}")
            profiles[name] = _connect(rt, name)
            tour.came(f"@{ACCOUNT} gave consent on {provider.label}: profile {profiles[name]}")

        tour.step("Choose a board, which every pin needs")
        tour.command(f"socialpub admin list-boards {profiles['pinterest']}")
        board_id, board_name = _first_board(rt, profiles["pinterest"])
        tour.came(f"“{board_name}”, board {board_id}")

        tour.step("Make an API key")
        tour.command("socialpub admin create-key demo")
        tour.use(rt.write(api_keys.create, "demo"), stage.folder)

    now = datetime.now(UTC)
    picture = paint(f"hello from your own machine, {now:%d %B %Y}")
    (stage.folder / PICTURE).write_bytes(picture)

    def publish(kind: str, artifact_id: str) -> str:
        text = f"A {kind} from my own machine, sent at {now:%H:%M:%S} UTC."
        options = {"tiktok": {"privacyLevel": "SELF_ONLY"}, "pinterest": {"boardId": board_id, "title": f"My {kind}"}}
        return tour.publish(text, list(profiles.values()), artifact_id, ALTS[kind], options)

    tour.step("Upload a picture")
    artifact_id = tour.upload(picture, PICTURE, "image/png")
    tour.step("Post it to all three networks")
    ids = {"picture": publish("picture", artifact_id)}
    tour.step("Upload and post a video, with the same four calls")
    with tour.quietly():
        ids["video"] = publish("video", tour.upload(film.finish(), VIDEO, "video/mp4"))

    tour.step("Wait for what becomes of them")
    posts = {}
    for kind, post_id in ids.items():
        posts[kind] = tour.wait(post_id, kind)
    return posts


def _connect(rt: Any, provider: str) -> str:
    """An account's consent as its owner gives it, in a browser that comes back to the appliance; the profile's id."""
    from socialpub.accounts import connect, consents
    from socialpub.accounts.profiles import Connected
    from socialpub.cli.demo import consent_click

    begun = connect.begin(rt, provider)
    consent_click.allow(begun.url, ACCOUNT)
    outcome = consents.outcome(rt, begun.id)
    match outcome:
        case Connected():
            return outcome.profile_id
        case consents.Failed():
            raise Failure(outcome.message, outcome.hint)
        case None:
            raise Failure(f"The browser did not come back to {begun.redirect_uri}.", "Its log says more.")


def _first_board(rt: Any, profile_id: str) -> tuple[str, str]:
    """A board's id and name. The sandbox's accounts have boards from the beginning."""
    from socialpub.accounts import pinterest_boards

    listed = pinterest_boards.list_all(rt, profile_id)
    if not listed:
        raise Failure("The account on the sandbox's Pinterest has no board.", "Choose another folder: --folder DIR")
    return listed[0].board.id, listed[0].board.name


def _show_around(stage: "Stage", console: "Console", posts: Posts) -> None:
    from rich.text import Text

    from socialpub.providers.registry import LABELS

    rows = [
        *((f"{label} as a reader sees it", f"{stage.sandbox_url}/{name}/feed") for name, label in LABELS.items()),
        ("The API’s reference", f"{stage.url}/api/v1/openapi-docs"),
        ("Is it healthy?", f"{stage.url}/readyz"),
    ]
    console.print()
    console.print(Text("Have a look", style="bold"))
    for label, value in rows:
        console.print(Text.assemble(f"   {label:<30}", (value, "cyan")), soft_wrap=True)
    console.print()
    console.print(Text("How they went out, call by call", style="bold"))
    console.print(Text(f"   {_configured(stage)}", style="dim"), soft_wrap=True)
    for kind, post in posts.items():
        line = f"   socialpub admin show-post {post['id']}   # the {kind}"
        console.print(Text(line, style="dim"), soft_wrap=True)


def _configured(stage: "Stage") -> str:
    return f"export SOCIALPUB_CONFIG={stage.config}"


def _demand_success(stage: "Stage", posts: Posts) -> None:
    """Raises `Failure`, which names every network that has not got its post, and why."""
    from socialpub.providers.registry import LABELS

    missing = [
        f"The {kind} is not on {LABELS[delivery['provider']]} “{delivery['profileName']}” ({delivery['status']}): "
        f"{delivery.get('errorMessage') or 'it has no outcome yet'}"
        for kind, post in posts.items()
        for delivery in post["deliveries"]
        if delivery["status"] != "published"
    ]
    if missing:
        raise Failure("\n".join(missing), f"The logs lie in {stage.folder}. To begin anew: --folder DIR")


def _stay(stage: "Stage", console: "Console") -> None:
    """Until Ctrl-C."""
    console.print("\nEverything stays up until you press Ctrl-C.")
    looks = threading.Event()
    while (fallen := stage.fallen()) is None:
        looks.wait(LOOK_SECONDS)
    raise Failure(f"The {fallen} has ended by itself.", f"Its log: {stage.logs[fallen]}")
