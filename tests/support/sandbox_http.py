"""The networks of the sandbox, reached without a socket: a world, its transport, and ways to break it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from starlette.routing import Match, Mount

from socialpub.core.clock import new_id
from socialpub.core.settings.networks import BlueskySection, NetworkSection, PinterestSection, TikTokSection, XSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db.connection import Database
from socialpub.db.tables import artifact_rows
from socialpub.media.decoder.inspect import inspect_file
from socialpub.media.types import ACCEPTED_TYPES, Facts, MediaLimits
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import create_app
from socialpub.sandbox.endpoint import SandboxEndpoint
from tests.stand_ins import World
from tests.support.appliance import add_profile
from tests.support.hand_clock import HandClock
from tests.support.sandbox_transport import SandboxTransport

HOST = "http://networks.test"


class ProcessKilled(BaseException):
    """What a SIGKILL looks like from inside: nothing after this transport runs."""


class FaultTransport(SandboxTransport):
    """Leads to the sandbox. `before_call(request)` may raise before a call, `after_call(request)` after its effect."""

    def __init__(self, world: World) -> None:
        self._app = create_app(world)
        super().__init__(self._app)
        self.before_call: Callable[[httpx2.Request], None] | None = None
        self.after_call: Callable[[httpx2.Request], None] | None = None
        self.called: list[str] = []
        """The endpoints of all calls, oldest first, also of those that never arrived."""

    def endpoint_of(self, request: httpx2.Request) -> str:
        """The sandbox's own name of what this request asks, as in `world.x.next(…)`."""
        scope = {"type": "http", "method": request.method, "path": request.url.path, "root_path": "", "headers": []}
        for mount in self._app.routes:
            if not isinstance(mount, Mount):
                continue
            match, inside = mount.matches(scope)
            if match is not Match.FULL:
                continue
            for route in mount.routes:
                if route.matches({**scope, **inside})[0] is Match.FULL:
                    endpoint = getattr(route, "endpoint", None)
                    return endpoint.call.name if isinstance(endpoint, SandboxEndpoint) else ""
        return ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.called.append(self.endpoint_of(request))
        if self.before_call is not None:
            self.before_call(request)
        response = await super().handle_async_request(request)
        if self.after_call is not None:
            self.after_call(request)
        return response


def sandbox(clock: HandClock) -> World:
    """A world of stand-ins with the test's clock, whose faults take no time."""
    world = World(clock)
    world.instant_faults = True
    world.x.duplicate_window_seconds = 0  # X's own refusal of a duplicate would hide that we sent one
    return world


def http_over(transport: httpx2.AsyncBaseTransport) -> Http:
    """A client whose calls of the sandbox take this way."""
    return Http(mounts={HOST: transport})


def providers_of_the_sandbox(*, bluesky: bool = False) -> ProvidersSection:
    """The section of each of the three networks pointing at the sandbox, and Bluesky's if it is asked for."""

    def section(kind: type[NetworkSection], path: str, consent: str, **fields: Any) -> Any:
        addresses = {"api_url": f"{HOST}{path}", "authorize_url": f"{HOST}{consent}"}
        return kind.model_validate({**addresses, "client_secret": "secret", **fields})

    extension = {"bluesky": bluesky_section()} if bluesky else {}
    return ProvidersSection(
        x=section(XSection, "/x", "/x/i/oauth2/authorize", client_id="app"),
        tiktok=section(TikTokSection, "/tiktok", "/tiktok/v2/auth/authorize/", client_key="app"),
        pinterest=section(PinterestSection, "/pinterest/v5", "/pinterest/oauth/", client_id="app"),
        **extension,
    )


def bluesky_section() -> BlueskySection:
    """Bluesky, enabled, with the sandbox as the server of all accounts."""
    url = f"{HOST}/bluesky"
    return BlueskySection(enabled=True, service=url, plc_url=f"{url}/plc")


def connect_x(rt: Runtime, world: World, username: str = "demo", **grant: Any) -> str:
    """A profile of the sandbox's X, as `import-profile` would make it; its id."""
    account = world.x.account_named(username) or world.x.add_account(username)
    return _connect(rt, "x", account.id, username, world.x.grant(account, **grant))


def connect_tiktok(rt: Runtime, world: World, username: str = "demo", **grant: Any) -> str:
    """The same for TikTok."""
    user = world.tiktok.account_named(username) or world.tiktok.add_account(username)
    return _connect(rt, "tiktok", user.open_id, username, world.tiktok.grant(user, **grant))


def connect_pinterest(rt: Runtime, world: World, username: str = "demo", **grant: Any) -> str:
    """The same for Pinterest."""
    account = world.pinterest.account_named(username) or world.pinterest.add_account(username)
    return _connect(rt, "pinterest", account.id, username, world.pinterest.grant(account, **grant))


def connect_bluesky(rt: Runtime, world: World, username: str = "demo", **grant: Any) -> str:
    """The same for Bluesky. `username` is a handle, or the part before `.test`."""
    account = world.bluesky.account_named(username) or world.bluesky.add_account(username)
    facts = {"server": f"{HOST}/bluesky", "blob_limit": world.bluesky.blob_limit}
    return _connect(rt, "bluesky", account.did, account.username, world.bluesky.grant(account, **grant), facts=facts)


def _connect(rt: Runtime, provider: str, account_id: str, username: str, tokens: dict[str, str], **columns: Any) -> str:
    expires = tokens["expiresAt"].replace("+00:00", "Z")
    return add_profile(
        rt,
        provider,
        account_id=account_id,
        username=username,
        tokens=(tokens["accessToken"], tokens.get("refreshToken") or None),
        access_expires_at=expires,
        scopes=tokens["scope"].replace(",", " ").split(),
        **columns,
    )


def artifact(rt: Runtime, source: Path, mime_type: str, known: Facts | None = None) -> str:
    """A verified artifact of this file; its id. `known`: facts of an earlier inspection. The file is then shared, not
    copied, so it must not change."""
    assert mime_type in ACCEPTED_TYPES
    facts = known or inspect_file(source, mime_type, MediaLimits())
    artifact_id = new_id(rt.now())
    storage_key = rt.files.new_key(artifact_id, mime_type)
    rt.files.path(storage_key).parent.mkdir(parents=True, exist_ok=True)
    if known is None:
        rt.files.path(storage_key).write_bytes(source.read_bytes())
    else:
        rt.files.path(storage_key).hardlink_to(source)

    def insert(tx: Database) -> None:
        artifact_rows.insert(
            tx,
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
