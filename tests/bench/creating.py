"""The creating lines: posts accepted a second, beside durable commits and beside the same statements alone."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, ClassVar

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import stamp
from socialpub.db.connection import Database
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.floors import Recording
from tests.bench.load import drive, post
from tests.bench.reading import Appliances, growth
from tests.bench.servers import MeasuredAppliance, Servers
from tests.bench.turns import Turns
from tests.bench.wal import WalCount

OF_COMMITS, OF_STATEMENTS = 0.3, 0.6
CONNECTIONS = 32
CALLER = Caller("bench", "write")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def measure(servers: Servers, appliances: Appliances, turns: Turns, seconds: float) -> list[Figure]:
    """Measure creates by many callers at once. Publishing is paused and stays paused."""
    for appliance in appliances.values():
        appliance.rt.write(resume.pause)
    few, many = min(appliances), max(appliances)
    tomorrow = appliances[few].rt.now() + timedelta(days=1)
    ends = {few: appliances[few], many: appliances[many]}
    return [
        *_measure(servers, appliances, turns, seconds, "creates, scheduled", tomorrow),
        *_measure(servers, ends, turns, seconds, "creates, publish now", None),
    ]


def _measure(
    servers: Servers, appliances: Appliances, turns: Turns, seconds: float, name: str, at: datetime | None
) -> list[Figure]:
    creates = {size: _creates(one, at) for size, one in appliances.items()}
    few = min(appliances)
    with WalCount(appliances[few].database) as log:
        count = creates[few](seconds)["statuses"]["201"]
    batch = max(1, round(count / max(1, log.commits)))
    floors = []
    for one in appliances.values():
        recording = json.dumps(record(one, at, batch))
        floors.append(lambda one=one, recording=recording: _run_floor("statements", one.database, seconds, recording))
    commits, *measured = turns.take(
        lambda: _run_floor("commits", servers.folder / "commits.db", seconds),
        *floors,
        *(lambda create=create: float(create(seconds)["per_second"]) for create in creates.values()),
    )
    statements, values = measured[: len(appliances)], measured[len(appliances) :]
    found, others = [], []
    for size, floor, rates in zip(appliances, statements, values, strict=True):
        of_commits, of_statements = (OF_COMMITS, OF_STATEMENTS) if size in (few, max(appliances)) else (None, None)
        found.append(
            figures.compare(
                *(f"{name}, {size:,} posts", rates, commits, "/s", "raw commits"),
                **{"least": of_commits, "posts": size, "series": "creates / raw commits" if at else ""},
            )
        )
        others.append(
            figures.compare(
                *(f"{name}, {size:,} posts, beside their statements", rates, floor, "/s", f"in batches of {batch}"),
                **{"least": of_statements, "posts": size, "series": "creates / same statements" if at else ""},
            )
        )
    return [*found, *others, *growth(found)]


def _creates(appliance: MeasuredAppliance, at: datetime | None) -> Callable[[float], dict[str, Any]]:
    key = appliance.key()
    content = {"body": "Post number ########", **({"scheduledAt": stamp(at)} if at else {})}
    requests = [
        post(appliance.url, "/api/v1/posts", key, {"post": content, "profiles": [profile]})
        for profile in appliance.profiles
    ]
    return lambda seconds: drive(appliance.url, requests, seconds=seconds, connections=CONNECTIONS, expected=201)


def _run_floor(kind: str, file: object, seconds: float, given: str = "") -> float:
    command = [sys.executable, "-m", "tests.bench.floors", kind, str(file), str(seconds)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout)


# --- recording -------------------------------------------------------------------------------------------------------


class _Recorder(Database):
    """A database that records its statements."""

    statements: ClassVar[list[tuple[str, list[Any]]]] = []

    def execute_sql(self, sql: str, params: Any = ()) -> Any:
        assert not isinstance(params, dict), f"named parameters are not replayed: {sql}"
        self.statements.append((sql, list(params or ())))
        return super().execute_sql(sql, params)

    def many(self, sql: str, rows: Any) -> None:
        for row in rows:
            self.execute_sql(sql, row)


def record(appliance: MeasuredAppliance, at: datetime | None, batch: int) -> Recording:
    """Record the statements of one create, as the writer runs it."""
    rt = appliance.rt
    draft = Draft("Post number 00000000", at, (appliance.profiles[0],))
    rt.write(posts.create, draft, CALLER)  # the first post to these profiles also stores their audience
    recorder = _Recorder(appliance.database)
    with closing(recorder), recorder.atomic("IMMEDIATE") as transaction:
        recorder.connection().create_function("media_url", 1, lambda key: key)
        recorder.statements.clear()
        recorder.execute_sql("SAVEPOINT one")
        recorder.begin_write(rt.now())
        posts.create(rt, recorder, draft, CALLER)
        recorder.execute_sql("RELEASE one")
        recorded = list(recorder.statements)
        known = {row[0] for row in recorder.connection().execute("SELECT id FROM profile")}
        transaction.rollback()
    new = {value for _, params in recorded for value in params if isinstance(value, str)}
    ids = sorted({one for value in new for one in _ID.findall(value)} - known)
    place = {one: [number] for number, one in enumerate(ids)}
    statements = [(sql, [place.get(value, value) for value in params]) for sql, params in recorded]
    return {"statements": statements, "ids": len(ids), "batch": batch}
