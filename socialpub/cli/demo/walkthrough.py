"""The demo's steps: connect accounts, create a key, and publish through the API."""

import io
import json
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from PIL import Image, ImageDraw, ImageFont

from socialpub.accounts import api_keys, boards, connect, consents, sign_in
from socialpub.accounts.connect import Connected
from socialpub.accounts.sign_in import Purpose
from socialpub.cli.context import CommandContext
from socialpub.cli.output import CommandError, print_line, print_styled, spinner
from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.providers.auth import SignIn
from socialpub.providers.registry import EXTENSIONS, LABELS
from socialpub.runtime import Runtime

WAIT_SECONDS = 60
READ_LOG = "For details, read the logs in the demo's folder."
PRIVATE = "visible only to its owner (SELF_ONLY): no public URL"
DATA_OPTION = "  -d '"
MARGIN = "   "
LINE_WIDTH = 93
"""The width of a line of JSON, without the margin."""


class Transcript:
    """Numbered steps, each with its commands and results."""

    def __init__(self) -> None:
        self.shows_commands = True
        self._number = 0

    def step(self, title: str) -> None:
        self._number += 1
        print_line()
        print_styled((f"{self._number}", "bold cyan"), "  ", (title, "bold"))

    def command(self, line: str) -> None:
        for line_of_text in line.split("\n") if self.shows_commands else ():
            print_styled((MARGIN + line_of_text, "dim"))

    def note(self, text: str) -> None:
        print_styled(MARGIN + text)

    def result(self, text: str, good: bool = True) -> None:
        print_styled(MARGIN, ("✓ ", "green") if good else ("✗ ", "red"), text)


def format_json(value: Any, before: int = 0, depth: int = 2) -> str:
    """Return JSON on one line if it fits after `before` characters, otherwise with one member per line."""
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= LINE_WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    indent = "  " * depth
    if isinstance(value, list):
        inner = [format_json(item, len(indent), depth + 1) for item in value]
    else:
        names = [json.dumps(name) + ": " for name in value]
        members = zip(names, value.values(), strict=True)
        inner = [name + format_json(item, len(indent) + len(name), depth + 1) for name, item in members]
    first, last = "[]" if isinstance(value, list) else "{}"
    joined = f",\n{indent}".join(inner)
    return f"{first}\n{indent}{joined}\n{'  ' * (depth - 1)}{last}"


class ApiClient:
    def __init__(self, url: str) -> None:
        self._url = url
        self.transcript = Transcript()
        self._key = ""
        self._client = httpx2.Client(trust_env=False, timeout=WAIT_SECONDS + 30)

    def close(self) -> None:
        self._client.close()

    def use_key(self, key: str, folder: Path) -> None:
        """Use this key from now on, and show the shell variables of the next commands."""
        self._key = key
        show = self.transcript
        show.result("created, with permission to read and write")
        show.note("To run the next commands in another terminal, first run these lines there:")
        show.command(f"cd {folder}")
        show.command(f"API={self._url}/api/v1")
        show.command(f"AUTH='Authorization: Bearer {key}'")
        show.command("JSON='Content-Type: application/json'")

    def upload(self, content: bytes, file_name: str, mime_type: str) -> str:
        """Reserve, send and complete an upload. Return the artifact's id."""
        body = {"fileName": file_name, "mimeType": mime_type, "fileSize": len(content)}
        reservation = self._call("POST", "/uploads", body)
        headers = dict(reservation["requiredHeaders"])
        options = "".join(f' -H "{name}: {value}"' for name, value in headers.items())
        self.transcript.command(f'curl{options} -T {file_name} "$uploadUrl"   # from the response')
        _check(self._client.put(reservation["uploadUrl"], content=content, headers=headers))
        artifact = self._call("POST", "/uploads/complete", {"artifactId": reservation["artifactId"]})
        facts = f"{artifact['kind']}, {artifact['mimeType']}, {artifact['sizeBytes']:,} bytes"
        self.transcript.result(f"{file_name} is examined: {facts}")
        return str(reservation["artifactId"])

    def publish(
        self, text: str, profiles: list[str], artifact_id: str, alt: str, options: Mapping[str, Mapping[str, Any]]
    ) -> str:
        """Create a post that is published now. Return its id."""
        body = {
            "post": {"body": text},
            "profiles": profiles,
            "media": [{"artifactId": artifact_id, "alt": alt}],
            "providerOptions": options,
        }
        post = self._call("POST", "/posts", body)
        self.transcript.result(f"post {post['id']} is accepted, {post['status']}")
        return str(post["id"])

    def wait_for(self, post_id: str, kind: str) -> dict[str, Any]:
        """Return the post when every delivery has an outcome, or after a timeout."""
        path = f"/posts/{post_id}?wait={WAIT_SECONDS}"
        post: dict[str, Any] = self._call("GET", path, waiting_for=f"Publishing the {kind}")
        for delivery in post["deliveries"]:
            label = LABELS[delivery["provider"]]
            good = delivery["status"] == "published"
            otherwise = PRIVATE if good else delivery.get("errorMessage") or f"no outcome within {WAIT_SECONDS} seconds"
            outcome = delivery.get("url") or otherwise
            self.transcript.result(f"{kind:<7}  {label:<9}  {delivery['status']:<9}  {outcome}", good)
        return post

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, waiting_for: str = "") -> Any:
        options = "" if body is None else ' -H "$JSON"'
        data = "" if body is None else f" \\\n{DATA_OPTION}{format_json(body, len(DATA_OPTION))}'"
        self.transcript.command(f'curl -H "$AUTH"{options} "$API{path}"{data}')
        headers = {"authorization": f"Bearer {self._key}"}
        with spinner(waiting_for) if waiting_for else nullcontext():
            response = self._client.request(method, f"{self._url}/api/v1{path}", json=body, headers=headers)
        _check(response)
        return response.json()["data"]


def _check(response: httpx2.Response) -> None:
    if response.is_success:
        return
    try:
        problem = response.json()
        reasons = [error["message"] for error in problem.get("errors", ())]
        detail = "\n- ".join([problem["detail"], *reasons])
    except (ValueError, LookupError, TypeError):
        detail = response.text[:500]
    raise CommandError(f"The appliance responded with {response.status_code}: {detail}", READ_LOG)


# --- the image --------------------------------------------------------------------------------------------------------


def paint_image(words: str, width: int = 1200, height: int = 675) -> bytes:
    """Return a PNG of an evening over hills, with `words` on it."""
    sky = Image.linear_gradient("L").resize((width, height))
    picture = Image.composite(
        Image.new("RGB", (width, height), (255, 158, 94)), Image.new("RGB", (width, height), (38, 36, 92)), sky
    )
    draw = ImageDraw.Draw(picture)
    sun = height * 0.14
    centre = (width * 0.72, height * 0.55)
    draw.ellipse([centre[0] - sun, centre[1] - sun, centre[0] + sun, centre[1] + sun], fill=(255, 226, 158))
    for depth, (base, swing, colour) in enumerate(
        ((0.66, 0.05, (122, 68, 108)), (0.76, 0.04, (82, 50, 96)), (0.87, 0.03, (45, 33, 71)))
    ):
        ridge = [
            (x, height * (base + swing * math.sin(x / width * (4 + depth) + depth * 2) + 0.012 * math.sin(x / 37)))
            for x in range(0, width + 8, 8)
        ]
        draw.polygon([*ridge, (width, height), (0, height)], fill=colour)
    draw.text((width * 0.06, height * 0.1), "socialpub", font=ImageFont.load_default(92), fill=(255, 244, 224))
    draw.text((width * 0.063, height * 0.27), words, font=ImageFont.load_default(34), fill=(255, 214, 170))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


# --- the steps --------------------------------------------------------------------------------------------------------

Posts = dict[str, dict[str, Any]]
"""The posts with their outcomes, by "image" and "video"."""

ACCOUNT = "demo"
HANDLE, APP_PASSWORD = "demo.test", "demo-demo-demo-demo"
"""An account of the sandbox's Bluesky."""
IMAGE, VIDEO = "evening.png", "sunset.mp4"
ALTS = {"image": "An evening sky over violet hills", "video": "The sun goes down behind violet hills"}
CONSENT_SECONDS = 30


def run(config: Path, client: ApiClient, encode_video: Callable[[], bytes]) -> Posts:
    """Publish an image and a video with the appliance of this configuration, and store the files beside it."""
    transcript, folder = client.transcript, config.parent
    with CommandContext(config).open() as rt:
        profiles = _connect_accounts(rt, config, transcript)
        board_id = _choose_board(rt, profiles["pinterest"], transcript)
        transcript.step("Create an API key")
        extended = any(name in EXTENSIONS for name in rt.providers)
        covered = [api_keys.ALL] if extended else []
        options = [word for name in covered for word in ("--provider", name)]
        transcript.command(commands.line("admin", "create-key", "demo", *options))
        client.use_key(rt.write(api_keys.create, "demo", providers=covered), folder)

    now = datetime.now(UTC)
    image = paint_image(f"hello from your own machine, {now:%d %B %Y}")
    (folder / IMAGE).write_bytes(image)

    def publish(kind: str, artifact_id: str) -> str:
        text = f"My {kind} from my own machine, sent at {now:%H:%M:%S} UTC."
        options = {"tiktok": {"privacyLevel": "SELF_ONLY"}, "pinterest": {"boardId": board_id, "title": f"My {kind}"}}
        return client.publish(text, list(profiles.values()), artifact_id, ALTS[kind], options)

    transcript.step("Upload an image")
    artifact_id = client.upload(image, IMAGE, "image/png")
    transcript.step(f"Post the image to all {'four' if len(profiles) == 4 else 'three'} networks")
    ids = {"image": publish("image", artifact_id)}
    transcript.step("Upload and post a video with the same four calls")
    transcript.shows_commands = False
    ids["video"] = publish("video", client.upload(encode_video(), VIDEO, "video/mp4"))
    transcript.shows_commands = True
    transcript.step("Wait for the outcomes")
    return {kind: client.wait_for(post_id, kind) for kind, post_id in ids.items()}


def sign_in_link(config: Path, url: str) -> str:
    """Return the URL that signs a browser in to the dashboard, once."""
    with CommandContext(config).open() as rt:
        return f"{url}/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}"


def use_config(config: Path) -> str:
    """Return the line with which commands in another terminal use the demo's appliance."""
    return f"export {commands.CONFIG_VARIABLE}={shlex.quote(str(config))}"


def _connect_accounts(rt: Runtime, config: Path, transcript: Transcript) -> dict[str, str]:
    """Connect an account of each network. Return the profiles' ids by network."""
    has_fields = any(isinstance(provider.auth, SignIn) for provider in rt.providers.values())
    transcript.step(f"Connect an account of each network{'' if has_fields else ' on its consent page'}")
    transcript.command(use_config(config))
    profiles = {}
    for name, provider in rt.providers.items():
        if isinstance(provider.auth, SignIn):
            profiles[name] = _sign_in(rt, name, transcript)
            continue
        transcript.command(commands.line("admin", "connect-profile", name))
        profiles[name] = _connect(rt, name)
        transcript.result(f"@{ACCOUNT} gave consent on {provider.label}: profile {profiles[name]}")
    return profiles


def _sign_in(rt: Runtime, provider: str, transcript: Transcript) -> str:
    """Connect an account of a network without a consent page. Return the profile's id."""
    line = commands.line("admin", "connect-profile", provider, "--handle", HANDLE)
    transcript.command(f"echo {APP_PASSWORD} | \\\n  {line} --password-file -")
    connected = connect.sign_in(rt, provider, {"handle": HANDLE, "password": APP_PASSWORD})
    label = rt.providers[provider].label
    transcript.result(f"@{HANDLE} signed in to {label}: profile {connected.profile_id}")
    return connected.profile_id


def _connect(rt: Runtime, provider: str) -> str:
    """Connect an account as its owner does in a browser. Return the profile's id."""
    begun, url = consents.begin(rt, provider)
    allow(url, ACCOUNT)
    outcome = consents.load_outcome(rt, begun.id)
    match outcome:
        case Connected():
            return outcome.profile_id
        case OperatorError():
            raise CommandError(outcome.message, outcome.hint)
        case None:
            raise CommandError(f"The browser did not return to {begun.redirect_uri}.", READ_LOG)


def _choose_board(rt: Runtime, profile_id: str, transcript: Transcript) -> str:
    transcript.step("Choose a board for the pins")
    transcript.command(commands.line("admin", "list-boards", profile_id))
    listed = boards.list_boards(rt, profile_id)
    if not listed:
        raise CommandError("The sandbox's Pinterest account has no boards.", "Choose another folder: --folder DIR")
    board, _ = listed[0]
    transcript.result(f"“{board.name}”, board {board.id}")
    return board.id


# --- a browser for the consent pages ----------------------------------------------------------------------------------


def consent_form(consent_url: str, account: str) -> dict[str, str]:
    """Return what the form of the sandbox's consent page sends when `account` allows everything."""
    scopes = parse_qs(urlsplit(consent_url).query)["scope"][0].replace(",", " ").split()
    return {"account": account, "decision": "allow", **{f"grant:{scope}": "1" for scope in scopes}}


def allow(consent_url: str, account: str) -> None:
    """Give consent for `account` like a browser. Raises CommandError."""
    with httpx2.Client(trust_env=False, timeout=CONSENT_SECONDS) as browser:
        response = browser.post(consent_url, data=consent_form(consent_url, account))
        if "location" not in response.headers:
            raise CommandError(f"The sandbox's consent page did not redirect ({response.status_code}).", READ_LOG)
        # The appliance reports the outcome, so the page itself does not matter.
        browser.get(response.headers["location"])
