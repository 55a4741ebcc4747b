"""An appliance for fuzzing: it has rows of every kind, and the document shows its ids."""

import copy
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx2
import uvicorn
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi import checks

from socialpub.accounts import api_keys
from socialpub.core.secrets import signed_urls
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.schema import RateLimitSection
from socialpub.db.connection import Database
from socialpub.db.states import State
from socialpub.media.types import ACCEPTED_TYPES
from socialpub.providers import ip_addresses
from socialpub.providers.base import Refused
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.integration.api import described_rules
from tests.integration.api.client import BASE_URL, document
from tests.support.appliance import accept, add_profile, open_appliance, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.rows import artifact
from tests.support.sandbox_http import FaultTransport, http_over, providers_of_the_sandbox, sandbox
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all

PROFILE = "019ac5d2-6b00-7a31-9f0e-4f1f6f3f7a01"
POST = "019ac5d3-1f00-7c42-8a11-7d0f2a1b3c04"
FAILED = "019ac5d3-1f00-7c42-8a11-7d0f2a1b3c05"
ARTIFACT = "019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04"
STORED = "04/019ac5d2-f0f0-7b20-9c4d-2e1a0b9c8d04-0000000000000001.png"
SCHEDULED = 12
"""Enough posts, because some are canceled."""
PLENTY = 10**6


@dataclass(frozen=True)
class FuzzedAppliance:
    url: str
    key: str
    rt: Runtime
    rows: "Rows"

    def call(self) -> dict[str, Any]:
        return {"base_url": self.url, "headers": {"Authorization": f"Bearer {self.key}"}, "timeout": 60}

    def put(self, reservation: dict[str, Any], content: bytes) -> None:
        """Send the bytes of an upload. A replayed reservation may already have them."""
        # The host is not part of the signature, and this appliance listens on another port.
        url = self.url + reservation["uploadUrl"].removeprefix(BASE_URL)
        headers = reservation["requiredHeaders"]
        assert httpx2.put(url, content=content, headers=headers, trust_env=False).status_code in (200, 409)

    def begin_anew(self) -> None:
        """Restore all rows, so that each sequence of calls starts with the same state."""
        self.rt.write(_put_back, self.rows)


@cache
def known_document() -> dict[str, Any]:
    """Return the document with ids of this appliance, and without `wait`, which would only take time."""
    known: dict[str, Any] = copy.deepcopy(document())
    for path, methods in known["paths"].items():
        for operation in methods.values():
            operation["parameters"] = [one for one in operation["parameters"] if one["name"] != "wait"]
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["example"] = _known_id(path)
            body = operation.get("requestBody", {"content": {}})["content"].get("application/json", {})
            if "profiles" in body.get("example", {}):
                body["example"] = {"post": {"body": "First frost."}, "profiles": [PROFILE]}
    # With random ids, every request would be refused.
    shapes = known["components"]["schemas"]
    for draft in ("PostDraft", "FormDraft"):
        shapes[draft]["properties"]["profiles"]["items"] = {"type": "string", "enum": [PROFILE]}
    for item in ("MediaReference", "FormMediaItem"):
        shapes[item]["properties"]["artifactId"] = {"type": "string", "enum": [ARTIFACT]}
    for item in ("MediaReference", "FormMediaItem", "ImportRequest"):
        shapes[item]["properties"]["url"] = {"type": "string", "enum": [own_url()]}
    shapes["ProviderOptions"]["properties"] = {"x": shapes["ProviderOptions"]["properties"]["x"]}
    shapes["UploadRequest"]["properties"]["mimeType"]["enum"] = list(ACCEPTED_TYPES)
    return known


def own_url() -> str:
    """Return the signed URL of `ARTIFACT`, which is not fetched."""
    settings: Any = SimpleNamespace(base_url=BASE_URL)
    return signed_urls.media_url(settings, Secrets(b"k" * 32), STORED, HandClock().now(), timedelta(days=3650))


def _known_id(path: str) -> str:
    if path.startswith("/api/v1/profiles"):
        return PROFILE
    return FAILED if path.endswith("/retry") else POST


# schemathesis' OpenAPI package adds these checks. Some rules are only in the descriptions of the document.
CHECKS_OF_ALL = [getattr(described_rules, check.__name__, check) for check in CHECKS.get_all()]
assert checks.negative_data_rejection.__name__ in {check.__name__ for check in CHECKS_OF_ALL}


@contextmanager
def fuzzed_appliance(folder: Path) -> Iterator[FuzzedAppliance]:
    clock = HandClock()
    rt = open_appliance(
        folder,
        clock,
        # The sandbox refuses the tokens of these profiles.
        http=http_over(FaultTransport(sandbox(clock))),
        networks=providers_of_the_sandbox(),
        rate_limit=RateLimitSection(requests_per_minute=PLENTY, failed_keys_per_minute=PLENTY),
    )
    _furnish(rt)
    key = rt.write(api_keys.create, "schemathesis")
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(rt), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        with patch.object(ip_addresses, "look_up", lambda *_: []):  # generated URLs lead nowhere
            yield FuzzedAppliance(f"http://127.0.0.1:{listening.getsockname()[1]}", key, rt, rt.write(_take_rows))
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        rt.close()


def _furnish(rt: Runtime) -> None:
    """Create a published post, a failed post and scheduled posts with the id `POST` among them."""
    own = dict(rt.providers)
    x = ScriptedNetwork()
    rt.providers.update(x=x)
    tokens = {name: rt.secrets.seal(name, "profile", PROFILE, name) for name in ("access_token", "refresh_token")}
    add_profile(rt, id=PROFILE, **tokens)
    for network in ("tiktok", "pinterest"):
        add_profile(rt, network)
    artifact(rt, id=ARTIFACT, storage_key=STORED)
    published = accept(rt, PROFILE)
    drain(rt)
    x.results["create_post"] = [Refused("X has such a post already.", "187")]
    failed = accept(rt, PROFILE, options={"x": {"replySettings": "following"}})
    drain(rt)
    assert [state_of(rt, post) for post in (published, failed)] == [State.PUBLISHED, State.FAILED]
    scheduled = [accept(rt, PROFILE, at=rt.now() + timedelta(days=3650)) for _ in range(SCHEDULED)]
    rt.write(lambda rt, tx: _rename(tx, scheduled[0], POST))
    rt.write(lambda rt, tx: _rename(tx, failed, FAILED))
    rt.providers.update(own)


def _rename(tx: Any, post: str, known: str) -> None:
    tx.execute_sql("PRAGMA defer_foreign_keys = ON")
    tx.execute_sql("UPDATE delivery SET post_id = ? WHERE post_id = ?", (known, post))
    tx.execute_sql("UPDATE post SET id = ? WHERE id = ?", (known, post))


Rows = dict[str, tuple[list[str], list[tuple[Any, ...]]]]


def _take_rows(_rt: Runtime, tx: Database) -> Rows:
    tables = select_all(
        tx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    )
    found: Rows = {}
    for (table,) in tables:
        columns = [row["name"] for row in select_all(tx, f"PRAGMA table_info({table})")]
        found[table] = columns, [tuple(row) for row in select_all(tx, f"SELECT {', '.join(columns)} FROM {table}")]
    return found


def _put_back(_rt: Runtime, tx: Database, rows: Rows) -> None:
    tx.execute_sql("PRAGMA defer_foreign_keys = ON")
    for table, (columns, values) in rows.items():
        tx.execute_sql(f"DELETE FROM {table}")
        tx.connection().executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", values
        )
