"""Every schema since the first: a folder as the version of that time left it when its power was cut, taken up by this
one. What it had promised is kept, and nothing goes out twice."""

import json
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import connect, grants, sign_in
from socialpub.cli.sandbox import provider_lines
from socialpub.core.actor import DASHBOARD, act_as
from socialpub.core.clock import parse
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db import upgrade
from socialpub.providers.http import Http
from socialpub.runtime import Runtime, build
from socialpub.sandbox import World
from socialpub.web.http.app import create_app
from tests.integration.api.client import Client
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import FaultTransport
from tests.support.tab import Tab
from tests.upgrades import sample
from tests.upgrades.sample import JOURNAL, SampleFacts

PAGES = ("/", "/posts", "/calendar", "/profiles", "/keys", "/log", "/audit", "/system", "/compose")
LISTS = ("/posts", "/posts?deliveryStatus=failed", "/posts?deliveryStatus=published", "/profiles", "/publish/logs")


@dataclass
class FormerFolder:
    name: str
    folder: Path
    facts: SampleFacts
    clock: HandClock
    world: World

    @property
    def settings(self) -> Settings:
        networks = tomllib.loads(provider_lines(self.facts.sandbox_url))["providers"]
        return Settings(data_dir=self.folder / "data", providers=ProvidersSection.model_validate(networks))

    def open(self, settings: Settings | None = None) -> Runtime:
        http = Http(mounts={self.facts.sandbox_url: FaultTransport(self.world)})
        return build(settings or self.settings, clock=self.clock, http=http, role="test")

    def ended(self) -> dict[tuple[str, str], str]:
        """The deliveries that have an outcome as the former version left them: post and network."""
        with closing(sqlite3.connect(f"file:{self.settings.database_file}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT post_id, provider, state FROM delivery").fetchall()
        return {(post, provider): state for post, provider, state in rows if state not in ("queued", "running")}

    def public(self) -> Counter[tuple[str, str]]:
        """What readers see: network and text."""
        shown = [("x", post.text) for post in self.world.x.posts]
        shown += [("pinterest", pin.description) for pin in self.world.pinterest.pins]
        shown += [("tiktok", post.title) for post in self.world.tiktok.posts]
        return Counter(shown)


def taken_up(name: str, folder: Path) -> FormerFolder:
    facts = sample.unpack(name, folder)
    clock = HandClock(parse(facts.taken_at) + timedelta(minutes=5))
    world = World(clock, journal=folder / JOURNAL)
    world.instant_faults = True
    world.x.duplicate_window_seconds = 0
    world.tiktok.public_urls_only, world.tiktok.all_urls_verified = False, True
    return FormerFolder(name, folder, facts, clock, world)


@pytest.fixture(params=sample.names())
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FormerFolder]:
    found = taken_up(request.param, tmp_path)
    yield found
    found.world.close()


def test_every_schema_has_a_sample() -> None:
    """`make upgrade-samples` makes the missing ones; those of a version that is still being made come with the next."""
    newest = max(sample.names())
    assert {name for name in upgrade.list_known() if name <= newest} == set(sample.names())


def test_what_was_on_its_way_ends_truthfully_and_is_up_once(former: FormerFolder) -> None:
    ended = former.ended()
    rt = former.open()
    reconnect(rt, former)
    drain(rt, former.clock)
    check_outcomes(rt, former, ended)
    check_counters(rt)
    rt.close()


def test_every_sample_is_of_its_schema_and_of_none_after_it(tmp_path: Path) -> None:
    schemas = []
    for name in sample.names():
        sample.unpack(name, tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name / "data" / "socialpub.db")) as connection:
            applied = upgrade.list_applied(connection)
        assert applied.count(name) == 1, name
        schemas.append(frozenset(applied))
    schemas.sort(key=len)
    assert [len(schema) for schema in schemas] == list(range(1, len(schemas) + 1))


@pytest.mark.parametrize("former", sample.names()[::6], indirect=True)
def test_lists_pages_and_former_answers_are_as_they_were(former: FormerFolder) -> None:
    rt = former.open()
    app = create_app(rt)
    with Client(app, former.facts.key) as client:
        for path in LISTS:
            answer = client.send("GET", path)
            assert answer.status == 200 and answer.json()["data"], path
        assert {post["id"] for post in client.send("GET", "/posts?perPage=100").json()["data"]} == set(
            former.facts.posts
        )
        for key, post_id in former.facts.replayed.items():
            profile = rt.reader.value("SELECT profile_id FROM delivery WHERE post_id = ?", (post_id,))
            body = {"post": {"body": former.facts.posts[post_id]}, "profiles": [profile]}
            again = client.send("POST", "/posts", body, idempotency_key=key)
            assert again.headers["idempotency-replayed"] == "true"
            assert again.json()["data"]["id"] == post_id
    rt.write(sign_in.set_password, "a hash")
    with act_as(DASHBOARD):
        session = rt.write(sign_in.begin_session, "127.0.0.1", "Test browser")
    with Tab(app) as browser:
        browser.cookies[f"socialpub_session_{rt.instance_id[:8]}"] = session.token
        for path in (*PAGES, f"/posts/{next(iter(former.facts.posts))}"):
            assert browser.open(path).status == 200, path
    assert rt.reader.value("SELECT status FROM artifact WHERE id = ?", (former.facts.reserved,)) == "reserved"
    rt.close()


def reconnect(rt: Runtime, former: FormerFolder) -> None:
    """The owner of the account whose tokens its network took back connects it again."""
    grant = grants.read_credentials(json.dumps(former.world.x.grant(former.facts.lapsed)))
    connect.import_account(rt, "x", grant, None)


def check_outcomes(rt: Runtime, former: FormerFolder, ended: dict[tuple[str, str], str]) -> None:
    """What had ended then stays as it was, and all else is published."""
    public = former.public()
    rows = rt.reader.all("SELECT post_id, provider, state, error_message FROM delivery")
    assert len(rows) == len(former.facts.posts) + 1, "one post goes to two networks"
    for row in rows:
        body = former.facts.posts[row["post_id"]]
        expected = ended.get((row["post_id"], row["provider"]), "published")
        assert row["state"] == expected, (body, row["error_message"])
        assert public[row["provider"], body] == (expected == "published"), body
    assert sum(public.values()) == sum(row["state"] == "published" for row in rows)


def check_counters(rt: Runtime) -> None:
    def rows(sql: str) -> set[tuple[Any, ...]]:
        return {tuple(row) for row in rt.reader.all(sql)}

    assert rows("SELECT status, posts FROM post_count WHERE posts > 0") == rows(
        "SELECT status, count(*) FROM post GROUP BY 1"
    )
    assert rows("SELECT audience_id, status, outcomes, posts FROM audience_count WHERE posts > 0") == rows(
        "SELECT audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3"
    )
    assert rows("SELECT day, audience_id, status, outcomes, posts FROM post_day") == rows(
        "SELECT substr(created_at, 1, 10), audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3, 4"
    )
    assert rows("SELECT provider, outcome, deliveries FROM delivery_count") == rows(
        "SELECT provider, state, count(*) FROM delivery WHERE state NOT IN ('queued', 'running') GROUP BY 1, 2"
    )
