"""The bench: every line runs, and the stock has the rows that an appliance writes. No measured value is judged."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from socialpub.core.settings import loader, template
from socialpub.db.queries import api_json
from socialpub.runtime import build
from tests.bench import figures, page, plot, stock
from tests.bench.figures import Figure
from tests.bench.servers import write_config
from tests.bench.stock import TEMPLATES, Stock
from tests.support.oracle import find_row_contradictions
from tests.support.select import select_all

SANDBOX = "http://127.0.0.1:9"
FIGURES = [
    "socialpub --version", "socialpub --help", "one post, 100", "one post with an image", "one post, limited key",
    "list of 20, 100", "list of 20, limited key", "posts, last page", "posts, window over everything",
    "publish/logs, after", "page /,", "page /log, one day", "signing in", "heaviest page", "one read beside",
    "request to the network's first byte, median", "20 deliveries due at once", "last profile queue",
    "delivery to another network", "processor time per delivery", "write-ahead log per delivery",
    "memory of all processes, after a burst", "one post behind", "100 due", "upload of 2 MB", "nginx's PUT",
    "memory that this upload adds", "list of 20 beside creates", "due posts starts after", "creates, scheduled, 100",
    "memory of all processes, idle", "memory of all processes, after load", "database per post",
]  # fmt: skip


@pytest.mark.e2e
def test_every_line_of_the_bench_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench", "--smoke", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = json.loads((tmp_path / "bench.json").read_text())["figures"]
    names = [one["name"] for one in shown]
    assert len(set(names)) == len(names)
    assert [wanted for wanted in FIGURES if not any(wanted in name for name in names)] == []
    assert [one["name"] for one in shown if one["value"] is None and not one["note"]] == []
    assert all(name in done.stdout for name in names)
    assert ElementTree.parse(tmp_path / "bench.svg").getroot().tag.endswith("svg")


# --- the stock -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Stock:
    folder = tmp_path_factory.mktemp("seed")
    template.create(folder)
    return stock.prepare(folder / "cache", write_config(folder, 1, SANDBOX), SANDBOX)


def test_the_rows_of_a_stock_do_not_contradict_each_other(prepared: Stock, tmp_path: Path) -> None:
    prepared.copy(300, tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "data" / "socialpub.db")) as database:
        assert list(find_row_contradictions(lambda sql: database.execute(sql))) == []
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (posts,) = database.execute("SELECT count(*) FROM post").fetchone()
        networks = {row[0] for row in database.execute("SELECT DISTINCT provider FROM delivery")}
        states = {row[0] for row in database.execute("SELECT DISTINCT state FROM delivery")}
        indexes = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'").fetchone()
    with closing(sqlite3.connect(prepared.folder / "data" / "socialpub.db")) as seed:
        assert indexes == seed.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'").fetchone()
    assert (posts, networks) == (300, {"x", "tiktok", "pinterest"})
    assert states == {"queued", "published", "failed", "unconfirmed", "canceled"}


def test_a_post_of_a_stock_is_shown_as_the_post_that_it_was_copied_from(prepared: Stock, tmp_path: Path) -> None:
    prepared.copy(2 * TEMPLATES, tmp_path / "data")
    originals, copies = shown(prepared.folder / "data"), shown(tmp_path / "data")
    assert len(originals) == TEMPLATES
    assert copies[:TEMPLATES] == copies[TEMPLATES:] == originals


_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|\d{8,}|(?<=/)[0-9a-f]{2}(?=/)"
)


def shown(data: Path) -> list[str]:
    """Return the JSON of all posts, oldest first, without ids, times, numbers and addresses of files."""
    config = write_config(data.parent, 1, SANDBOX)
    settings = loader.load(config)
    rt = build(settings.model_copy(update={"data_dir": data}), role="test")
    try:
        ids = [row[0] for row in select_all(rt.db, "SELECT id FROM post ORDER BY created_at")]
        texts = [(api_json.post(rt.db, one) or b"").decode() for one in ids]
    finally:
        rt.close()
    return [_CHANGING.sub("…", re.sub(r'"url":"[^"]*/media/[^"]*"', "", text)) for text in texts]


# --- the results -----------------------------------------------------------------------------------------------------


def test_a_target_is_about_the_ratio_unless_it_is_about_the_value() -> None:
    slow = figures.compare("reads", [30.0, 40.0, 50.0], [100.0, 100.0, 200.0], "/s", "bare", least=0.35)
    assert (slow.value, slow.ratio, slow.met) == (40.0, 0.3, False)
    late = Figure("list", 25.0, "ms", 5.0, "with 1,000", 5.0, most=20, of_value=True)
    assert (late.met, late.target) == (False, "≤ 20 ms")
    assert Figure("only reported", 1.0, "MB").met is None


def test_growth_is_above_one_when_more_posts_make_it_worse() -> None:
    few, many = Figure("reads", 100.0, "/s", posts=1000), Figure("reads", 50.0, "/s", posts=10**6)
    assert figures.grown("growth", many, few, 1.5).ratio == 2.0
    few, many = Figure("list", 2.0, "ms", posts=1000), Figure("list", 3.0, "ms", posts=10**6)
    assert figures.grown("growth", many, few, 1.5).met


def test_the_table_shows_another_checkout_beside_this_one() -> None:
    now = [Figure("idle", 100.0, "MB", most=115), Figure("new", 1.0, "s")]
    both = figures.beside(now, [Figure("idle", 124.0, "MB")])
    head, idle, new = figures.rows(both)
    assert head[:3] == ("figure", "before", "value")
    assert idle[:3] == ("idle", "124 MB", "100 MB")
    assert new[:3] == ("new", "", "1.00 s")


def test_a_result_can_be_read_back_drawn_and_written_into_the_manual() -> None:
    found = [
        Figure(
            f"one post, {size}", 10.0, "/s", 20.0, "bare", 0.5 - size / 10**7, least=0.35, series="one post", posts=size
        )
        for size in (1000, 10**6)
    ]
    read: list[Figure] = [figures.from_dict(json.loads(json.dumps(figures.as_dict(one)))) for one in found]
    assert read == found
    assert len(ElementTree.fromstring(plot.draw(read)).findall(".//{http://www.w3.org/2000/svg}polyline")) == 1
    result: dict[str, Any] = {"version": "1", "cores": 2, "python": "3.11", "platform": "Linux"}
    result["figures"] = [figures.as_dict(one) for one in found]
    written = page.render(page.PAGE.read_text(), result)
    assert "| one post, 1000 | 10.0/s | 20.0/s bare | 0.50 | ≥ 0.35 | yes |" in written
    assert page.render(written, result) == written
