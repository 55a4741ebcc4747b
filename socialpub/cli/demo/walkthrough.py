"""What the demo does: connect accounts, make a key, and publish as any caller would."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from socialpub.accounts import api_keys, connect, consents, pinterest_boards, sign_in_links
from socialpub.accounts.profiles import Connected
from socialpub.accounts.sign_in_links import Purpose
from socialpub.cli.context import CommandContext
from socialpub.cli.demo import consent_click
from socialpub.cli.demo.api_client import ApiClient
from socialpub.cli.demo.image import paint
from socialpub.cli.demo.processes import DemoProcesses
from socialpub.cli.demo.transcript import Transcript
from socialpub.cli.demo.video import DemoVideo
from socialpub.cli.errors import CommandError
from socialpub.core import commands
from socialpub.runtime import Runtime

Posts = dict[str, dict[str, Any]]
"""What was published and how it ended, by "picture" and "video"."""

ACCOUNT = "demo"
PICTURE, VIDEO = "evening.png", "sunset.mp4"
ALTS = {
    "picture": "An evening sky over violet hills",
    "video": "The sun goes down behind violet hills",
}


def run(processes: DemoProcesses, client: ApiClient, transcript: Transcript, video: DemoVideo) -> Posts:
    with CommandContext(processes.config).open() as rt:
        profiles = _connect_accounts(rt, processes, transcript)
        board_id = _choose_board(rt, profiles["pinterest"], transcript)
        transcript.step("Make an API key")
        transcript.command(commands.line("admin", "create-key", "demo"))
        client.use_key(rt.write(api_keys.create, "demo"), processes.folder)

    now = datetime.now(UTC)
    picture = paint(f"hello from your own machine, {now:%d %B %Y}")
    (processes.folder / PICTURE).write_bytes(picture)

    def publish(kind: str, artifact_id: str) -> str:
        text = f"A {kind} from my own machine, sent at {now:%H:%M:%S} UTC."
        options = {"tiktok": {"privacyLevel": "SELF_ONLY"}, "pinterest": {"boardId": board_id, "title": f"My {kind}"}}
        return client.publish(text, list(profiles.values()), artifact_id, ALTS[kind], options)

    transcript.step("Upload a picture")
    artifact_id = client.upload(picture, PICTURE, "image/png")
    transcript.step("Post it to all three networks")
    ids = {"picture": publish("picture", artifact_id)}
    transcript.step("Upload and post a video, with the same four calls")
    with transcript.hiding_commands():
        ids["video"] = publish("video", client.upload(video.wait(), VIDEO, "video/mp4"))

    transcript.step("Wait for the outcomes")
    return {kind: client.wait_for(post_id, kind) for kind, post_id in ids.items()}


def sign_in_link(processes: DemoProcesses) -> str:
    """The address that lets a browser into the dashboard, once."""
    with CommandContext(processes.config).open() as rt:
        return f"{processes.url}/login?token={rt.write(sign_in_links.make, Purpose.SIGN_IN)}"


def use_config(config: Path) -> str:
    """The line by which commands in another terminal find the demo's appliance."""
    return f"export {commands.CONFIG_VARIABLE}={shlex.quote(str(config))}"


def _connect_accounts(rt: Runtime, processes: DemoProcesses, transcript: Transcript) -> dict[str, str]:
    """The profiles' ids, by network."""
    transcript.step("Connect an account of each network, on its own consent page")
    transcript.command(use_config(processes.config))
    profiles = {}
    for name, provider in rt.providers.items():
        transcript.command(commands.line("admin", "connect-profile", name))
        profiles[name] = _connect(rt, name)
        transcript.result(f"@{ACCOUNT} gave consent on {provider.label}: profile {profiles[name]}")
    return profiles


def _connect(rt: Runtime, provider: str) -> str:
    """An account's consent as its owner gives it, in a browser that comes back to the appliance; the profile's id."""
    begun = connect.begin(rt, provider)
    consent_click.allow(begun.url, ACCOUNT)
    outcome = consents.outcome(rt, begun.id)
    match outcome:
        case Connected():
            return outcome.profile_id
        case consents.Failed():
            raise CommandError(outcome.message, outcome.hint)
        case None:
            raise CommandError(f"The browser did not come back to {begun.redirect_uri}.", "Its log tells more.")


def _choose_board(rt: Runtime, profile_id: str, transcript: Transcript) -> str:
    """A board's id. The sandbox's accounts have boards from the beginning."""
    transcript.step("Choose a board, which every pin needs")
    transcript.command(commands.line("admin", "list-boards", profile_id))
    listed = pinterest_boards.list_all(rt, profile_id)
    if not listed:
        raise CommandError(
            "The account on the sandbox's Pinterest has no board.", "Choose another folder: --folder DIR"
        )
    board = listed[0].board
    transcript.result(f"“{board.name}”, board {board.id}")
    return board.id
