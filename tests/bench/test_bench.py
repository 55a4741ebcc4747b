"""The bench: every line runs, and the stock has the rows that an appliance writes. No measured value is judged."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from socialpub.core.settings import loader, template
from socialpub.db.queries import api_json
from socialpub.runtime import build
from tests.bench import stock
from tests.bench.servers import write_config
from tests.bench.stock import Stock
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
