"""Every secret of a full run is looked for wherever somebody else may read: logs, database, copies, answers, processes.

Accounts are connected, renewed and used on all networks, calls fail, are quoted back and crash, processes are killed;
all of it is logged at debug level.
"""

import json
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from socialpub.cli.demo.walkthrough import consent_form
from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import DEFAULT_SIGNALS, PROGRAM, STAND_INS, Process, until
from tests.e2e.videos import video_bytes
from tests.integration.uploads.caller import Reply
from tests.samples import media
from tests.support.notify_services import HttpService, http_service
from tests.support.secret_search import ProcessWatch, SecretSearch
from tests.support.tab import Tab

pytestmark = pytest.mark.endurance

PASSWORD = "hush hush correct horse"
METRICS_TOKEN = "hush-metrics-5d1f9a"
NOTIFY_PASSWORD = "hush-notify-77aa01"
WEBHOOK_SECRETS = ("password-of-the-webhook", "token-in-the-url-of-the-webhook")
CLIENT_SECRETS = {name: f"hush/{name}+secret=0123456789" for name in ("x", "tiktok", "pinterest")}
IN_ENVIRONMENT = "SOCIALPUB_PROVIDERS__PINTEREST__CLIENT_SECRET"
TOKENS_OF_THE_SANDBOX = {"access", "refresh", "upload_token", "code"}
AFTER = """after = ["/bin/sh", "-c", "sleep 0.3; env", "{backup}"]"""
VIDEO_BYTES = 1_000_000
OUR_OWN = tuple("\0".join((*program, "")).encode() for program in (PROGRAM, STAND_INS))
BECOMES_OUR_OWN = tuple("\0".join((*DEFAULT_SIGNALS, "")).encode() + program for program in OUR_OWN)
"""What `Process` starts; a moment later it is our own."""


class WireCaller:
    """What a browser without scripts needs, over a real connection. Every answer that is none is kept."""

    def __init__(self, url: str, answers: list[tuple[str, bytes]]) -> None:
        self.client = httpx2.Client(base_url=url, timeout=90.0, trust_env=False)
        self.answers = answers

    def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        told = {name: value for name, value in (headers or {}).items() if name != "host"}
        answer = self.client.request(method, path, content=body, headers=told)
        keep_refusal(self.answers, answer)
        cookies = tuple(answer.headers.get_list("set-cookie"))
        heads = {name: value for name, value in answer.headers.items() if name != "content-encoding"}
        return Reply(answer.status_code, heads, answer.content, cookies)

    def close(self) -> None:
        self.client.close()


def keep_refusal(answers: list[tuple[str, bytes]], answer: httpx2.Response) -> None:
    if answer.status_code >= httpx2.codes.BAD_REQUEST:
        # Only a browser receives its cookie.
        heads = repr([head for head in answer.headers.multi_items() if head[0] != "set-cookie"]).encode()
        answers.append((f"the {answer.status_code} of {answer.request.url.path}", heads + answer.content))


class LeakStory:
    """One appliance and everything secret about it."""

    def __init__(self, installation: Installation, phone: HttpService) -> None:
        self.at = installation
        self.phone = phone
        self.search = SecretSearch()
        self.answers: list[tuple[str, bytes]] = []
        self.said: list[bytes] = []
        """What commands printed."""
        self.owner = Tab(None, installation.url)
        self.wire = WireCaller(installation.url, self.answers)
        self.owner.caller = self.wire  # type: ignore[assignment]
        self.search.add("a client's secret", *CLIENT_SECRETS.values())
        for name, secret in CLIENT_SECRETS.items():
            self.search.add("a client's secret", f"sandbox:{secret}")
            assert name in secret
        self.search.add("the token of the metrics", METRICS_TOKEN)
        self.search.add("an address of [notify]", NOTIFY_PASSWORD)
        self.search.add("the password", PASSWORD)
        self.search.add("an API key", installation.key, installation.key.split("_", 2)[2])
        self.search.add("secret.key", (installation.data / "secret.key").read_bytes().strip())

    def configure(self, log_format: str) -> None:
        self.at.configure(
            f'[logging]\nlevel = "debug"\nformat = "{log_format}"\n\n[metrics]\ntoken = "{METRICS_TOKEN}"\n\n'
            f'[notify]\nurls = ["json://owner:{NOTIFY_PASSWORD}@{self.phone.address}/"]\n\n[backup]\n{AFTER}\n'
        )
        text = self.at.config.read_text()
        for name, secret in CLIENT_SECRETS.items():
            head, section, rest = text.partition(f"[providers.{name}]")
            kept = f'client_secret = "{secret}"\n' if name != "pinterest" else ""
            text = head + section + rest.replace('client_secret = "sandbox"\n', kept, 1)
        self.at.config.write_text(text)
        self.at.env[IN_ENVIRONMENT] = CLIENT_SECRETS["pinterest"]

    def command(self, *arguments: str, code: int = 0) -> str:
        done = self.at.run(*arguments, code=code)
        self.said += [done.stdout.encode(), done.stderr.encode()]
        return done.stdout.strip()

    def add_webhook(self) -> None:
        password, token = WEBHOOK_SECRETS
        url = f"http://owner:{password}@{self.phone.address}/hook?token={token}"
        added = self.at.run("admin", "add-webhook", "-", stdin=url).stdout
        self.webhook_id, secret = added.splitlines()
        self.search.add("a webhook's secret", secret.removeprefix("whsec_"), f"owner:{password}", *WEBHOOK_SECRETS)

    def caller(self) -> Caller:
        caller = self.at.fresh_caller()
        caller.client.event_hooks = {"response": [self._note]}
        return caller

    def _note(self, answer: httpx2.Response) -> None:
        answer.read()
        keep_refusal(self.answers, answer)
        self.note_signatures(answer.text)

    def note_signatures(self, text: str) -> None:
        for signature in re.findall(r"signature=([\w%-]+)", text):
            self.search.add("a signed URL", signature)

    # --- the owner ---------------------------------------------------------------------------------------------------

    def sign_in(self, serve: Process) -> None:
        link = re.search(r"/setup\?token=(\S+)", serve.output)
        assert link is not None
        self.search.add("the link to set the password", link[1])
        self.owner.open(link[0])
        self.owner.press("Set password", {"Password": PASSWORD, "Repeat password": PASSWORD})
        assert self.owner.page.heading == "Overview"
        self.note_forms()
        self.owner.press("Sign out")
        self.owner.press("Sign in", {"Password": f"{PASSWORD}?"})
        assert self.owner.page.status == httpx2.codes.FORBIDDEN
        self.owner.press("Sign in", {"Password": PASSWORD})
        self.note_forms()

    def note_forms(self) -> None:
        self.search.add("a session", *(value for value in self.owner.cookies.values() if len(value) > 20))
        fields = self.owner.page.root.all("input")
        tokens = {one.attributes["value"] for one in fields if one.attributes.get("name") == "csrf"}
        assert tokens
        self.search.add("a form's token", *tokens)

    def connect(self, label: str) -> None:
        self.owner.open("/profiles")
        self.owner.press(f"Connect {label}")
        url = self.owner.page.links()[f"Continue to {label}"]
        with httpx2.Client(trust_env=False) as browser:
            back = browser.post(url, data=consent_form(url, "demo")).headers["location"]
        brought = dict(parse_qsl(urlsplit(back).query))
        self.search.add("what a consent brings back", brought["code"], brought["state"])
        self.owner.open(f"{urlsplit(back).path}?{urlsplit(back).query}")
        assert "is connected" in self.owner.page.role("status")
        self.owner.open(f"{urlsplit(back).path}?{urlsplit(back).query}x")

    def download_copy(self, target: Path) -> None:
        self.owner.open("/system")
        self.note_forms()
        form = self.owner.page.form_of(self.owner.page.button("Download backup"))
        told = urlencode([(name, str(value)) for name, value in self.owner.fields_of(form)]).encode()
        target.write_bytes(self.owner.ask("POST", "/system/backup", told).body)
        assert tarfile.is_tarfile(target)

    # --- posts -------------------------------------------------------------------------------------------------------

    def publish_everywhere(self, caller: Caller, video: str, picture: str) -> list[str]:
        on = self.at.profile_on
        board = {"pinterest": {"boardId": self.at.board_id}}
        covered = {"pinterest": {**board["pinterest"], "coverImageKeyFrameTime": 0}}
        direct = {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}
        return [
            caller.publish("A picture", on["x"], media=(picture,)),
            caller.publish("A video", on["x"], media=(video,)),
            caller.publish("A video", on["tiktok"], media=(video,), options=direct),
            caller.publish("Photos", on["tiktok"], media=(picture,), options=direct),
            caller.publish("A pin", on["pinterest"], media=(picture,), options=board),
            caller.publish("A video pinned", on["pinterest"], media=(video,), options=covered),
        ]

    def quoting(self) -> dict[str, Any]:
        """An answer of a network that quotes what it was sent."""
        self.note_tokens()
        tokens = [form.decode() for form, name in self.search.forms.items() if name == "a network's access"]
        words = f"Bearer {tokens[0]} client_secret={CLIENT_SECRETS['x']}"
        return {"title": "Forbidden", "detail": words, "type": "about:blank", "status": 403}

    def be_refused(self, caller: Caller, upload_url: str) -> None:
        """Every door is tried with a secret that is true but not here, or nearly true."""
        own = httpx2.URL(upload_url)
        spoilt = own.copy_merge_params({"expires": "1"})
        for url in (spoilt, str(own).replace("/uploads/", "/media/")):
            keep_refusal(self.answers, httpx2.put(url, content=b"x", trust_env=False))
            keep_refusal(self.answers, httpx2.get(url, trust_env=False))
        for path, token in (("/api/v1/posts", f"{self.at.key}x"), ("/metrics", f"{METRICS_TOKEN}x")):
            told = {"authorization": f"Bearer {token}"}
            keep_refusal(self.answers, httpx2.get(f"{self.at.url}{path}", headers=told, trust_env=False))
        caller.ask("GET", f"/api/v1/posts?key={self.at.key}")
        caller.ask("POST", "/api/v1/posts", content=f'{{"apiKey": "{self.at.key}", "post"'.encode())
        caller.ask("POST", "/api/v1/posts", json={"password": PASSWORD, "post": {"body": 1, "token": METRICS_TOKEN}})
        self.owner.ask("POST", "/login", f"password={PASSWORD}&csrf=none".encode())

    def crash(self, caller: Caller) -> None:
        """A table is missing for a while: both processes fail unexpectedly."""
        with closing(sqlite3.connect(self.at.data / "socialpub.db", timeout=30)) as database:
            schema = database.execute("SELECT sql, name FROM sqlite_schema WHERE tbl_name = 'attempt'").fetchall()
            database.execute("ALTER TABLE attempt RENAME TO elsewhere")
            post = caller.publish("Into the void", self.at.profile_on["x"])
            assert caller.ask("GET", f"/api/v1/posts/{post}/attempts").status_code >= httpx2.codes.INTERNAL_SERVER_ERROR
            until(lambda: self.at.x.calls("create_post") and "Traceback" in self.logs(), "there is a trace")
            database.execute("ALTER TABLE elsewhere RENAME TO attempt")
            # SQLite quotes a new name, and a backup with another schema than the migrations' is refused.
            database.execute("PRAGMA writable_schema = on")
            database.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", schema)
            database.commit()
        assert caller.delivery(post)["status"] == "published"

    def logs(self) -> str:
        names = ("serve", "web", "worker")
        return "".join(path.read_text() for name in names if (path := self.at.folder / f"{name}.log").exists())

    # --- the search --------------------------------------------------------------------------------------------------

    def note_tokens(self) -> None:
        """Everything that the networks ever handed out."""
        for line in self.at.journal.read_text().splitlines():
            self.note_signatures(line)
            for name, value in _pairs(json.loads(line) if line else {}):
                if name in TOKENS_OF_THE_SANDBOX and isinstance(value, str) and value:
                    self.search.add(f"a network's {name}", value)

    def leaks(self) -> set[str]:
        ours = {self.at.data / "secret.key", self.at.config, self.at.journal, self.at.folder / "sandbox.log"}
        found = self.search.found_in_files(self.at.folder, ours)
        for place, content in self.answers:
            found |= self.search.found_in(content, place)
        for content in self.said:
            found |= self.search.found_in(content, "what a command printed")
        return found


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)


@pytest.fixture
def phone() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


@pytest.fixture
def story(make_installation: MakeInstallation, phone: HttpService) -> Iterator[LeakStory]:
    story = LeakStory(make_installation(), phone)
    story.configure("human")
    yield story
    story.wire.close()


def test_no_secret_of_a_full_run_is_left_anywhere(story: LeakStory, phone: HttpService, tmp_path: Path) -> None:
    at = story.at
    with ProcessWatch() as watch:
        at.sandbox()
        serve = at.start("serve")
        story.sign_in(serve)
        story.add_webhook()
        for label in ("X", "TikTok", "Pinterest"):
            story.connect(label)
        caller = story.caller()
        video = caller.upload(video_bytes(VIDEO_BYTES), "a.mp4", "video/mp4")
        picture = caller.upload(media.jpeg(tmp_path / "a.jpg", 900, 700).read_bytes(), "a.jpg", "image/jpeg")
        again = {"idempotency-key": "the same twice"}
        reserve = {"fileName": "b.png", "mimeType": "image/png", "fileSize": 100}
        reserved = [caller.ask("POST", "/api/v1/uploads", json=reserve, headers=again).json()["data"] for _ in range(2)]
        for post in story.publish_everywhere(caller, video, picture):
            assert caller.delivery(post)["status"] == "published", caller.attempts(post)

        # The same again, logged for machines: after all tokens have ended, with a network that quotes what it is sent.
        assert serve.stop() == 0
        story.configure("json")
        at.forward(timedelta(hours=3).total_seconds())
        web, worker = at.start("web"), at.start("worker")
        at.x.script("create_post", "fails_with", status=403, body=story.quoting(), times=1)
        at.pinterest.script("create_pin", "fails_with", status=500, times=1)
        at.tiktok.script("video_init", "drops_connection_after_effect", times=1)
        posts = story.publish_everywhere(caller, video, picture)
        assert {caller.delivery(post)["status"] for post in posts} == {"published", "failed"}
        for profile in at.profile_on.values():
            story.command("admin", "refresh-profile", profile)
        story.command("admin", "notify-test")
        story.command("admin", "list-webhooks")
        story.command("admin", "test-webhook", story.webhook_id)
        story.be_refused(caller, reserved[0]["uploadUrl"])
        story.crash(caller)
        story.owner.open("/system")

        copies = at.folder / "copies"
        copies.mkdir()
        story.command("backup")
        story.command("backup", str(copies / "one.tar"))
        story.download_copy(copies / "downloaded.tar")
        story.command("verify-backup", str(copies / "one.tar"))
        for command in ("list-keys", "list-profiles", "list-posts"):
            story.command("admin", command, "--json")
        for post in posts:
            story.command("admin", "show-post", post)
        story.command("doctor", code=1)
        assert {"/hook?token=" + WEBHOOK_SECRETS[1]} < {path for path, _ in phone.taken}
        caller.publish("In the air", at.profile_on["x"])
        worker.kill(children=True)
        web.kill(children=True)

    story.note_tokens()
    assert story.search.names >= {
        "a network's access",
        "a network's refresh",
        "a network's upload_token",
        "a signed URL",
    }
    assert (at.data / "socialpub.db-wal").stat().st_size > 0
    assert (at.data / "queue.db").exists()
    # The link stands where the owner is to find it, and nowhere else.
    assert story.leaks() == {"the link to set the password in serve.log"}

    shown = {leak for one in watch.seen for leak in story.search.found_in(one.command_line, "a command line")}
    assert shown == set()
    # Our processes read it there. Other child processes do not receive it.
    children = watch.of(lambda line: not line.startswith((*OUR_OWN, *BECOMES_OUR_OWN)))
    for kind in (b"decoder.process", b"sleep 0.3; env"):
        assert any(kind in child.command_line for child in children), kind
    told = {leak for one in children for leak in story.search.found_in(one.environment, one.command_line.decode())}
    assert told == set()


def test_what_is_there_is_found(story: LeakStory, tmp_path: Path) -> None:
    """The search sees a secret in each of the places in which it finds none above."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "log").write_text(f"client {CLIENT_SECRETS['x']}")
    (tmp_path / "a" / "json").write_text(json.dumps({"at": f"/?s={PASSWORD.replace(' ', '+')}"}))
    (tmp_path / "a" / NOTIFY_PASSWORD).touch()
    assert story.search.found_in_files(tmp_path) >= {
        "a client's secret in a/b/log",
        "the password in a/json",
        f"an address of [notify] in the name of a/{NOTIFY_PASSWORD}",
    }
    copy = tmp_path / "copy.tar"
    story.at.run("backup", "--with-secret", str(copy))
    assert story.search.found_in_files(tmp_path) >= {"secret.key in copy.tar"}
