"""The delivery log: filtered pages, and the export for a spreadsheet."""

import csv
import io
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from socialpub.accounts.api_keys import OWNER
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import LogFilter
from socialpub.publishing import log_export
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.hand_clock import HandClock


def listed(rt: Runtime, **filters: object) -> list[tuple[str, str | None]]:
    page = log_list.load_page(rt.reader, LogFilter(**filters))  # type: ignore[arg-type]
    return [(entry.type, entry.text) for entry in page.entries]


def test_entries_are_found_by_network_profile_type_time_and_error(rt: Runtime, profile: str, clock: HandClock) -> None:
    second = add_profile(rt, "tiktok", account_id="b", name="Second")
    accept(rt, profile, body="first")
    drain(rt)
    clock.forward(60)
    noon = rt.stamp()
    canceled = accept(rt, second, body="second", at=rt.now() + timedelta(hours=1))
    clock.forward(60)
    rt.write(posts.cancel, canceled, OWNER)
    gone = accept(rt, profile, body="third", at=rt.now() + timedelta(hours=1))
    rt.write(posts.stop, gone)
    assert listed(rt, profile_id=profile) == [
        ("canceled", "third"),
        ("pending", "third"),
        ("published", "first"),
        ("pending", "first"),
    ]
    assert listed(rt, provider="tiktok") == [("canceled", "second"), ("pending", "second")]
    assert listed(rt, type="canceled", profile_id=second) == [("canceled", "second")]
    assert listed(rt, until=noon) == [("published", "first"), ("pending", "first")]
    assert listed(rt, since=noon, type="pending") == [("pending", "third"), ("pending", "second")]
    assert listed(rt, provider="pinterest") == []


def test_a_log_entry_is_found_by_a_part_of_its_error(rt: Runtime, profile: str) -> None:
    post = accept(rt, profile, body="b" * 300)
    rt.write(posts.stop, post)
    for words, found in (("STOPPED by", 1), ("stopped%", 0), ("refused", 0)):
        page = log_list.load_page(rt.reader, LogFilter(error=words))
        assert len(page.entries) == found, words
    (entry,) = log_list.load_page(rt.reader, LogFilter(type="failed")).entries
    assert (entry.error, entry.text, entry.post_id) == ("Stopped by the owner.", "b" * 100, post)


def test_new_entries_do_not_change_the_next_page(rt: Runtime, profile: str, clock: HandClock) -> None:
    for number in range(5):
        accept(rt, profile, body=str(number))
    first = log_list.load_page(rt.reader, LogFilter(per_page=2))
    accept(rt, profile, body="meanwhile")
    second = log_list.load_page(rt.reader, LogFilter(per_page=2, below=first.below))
    last = log_list.load_page(rt.reader, LogFilter(per_page=2, below=second.below))
    assert [[entry.text for entry in page.entries] for page in (first, second, last)] == [["4", "3"], ["2", "1"], ["0"]]
    assert last.below is None
    assert log_list.load_page(rt.reader, LogFilter(per_page=6)).below is None


def test_the_file_holds_every_entry_once_and_no_formula(
    rt: Runtime, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["=1+1", "plain, with a comma", 'two\nlines "quoted"', "@mention", "＝1+1", "Größe 🌅"]
    for text in texts:
        accept(rt, profile, body=text)
    monkeypatch.setattr(log_export, "SLICE", 2)
    pieces = log_export.export_csv(rt, LogFilter())
    read = [next(pieces), next(pieces)]
    accept(rt, profile, body="meanwhile")
    read += pieces
    assert len(read) == 4
    rows = list(csv.DictReader(io.StringIO(b"".join(read).decode(), newline="")))
    shown = [row["text"] for row in rows]
    assert shown == ["Größe 🌅", "'＝1+1", "'@mention", 'two\nlines "quoted"', "plain, with a comma", "'=1+1"]
    assert rows[0]["profile"] == "x profile"
    assert rows[0]["time"] == "2026-10-12T09:00:00.000Z"
    assert list(log_export.export_csv(rt, LogFilter(provider="tiktok"))) == [read[0]]


def test_an_export_holds_no_transaction_open(rt: Runtime, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        accept(rt, profile)
    monkeypatch.setattr(log_export, "SLICE", 1)
    pieces = log_export.export_csv(rt, LogFilter())
    next(pieces), next(pieces)
    accept(rt, profile)
    with closing(sqlite3.connect(rt.settings.database_file)) as other:
        busy, _, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy, "a transaction that stays open keeps the journal from being emptied"
    assert len(list(pieces)) == 2


def test_the_entries_of_a_network_are_found_behind_those_of_others_page_by_page(rt: Runtime, profile: str) -> None:
    first, second = (add_profile(rt, "tiktok", account_id=name, name=name) for name in ("a", "b"))
    later = rt.now() + timedelta(days=1)
    for number in range(3):
        accept(rt, first, body=f"a{number}", at=later)
        accept(rt, second, body=f"b{number}", at=later)
    for number in range(9):
        accept(rt, profile, body=f"x{number}", at=later)
    seen, below = list[str | None](), None
    while True:
        page = log_list.load_page(rt.reader, LogFilter(provider="tiktok", type="pending", below=below, per_page=4))
        seen += [entry.text for entry in page.entries]
        below = page.below
        if below is None:
            break
    assert seen == ["b2", "a2", "b1", "a1", "b0", "a0"]


@pytest.mark.parametrize("filters", [{"type": "failed"}, {"type": "canceled"}, {"error": "refused"}])
def test_rare_entries_are_found_by_an_index(rt: Runtime, filters: dict[str, str]) -> None:
    steps = list[str]()
    rt.reader.connection.set_trace_callback(steps.append)
    log_list.load_page(rt.reader, LogFilter(**filters))  # type: ignore[arg-type]
    rt.reader.connection.set_trace_callback(None)
    plan = [str(row[3]) for row in rt.reader.all(f"EXPLAIN QUERY PLAN {steps[-1]}")]
    assert any("log_entry_rare" in line or "log_entry_message" in line for line in plan), plan
