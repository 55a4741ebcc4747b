"""`GET /publish/logs?after=`: a caller that keeps the last id reads each entry once (contract 10.1.3)."""

import json
import threading
import uuid

import pytest

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import OWNER, Caller
from socialpub.db.connection import Database
from socialpub.db.database import ApplianceDatabase
from socialpub.db.models import LogEntryRow
from socialpub.db.queries import api_json
from socialpub.db.tables import log_entries
from socialpub.publishing import retention
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.query_plans import plans_of
from tests.support.select import select_all

ID = "01a12f57-1a80-7000-923c-5335e03d1937"
AT = "2026-10-12T09:00:00.000Z"
ENTRY = {"delivery_id": ID, "post_id": ID, "provider": "x", "type": "failed", "occurred_at": AT, "text_version": 0}


def read_feed(client: Client, key: str = "", *, after: str = "start", limit: int = 2) -> list[str]:
    """Return the ids of all entries after this one, as a caller reads them page by page."""
    found: list[str] = []
    while page := client.send("GET", f"/publish/logs?after={after}&limit={limit}", key=key).data:
        assert len(page) <= limit
        found += [entry["id"] for entry in page]
        after = found[-1]
    return found


def test_the_feed_has_each_entry_once_in_the_order_of_writing(client, rt, clock, profile):
    for number in range(3):
        accept(rt, profile, body=f"n{number}")
        drain(rt, clock)
    entries = client.send("GET", "/publish/logs").data[::-1]
    ids = [entry["id"] for entry in entries]
    assert [entry["type"] for entry in entries] == ["pending", "published"] * 3
    assert read_feed(client) == ids
    assert client.send("GET", "/publish/logs?after=start&limit=0").data == []
    accept(rt, profile, body="later")
    [new] = read_feed(client, after=ids[-1])
    assert new == client.send("GET", "/publish/logs?limit=1").data[0]["id"]
    assert read_feed(client, after=new.upper()) == []


def test_a_limited_key_reads_the_entries_of_its_profiles(client, rt):
    own, other = add_profile(rt), add_profile(rt, "pinterest")
    key = rt.write(api_keys.create, "limited", profiles=(own,))
    nothing = rt.write(api_keys.create, "tiktok", providers=("tiktok",))
    for profile in (own, other, own):
        accept(rt, profile, body="a")
    entries = client.send("GET", "/publish/logs").data[::-1]
    assert read_feed(client, key, limit=1) == [entries[0]["id"], entries[2]["id"]]
    assert read_feed(client, nothing) == []
    hidden = client.send("GET", f"/publish/logs?after={entries[1]['id']}", key=key)
    assert (hidden.status, hidden.json()["errors"][0]["path"]) == (400, ["after"])


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("after=start&offset=0", [["offset"]]),
        (f"after={ID}", [["after"]]),
        (f"after={ID}&offset=3", [["after"], ["offset"]]),
        ("after=yesterday", [["after"]]),
        ("after=", [["after"]]),
    ],
)
def test_a_position_that_does_not_exist_is_refused(client, query, paths):
    reply = client.send("GET", f"/publish/logs?{query}")
    assert (reply.status, [error["path"] for error in reply.json()["errors"]]) == (400, paths)


def test_a_removed_position_is_refused_and_no_number_is_used_twice(client, rt, clock, profile):
    post = accept(rt, profile, body="old")
    drain(rt, clock)
    first, last = read_feed(client)
    rt.db.write(lambda tx: (retention.remove_post(tx, post, rt.stamp()), log_entries.delete_entries(tx, 0, 2)))
    refused = client.send("GET", f"/publish/logs?after={first}")
    assert (refused.status, "after=start" in refused.json()["detail"]) == (400, True)
    accept(rt, profile, body="new")
    assert read_feed(client) == [last, *read_feed(client, after=last)]
    assert len(read_feed(client, after=last)) == 1


def test_no_entry_of_another_process_becomes_visible_before_a_returned_entry(client, rt, profile):
    # Each `Database` has its own writer, as each process has. The ids of two processes are in no order.
    settings = rt.settings
    other = ApplianceDatabase(settings.database_file, settings.run_dir, rt.clock, rt.secrets)
    began, go = threading.Event(), threading.Event()

    def write_slowly(tx: Database) -> str:
        entry = insert(tx, profile)
        began.set()
        assert go.wait(20)
        return entry

    def insert(tx: Database, profile: str) -> str:
        tx.insert(LogEntryRow, {"id": (entry := str(uuid.uuid4())), "profile_id": profile, **ENTRY})
        return entry

    found: dict[str, str] = {}
    slow = threading.Thread(target=lambda: found.update(slow=rt.db.write(write_slowly)))
    fast = threading.Thread(target=lambda: found.update(fast=other.write(insert, profile)))
    try:
        slow.start()
        assert began.wait(20)
        fast.start()
        assert read_feed(client) == []  # neither is visible: the second write waits for the first
        go.set()
        slow.join()
        fast.join()
        entries = [found["slow"], found["fast"]]
        assert read_feed(client) == entries
        # Both write at full speed while a caller reads.
        writers = [
            threading.Thread(target=lambda db=db: [db.write(insert, profile) for _ in range(60)])
            for db in (rt.db, other)
        ]
        for writer in writers:
            writer.start()
        is_writing = True
        while is_writing:
            is_writing = any(writer.is_alive() for writer in writers)
            position = api_json.log_number(rt.db, OWNER, entries[-1])
            assert position is not None
            entries += [entry["id"] for entry in json.loads(api_json.log_entries_after(rt.db, OWNER, position, 9999))]
        assert entries == [row.id for row in select_all(rt.db, "SELECT id FROM log_entry ORDER BY n")]
        assert len(entries) == 122
    finally:
        go.set()
        other.stop()


def test_a_profile_that_is_connected_during_a_read_loses_no_entry(rt, profile):
    """One statement reads the profiles and the entries of the same instant."""
    accept(rt, profile, body="a")
    limited = Caller("key", "read", providers=frozenset({"x"}))
    pages = list[bytes]()
    plans = plans_of(rt.db, lambda db: pages.append(api_json.log_entries_after(db, limited, 0, 10)))
    assert len(plans) == 1
    assert pages[0].count(b'"deliveryId"') == 1
