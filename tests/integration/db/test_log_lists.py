"""The delivery log: filtered pages, and the export for a spreadsheet."""

import csv
import io
import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import product

import pytest

from socialpub.accounts.api_keys import OWNER, Caller
from socialpub.db.queries import api_json, calendar, log_list
from socialpub.db.queries.log_list import LogFilter
from socialpub.publishing import log_export
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile
from tests.support.drain import drain
from tests.support.query_plans import plans_of
from tests.support.select import select_all


def listed(rt: Runtime, **filters: object) -> list[tuple[str, str | None]]:
    page = log_list.load_page(rt.db, LogFilter(**filters))  # type: ignore[arg-type]
    return [(entry.type, entry.text) for entry in page.entries]


def test_entries_are_found_by_network_profile_type_time_and_error(rt, profile, clock):
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


def test_a_log_entry_is_found_by_a_part_of_its_error(rt, profile):
    post = accept(rt, profile, body="b" * 300)
    rt.write(posts.stop, post)
    for words, found in (("STOPPED by", 1), ("stopped%", 0), ("refused", 0)):
        page = log_list.load_page(rt.db, LogFilter(error=words))
        assert len(page.entries) == found, words
    (entry,) = log_list.load_page(rt.db, LogFilter(type="failed")).entries
    assert (entry.error, entry.text, entry.post_id) == ("Stopped by the owner.", "b" * 100, post)


def test_new_entries_do_not_change_the_next_page(rt, profile, clock):
    for number in range(5):
        accept(rt, profile, body=str(number))
    first = log_list.load_page(rt.db, LogFilter(per_page=2))
    accept(rt, profile, body="meanwhile")
    second = log_list.load_page(rt.db, LogFilter(per_page=2, below=first.below))
    last = log_list.load_page(rt.db, LogFilter(per_page=2, below=second.below))
    assert [[entry.text for entry in page.entries] for page in (first, second, last)] == [["4", "3"], ["2", "1"], ["0"]]
    assert last.below is None
    assert log_list.load_page(rt.db, LogFilter(per_page=6)).below is None


def test_the_file_holds_every_entry_once_and_no_formula(rt, profile, monkeypatch):
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


def test_an_export_holds_no_transaction_open(rt, profile, monkeypatch):
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


def test_the_entries_of_a_network_are_found_behind_those_of_others_page_by_page(rt, profile):
    first, second = (add_profile(rt, "tiktok", account_id=name, name=name) for name in ("a", "b"))
    later = rt.now() + timedelta(days=1)
    for number in range(3):
        accept(rt, first, body=f"a{number}", at=later)
        accept(rt, second, body=f"b{number}", at=later)
    for number in range(9):
        accept(rt, profile, body=f"x{number}", at=later)
    seen, below = list[str | None](), None
    while True:
        page = log_list.load_page(rt.db, LogFilter(provider="tiktok", type="pending", below=below, per_page=4))
        seen += [entry.text for entry in page.entries]
        below = page.below
        if below is None:
            break
    assert seen == ["b2", "a2", "b1", "a1", "b0", "a0"]


@pytest.mark.parametrize(
    "jumps", [{}, {7: -3600.0}, {7: -3600.0, 13: -7200.0, 20: 9000.0, 25: -1.5}, {9: 1e6, 18: -1e6}]
)
def test_a_time_window_has_exactly_its_entries_also_after_the_clock_was_set(rt, profile, clock, jumps):
    for number in range(30):
        clock.jump(jumps.get(number, 0.0))
        accept(rt, profile, at=rt.now() + timedelta(days=30))
        clock.forward(600 if number % 3 else 0)
    rt.db.write(lambda tx: tx.execute_sql("DELETE FROM log_entry WHERE n IN (1, 2, 11, 16, 17, 18, 19)"))
    entries = [(row[0], row[1]) for row in select_all(rt.db, "SELECT n, occurred_at FROM log_entry ORDER BY n DESC")]
    borders = [None, *sorted({at for _, at in entries}), "2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"]
    for since, until in product(borders, borders):
        expected = [n for n, at in entries if (since is None or at >= since) and (until is None or at < until)]
        page = log_list.load_page(rt.db, LogFilter(since=since, until=until, profile_id=profile))
        assert [entry.number for entry in page.entries] == expected, (since, until)
        of_network = log_list.load_page(rt.db, LogFilter(since=since, until=until, provider="x"))
        assert of_network == page


NAMES = ("type", "only_outcomes", "provider", "profile_id", "error", "since", "until", "below")
FILTERS = [
    dict(zip(NAMES, values, strict=True))
    for values in product(
        (None, "published", "failed", "canceled"),
        (False, True),
        (None, "x"),
        (None, "a"),
        (None, "refused"),
        (None, "2026-10-12T09:00:00.000Z"),
        (None, "2026-10-12T10:00:00.000Z"),
        (None, 500),
    )
]


def test_every_filter_reads_entries_in_order_of_an_index(rt, profile):
    accept(rt, profile)
    for filters in FILTERS:
        plans = plans_of(rt.db, lambda db, filters=filters: log_list.load_page(db, LogFilter(**filters)))  # type: ignore[misc]
        page = plans[-1]
        # Entries are stored in the order of their numbers, so a scan ends with the page.
        assert "SCAN log_entry" not in page.steps or not (filters["since"] or filters["until"] or filters["below"])
        assert page.sorts == 0 or filters["provider"], (filters, page)
        if filters["type"] in ("failed", "canceled") or filters["error"]:
            assert page.uses("log_entry_rare") or page.uses("log_entry_message"), (filters, page)
        elif filters["provider"] or filters["profile_id"]:
            assert page.uses("log_entry_of_profile"), (filters, page)


def test_other_lists_read_indexes(rt, profile):
    limited = Caller("key", "read", providers=frozenset({"x"}))
    at, later = "2026-10-12T09:00:00.000Z", "2026-10-13T09:00:00.000Z"
    accept(rt, profile)
    for read in (
        lambda db: api_json.log_entries(db, OWNER, 20, 100),
        lambda db: api_json.log_entries(db, limited, 20, 100),
        lambda db: api_json.log_entries_after(db, limited, 5, 20),
        lambda db: log_list.published(db, 10, ["x"], at),
        lambda db: log_list.recent_failures(db, at, 10),
        lambda db: log_list.failures_after(db, 5, at, 10),
        lambda db: calendar.load_days(db, [at, later]),
        lambda db: calendar.upcoming_posts(db, at, 10),
        lambda db: calendar.pending_posts(db, 10),
        lambda db: calendar.load_posts(db, ["a"]),
    ):
        plans = plans_of(rt.db, read)
        assert plans
        assert not [plan for plan in plans if plan.scans], plans
