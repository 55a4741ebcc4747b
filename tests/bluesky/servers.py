"""Bluesky's own server and the stand-in, behind a front and with a clock that a test moves."""

import base64
import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from socialpub.sandbox.app import SandboxServer
from tests.bluesky.front import Answer, Call, Front
from tests.stand_ins import World
from tests.support.hand_clock import HandClock
from tests.support.ports import free_port

PACKAGES = Path(__file__).parents[2] / ".venv" / "bluesky"
PROGRAM = Path(__file__).parent / "server" / "start.mjs"
POST = "app.bsky.feed.post"


@dataclass
class Account:
    handle: str
    did: str
    password: str
    """The main password."""
    app_password: str


@dataclass(frozen=True)
class Record:
    uri: str
    cid: str
    value: dict[str, Any]


class BlueskyServer(ABC):
    """A server with accounts. `front` is the way to it, and `call` goes past the front."""

    name: ClassVar[str]
    front: Front
    path = ""
    """Where the server begins behind the front."""
    host = "127.0.0.1"
    _handles = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.front.port}{self.path}"

    @property
    def plc_url(self) -> str:
        return f"{self.url}/plc"

    def begin_story(self, now: datetime) -> None:
        """Forget what the story before asked for. Accounts stay."""
        self.front.begin_story()
        self.set_clock(now)

    @abstractmethod
    def set_clock(self, now: datetime) -> None: ...

    @abstractmethod
    def add_account(self, name: str) -> Account:
        """Add an account with an app password. Its handle begins with this name."""

    def call(
        self,
        name: str,
        body: Any = None,
        *,
        token: str = "",
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Call a method. A body is sent by POST: bytes as they are, other values as JSON."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"host": f"{self.host}:{self.front.port}", **(headers or {})}
        if body is not None:
            sent["content-length"] = str(len(content))
        if content:
            sent["content-type"] = content_type
        if token:
            sent["authorization"] = token if " " in token else f"Bearer {token}"
        url = f"{self.path}/xrpc/{name}" + (f"?{urlencode(params)}" if params else "")
        method = "GET" if body is None else "POST"
        return self.front.ask(method, Call(name, method, url, token, content), sent)

    def ask(self, name: str, body: Any = None, **how: Any) -> dict[str, Any]:
        """Call a method that must succeed."""
        answer = self.call(name, body, **how)
        assert answer.status == 200, (name, answer)
        found: dict[str, Any] = json.loads(answer.body) if answer.body else {}
        return found

    # --- what the owner of an account does ---------------------------------------------------------------------------

    def session(self, account: Account, *, main: bool = False) -> dict[str, Any]:
        password = account.password if main else account.app_password
        return self.ask("com.atproto.server.createSession", {"identifier": account.did, "password": password})

    def as_owner(self, account: Account, name: str, body: Any = None, **how: Any) -> dict[str, Any]:
        return self.ask(name, body, token=self.session(account, main=True)["accessJwt"], **how)

    def records(self, account: Account, collection: str = POST) -> list[Record]:
        """Return the records of an account, oldest first."""
        params = {"repo": account.did, "collection": collection, "limit": "100", "reverse": "true"}
        found = self.ask("com.atproto.repo.listRecords", params=params)["records"]
        return [Record(one["uri"], one["cid"], one["value"]) for one in found]

    def blob(self, account: Account, cid: str) -> bytes:
        answer = self.call("com.atproto.sync.getBlob", params={"did": account.did, "cid": cid})
        assert answer.status == 200, answer
        return answer.body

    def delete_record(self, account: Account, record: Record) -> None:
        collection, rkey = record.uri.split("/")[-2:]
        body = {"repo": account.did, "collection": collection, "rkey": rkey}
        self.as_owner(account, "com.atproto.repo.deleteRecord", body)

    def revoke_app_password(self, account: Account) -> None:
        self.as_owner(account, "com.atproto.server.revokeAppPassword", {"name": "socialpub"})

    def change_handle(self, account: Account, name: str) -> None:
        account.handle = self._unused_handle(name)
        self.as_owner(account, "com.atproto.identity.updateHandle", {"handle": account.handle})

    def deactivate(self, account: Account) -> None:
        self.as_owner(account, "com.atproto.server.deactivateAccount", {})

    def activate(self, account: Account) -> None:
        self.as_owner(account, "com.atproto.server.activateAccount", b"")

    def _unused_handle(self, name: str) -> str:
        self._handles += 1
        return f"{name}{self._handles}.test"

    @abstractmethod
    def take_down(self, account: Account, record: Record | None = None) -> None:
        """Take down a record, or the account."""

    @abstractmethod
    def confirm_email(self, account: Account) -> None:
        """Confirm the email address, as its owner does with the link in a message."""

    def close(self) -> None:
        self.front.close()


def node() -> Path | None:
    """Return the installed Node, or None if the server is not installed."""
    return next(PACKAGES.glob("node_modules/node-linux-*/bin/node"), None)


class RealServer(BlueskyServer):
    """Bluesky's own server, a process of Node. Its DID directory is in the same process."""

    name = "real server"
    host = "localhost"

    def __init__(self, now: datetime) -> None:
        program = node()
        assert program is not None, "run make bluesky"
        self._folder = Path(tempfile.mkdtemp(prefix="bluesky-"))
        port = free_port()
        self._admin = secrets.token_hex(16)
        settings = {
            "PORT": port,
            "DEV_MODE": "true",  # http, and answers that are checked against the lexicons
            "DATA_DIRECTORY": self._folder,
            "BLOBSTORE_DISK_LOCATION": self._folder / "blobs",
            "ADMIN_PASSWORD": self._admin,
            "JWT_SECRET": secrets.token_hex(16),
            "SERVICE_HANDLE_DOMAINS": ".test",
            "INVITE_REQUIRED": "false",
            "DISABLE_SSRF_PROTECTION": "true",
            # As Bluesky's installer sets them.
            "ENABLE_DID_DOC_WITH_SESSION": "true",
            "RATE_LIMITS_ENABLED": "true",
            "BLOB_UPLOAD_LIMIT": 104_857_600,
        }
        env = {f"PDS_{name}": str(value) for name, value in settings.items()}
        env |= {"BLUESKY_PACKAGES": str(PACKAGES), "LOG_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
        self._log = (self._folder / "log").open("wb")
        self._process = subprocess.Popen(
            [program, PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | env,
            text=True,
        )
        self._tell_time(now)
        started = self._read()
        targets = {
            "": f"http://127.0.0.1:{started['port']}",
            "/plc": f"http://127.0.0.1:{started['directory']}",
        }
        self.front = Front(port, targets)

    def set_clock(self, now: datetime) -> None:
        self._tell_time(now)
        self._read()

    def add_account(self, name: str) -> Account:
        handle, password = self._unused_handle(name), secrets.token_hex(8)
        body = {"handle": handle, "email": f"owner@{handle}", "password": password}
        made = self.ask("com.atproto.server.createAccount", body)
        token = made["accessJwt"]
        app = self.ask("com.atproto.server.createAppPassword", {"name": "socialpub"}, token=token)
        return Account(handle, made["did"], password, app["password"])

    def take_down(self, account: Account, record: Record | None = None) -> None:
        subject = {"$type": "com.atproto.admin.defs#repoRef", "did": account.did}
        if record is not None:
            subject = {"$type": "com.atproto.repo.strongRef", "uri": record.uri, "cid": record.cid}
        body = {"subject": subject, "takedown": {"applied": True, "ref": "1"}}
        admin = base64.b64encode(f"admin:{self._admin}".encode()).decode()
        self.ask("com.atproto.admin.updateSubjectStatus", body, token=f"Basic {admin}")

    def confirm_email(self, account: Account) -> None:
        with closing(sqlite3.connect(self._folder / "account.sqlite", isolation_level=None)) as database:
            at = "2026-01-01T00:00:00.000Z"
            changed = database.execute("UPDATE account SET emailConfirmedAt = ? WHERE did = ?", (at, account.did))
            assert changed.rowcount == 1

    def close(self) -> None:
        super().close()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tell_time(self, now: datetime) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{round(now.timestamp() * 1000)}\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the server ended:\n{Path(self._log.name).read_text()}"
        found: dict[str, Any] = json.loads(line)
        return found


class StandIn(BlueskyServer):
    """The sandbox, on a port of this machine. Its clock is the test's own."""

    name = "stand-in"
    path = "/bluesky"

    def __init__(self, clock: HandClock) -> None:
        self.world = World(clock)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = SandboxServer(self.world)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        self.front = Front(free_port(), {"": f"http://127.0.0.1:{self._socket.getsockname()[1]}"})

    def set_clock(self, now: datetime) -> None:
        """It reads the clock itself."""

    def add_account(self, name: str) -> Account:
        made = self.world.bluesky.add_account(self._unused_handle(name))
        made.email_confirmed = False  # as on the real server
        return Account(made.username, made.did, made.password, made.app_password)

    def change_handle(self, account: Account, name: str) -> None:
        before, account.handle = account.handle, self._unused_handle(name)
        self.world.bluesky.change_account(before, handle=account.handle)

    def revoke_app_password(self, account: Account) -> None:
        self.world.bluesky.revoke_app_password(account.handle)

    def deactivate(self, account: Account) -> None:
        self.world.bluesky.change_account(account.handle, status="deactivated")

    def activate(self, account: Account) -> None:
        self.world.bluesky.change_account(account.handle, status="active")

    def take_down(self, account: Account, record: Record | None = None) -> None:
        if record is None:
            self.world.bluesky.change_account(account.handle, status="takendown")
        else:
            self.world.bluesky.take_down(record.uri)

    def confirm_email(self, account: Account) -> None:
        self.world.bluesky.existing_account(account.handle).email_confirmed = True

    def close(self) -> None:
        super().close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
