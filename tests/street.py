"""The networks of the sandbox, reached without a socket: a world, its transport, and ways to break the line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from socialpub import ids
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World, create_app
from socialpub.sections import Network, Pinterest, Providers, TikTok, X
from socialpub.store.database import Tx
from socialpub.store.mediatype import ACCEPTED, Limits, examine
from tests.clock import HandClock
from tests.house import connect
from tests.transport import SandboxTransport

HOST = "http://networks.test"


class Died(BaseException):
    """What a SIGKILL looks like from inside: nothing after this line runs."""


class Line(SandboxTransport):
    """The way to the sandbox. `broken(request)` may raise before a call, `lost(request)` after its effect."""

    def __init__(self, world: World) -> None:
        super().__init__(create_app(world))
        self.broken: Callable[[httpx2.Request], None] | None = None
        self.lost: Callable[[httpx2.Request], None] | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.broken is not None:
            self.broken(request)
        response = await super().handle_async_request(request)
        if self.lost is not None:
            self.lost(request)
        return response


def sandbox(clock: HandClock) -> World:
    """A world of stand-ins with the test's clock, whose faults take no time."""
    world = World(clock)
    world.instant_faults = True
    world.x.duplicate_window_seconds = 0  # X's own refusal of a duplicate would hide that we sent one
    return world


def line_to(world: World) -> tuple[Line, Http]:
    line = Line(world)
    return line, Http(mounts={HOST: line})


def providers_of_the_sandbox() -> Providers:
    """Every network's section pointing at the sandbox."""

    def section(kind: type[Network], path: str, **fields: Any) -> Any:
        secret = {"client_secret": "secret"}
        return kind.model_validate({"api_url": f"{HOST}{path}", **secret, **fields})

    return Providers(
        x=section(X, "/x", client_id="app"),
        tiktok=section(TikTok, "/tiktok", client_key="app"),
        pinterest=section(Pinterest, "/pinterest/v5", client_id="app"),
    )


def connect_x(rt: Runtime, world: World, username: str = "demo", **grant: Any) -> str:
    """A profile of the sandbox's X, as `import-profile` would make it; its id."""
    account = world.x.account_named(username) or world.x.add_account(username)
    tokens = world.x.grant(account, **grant)
    expires = tokens["expiresAt"].replace("+00:00", "Z")
    return connect(
        rt,
        account_id=account.id,
        username=username,
        access_token=rt.secrets.seal(tokens["accessToken"]),
        refresh_token=rt.secrets.seal(tokens["refreshToken"]) if "refreshToken" in tokens else None,
        access_expires_at=expires,
        scopes=tokens["scope"],
    )


def artifact(rt: Runtime, source: Path, mime_type: str) -> str:
    """A verified artifact of this file; its id."""
    assert mime_type in ACCEPTED
    facts = examine(source, mime_type, Limits())
    artifact_id = ids.new(int(rt.now().timestamp() * 1000))
    storage_key = rt.files.new_key(artifact_id, mime_type)
    rt.files.path(storage_key).parent.mkdir(parents=True, exist_ok=True)
    rt.files.path(storage_key).write_bytes(source.read_bytes())

    def insert(tx: Tx) -> None:
        import json

        tx.insert(
            "artifact",
            id=artifact_id,
            status="verified",
            file_name=source.name,
            declared_type=mime_type,
            declared_bytes=facts.size_bytes,
            created_at=tx.stamp,
            kind=facts.kind,
            mime_type=facts.mime_type,
            size_bytes=facts.size_bytes,
            storage_key=storage_key,
            facts=json.dumps(facts.facts),
            verified_at=tx.stamp,
        )

    rt.db.write(insert)
    return artifact_id
