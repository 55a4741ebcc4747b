"""A database of the former version learns what became of its posts' deliveries."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from socialpub.db import upgrade
from socialpub.db.queries import post_list
from socialpub.db.queries.post_list import PostFilter
from socialpub.db.tables import counters
from tests.support.appliance import open_appliance
from tests.support.hand_clock import HandClock

AT = "2026-10-12T09:00:00.000Z"
POSTS = {
    "p1": ("settled", ["published", "failed"]),
    "p2": ("settled", ["published", "unconfirmed"]),
    "p3": ("pending", ["running", "published"]),
    "p4": ("canceled", ["canceled", "canceled"]),
    "p5": ("scheduled", ["queued", "queued"]),
}
"""Status, and the states of the deliveries to the profiles b and a, in this order."""


def test_posts_of_the_former_version_are_found_by_what_became_of_them(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / "former"
    former.mkdir()
    for path in upgrade.MIGRATIONS.glob("000[1-5]_*.py"):
        shutil.copy(path, former)
    with monkeypatch.context() as patched:
        patched.setattr(upgrade, "MIGRATIONS", former)
        rt = open_appliance(tmp_path, clock)
        database = rt.settings.database_file
        rt.close()
    with sqlite3.connect(database) as rows:
        rows.execute('INSERT INTO audience VALUES (1, \'["a","b"]\')')
        rows.executemany("INSERT INTO audience_member VALUES (1, ?, 'x')", [("a",), ("b",)])
        for post, (status, states) in POSTS.items():
            rows.execute(
                "INSERT INTO post (id, status, created_at, updated_at, audience_id) VALUES (?, ?, ?, ?, 1)",
                (post, status, AT, AT),
            )
            rows.executemany(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                    options, due_at, run_at, content_key) VALUES (?, ?, ?, ?, 'x', 'n', 'a', ?, '{}', ?, ?, '')""",
                [
                    (f"{post}{n}", post, n, profile, state, AT, AT)
                    for n, (profile, state) in enumerate(zip("ba", states, strict=True))
                ],
            )
        rows.execute("INSERT INTO audience_count SELECT audience_id, status, count(*) FROM post GROUP BY 1, 2")
    rows.close()
    rt = open_appliance(tmp_path, clock)
    found = {row["id"]: row["outcomes"] for row in rt.reader.all("SELECT id, outcomes FROM post")}
    assert found == {"p1": "fp", "p2": "up", "p3": "p.", "p4": "cc", "p5": ".."}
    for outcome, profile, count in (("failed", "a", 1), ("failed", "b", 0), ("unknown", "a", 1), ("published", "b", 2)):
        page = post_list.read(rt.reader, PostFilter(outcome=outcome, profiles=(profile,)))
        assert (page.total, len(page.shown)) == (count, count)
    assert post_list.read(rt.reader, PostFilter(status="settled")).total == 2
    assert post_list.read(rt.reader, PostFilter()).total == 5
    assert counters.outcomes(rt.reader) == {
        ("x", "published"): 3,
        ("x", "failed"): 1,
        ("x", "unknown"): 1,
        ("x", "canceled"): 2,
    }
    rt.close()
