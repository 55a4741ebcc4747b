"""The demo: connect accounts, create a key, and publish as any caller does."""

import shlex
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2

from socialpub.accounts import api_keys, boards, connect, consents, sign_in
from socialpub.accounts.profiles import Connected
from socialpub.accounts.sign_in import Purpose
from socialpub.cli.context import CommandContext
from socialpub.cli.demo.api_client import ApiClient, Transcript
from socialpub.cli.demo.media import DemoVideo, paint_image
from socialpub.cli.demo.processes import DemoProcesses
from socialpub.cli.output import CommandError
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
CONSENT_SECONDS = 30


def run(processes: DemoProcesses, client: ApiClient, transcript: Transcript, video: DemoVideo) -> Posts:
    with CommandContext(processes.config).open() as rt:
        profiles = _connect_accounts(rt, processes, transcript)
        board_id = _choose_board(rt, profiles["pinterest"], transcript)
        transcript.step("Make an API key")
        transcript.command(commands.line("admin", "create-key", "demo"))
        client.use_key(rt.write(api_keys.create, "demo"), processes.folder)

    now = datetime.now(UTC)
    picture = paint_image(f"hello from your own machine, {now:%d %B %Y}")
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
    """Return the address that signs a browser in to the dashboard, once."""
    with CommandContext(processes.config).open() as rt:
        return f"{processes.url}/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}"


def use_config(config: Path) -> str:
    """Return the line that leads commands in another terminal to the demo's appliance."""
    return f"export {commands.CONFIG_VARIABLE}={shlex.quote(str(config))}"


def _connect_accounts(rt: Runtime, processes: DemoProcesses, transcript: Transcript) -> dict[str, str]:
    """Connect an account of each network. Return the profiles' ids by network."""
    transcript.step("Connect an account of each network, on its own consent page")
    transcript.command(use_config(processes.config))
    profiles = {}
    for name, provider in rt.providers.items():
        transcript.command(commands.line("admin", "connect-profile", name))
        profiles[name] = _connect(rt, name)
        transcript.result(f"@{ACCOUNT} gave consent on {provider.label}: profile {profiles[name]}")
    return profiles


def _connect(rt: Runtime, provider: str) -> str:
    """Connect an account as its owner does in a browser. Return the profile's id."""
    begun = connect.begin(rt, provider)
    allow(begun.url, ACCOUNT)
    outcome = consents.outcome(rt, begun.id)
    match outcome:
        case Connected():
            return outcome.profile_id
        case consents.Failed():
            raise CommandError(outcome.message, outcome.hint)
        case None:
            raise CommandError(f"The browser did not come back to {begun.redirect_uri}.", "Its log tells more.")


def _choose_board(rt: Runtime, profile_id: str, transcript: Transcript) -> str:
    """Return a board's id. The sandbox's accounts have boards."""
    transcript.step("Choose a board, which every pin needs")
    transcript.command(commands.line("admin", "list-boards", profile_id))
    listed = boards.list_all(rt, profile_id)
    if not listed:
        raise CommandError(
            "The account on the sandbox's Pinterest has no board.", "Choose another folder: --folder DIR"
        )
    board = listed[0].board
    transcript.result(f"“{board.name}”, board {board.id}")
    return board.id


# --- a browser for the consent pages ----------------------------------------------------------------------------------


def allow(consent_url: str, account: str) -> None:
    """Give the consent of `account` as a browser does: read the page and send its form. Raise CommandError."""
    with httpx2.Client(trust_env=False, timeout=CONSENT_SECONDS) as browser:
        page = browser.get(consent_url)
        form = ConsentForm()
        form.feed(page.text)
        if page.status_code != 200 or form.action is None or account not in form.accounts:
            raise CommandError(
                f"The sandbox shows no consent page for @{account} ({page.status_code}).", "Its log tells more."
            )
        response = browser.post(
            urljoin(consent_url, form.action), data={**form.fields, "account": account, "decision": "allow"}
        )
        if response.status_code not in (302, 303) or "location" not in response.headers:
            raise CommandError(
                f"The sandbox's consent page did not lead back ({response.status_code}).", "Its log tells more."
            )
        # The appliance reports the outcome, whatever this page shows.
        browser.get(urljoin(consent_url, response.headers["location"]))


class ConsentForm(HTMLParser):
    """The fields of the page's form, unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.accounts: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = found.get("action", "")
        elif tag == "input" and found.get("name") == "account":
            self.accounts.add(found.get("value", ""))
        elif tag == "input" and "name" in found and "disabled" not in found and _is_sent(found):
            self.fields[found["name"]] = found.get("value", "on")


def _is_sent(found: dict[str, str]) -> bool:
    """Return whether a browser sends this input: a box or a choice must be checked."""
    return found.get("type") not in ("checkbox", "radio") or "checked" in found
