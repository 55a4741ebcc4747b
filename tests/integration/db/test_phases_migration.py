"""Open deliveries of the former version: every combination of its flags becomes the phase that does the same next."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from socialpub.db import states, upgrade
from socialpub.db.states import Phase, WaitingForReconnect
from socialpub.db.tables import delivery_rows
from socialpub.runtime import Runtime
from tests.support.appliance import open_appliance
from tests.support.hand_clock import HandClock

AT = "2026-10-12T09:00:00.000Z"
BEFORE = "2026-10-12T08:00:00.000Z"
PLAN = [["upload", "prepare"], ["await", "poll"], ["create", "commit"], ["settle", "poll"]]
NO_PLAN, PREPARES, ASKS, COMMITS, SETTLES = None, 0, 1, 2, 3
UNKNOWN = {"commits": 1, "unknown": "timed out", "since": BEFORE, "dated_since": AT}
DOUBT: dict[str, Any] = {"commits": 1, "why": "timed out", "since": BEFORE, "dated_since": AT}
RESTORED = {"restored": True, "since": BEFORE, "unknown": "the installation may have"}
EARLIER = {"body": "Before", "media": [["m", None]], "options": {}}
ROUND = {"looks": 2, "looked_seconds": 20.5}
ROUND_NOW: dict[str, Any] = {"readbacks": 2, "read_back_seconds": 20.5}

FORMER: list[tuple[int | None, dict[str, Any], Phase]] = [
    (NO_PLAN, {}, states.Preparing()),
    (PREPARES, {"tries": 2}, states.Preparing()),
    (ASKS, {"again": {"expired": 1}}, states.Preparing()),
    (COMMITS, {}, states.Committing()),
    (COMMITS, {"dated_since": AT, "stopped": True}, states.Committing(AT)),
    (SETTLES, {"dated_since": AT}, states.Processing(dated_since=AT)),
    (SETTLES, {"commits": 1, "since": BEFORE, "dated_since": AT}, states.Processing(1, BEFORE, AT)),
    (SETTLES, {"commits": 1, "since": BEFORE, "closing": "Late."}, states.Processing(1, BEFORE, None, "Late.")),
    (COMMITS, {**UNKNOWN, **ROUND, "reading_back": True}, states.ReadingBack(**DOUBT, **ROUND_NOW)),
    (COMMITS, {**UNKNOWN, "reading_back": True, "confirming": True}, states.Confirming(**DOUBT)),
    (COMMITS, UNKNOWN, states.CommittingAgain(**DOUBT)),
    (COMMITS, {**UNKNOWN, "commits": 2, "reading_back": True}, states.ReadingBack(**{**DOUBT, "commits": 2})),
    (PREPARES, UNKNOWN, states.PreparingAgain(**DOUBT)),
    (ASKS, UNKNOWN, states.PreparingAgain(**DOUBT)),
    (
        COMMITS,
        {**UNKNOWN, **ROUND, "reading_back": True, "closing": "Stopped by the owner.", "stopped": True},
        states.Closing(**DOUBT, message="Stopped by the owner.", **ROUND_NOW),
    ),
    (NO_PLAN, {"look_first": True, "since": BEFORE}, states.Inherited(BEFORE)),
    (PREPARES, {"look_first": True, "since": BEFORE, "earlier": [EARLIER]}, states.Inherited(BEFORE, (EARLIER,))),
    (COMMITS, {"look_first": True, "since": BEFORE}, states.Inherited(BEFORE)),
    (
        NO_PLAN,
        {"look_first": True, "reading_back": True, "confirming": True, "since": BEFORE},
        states.ConfirmingInherited(BEFORE),
    ),
    (COMMITS, {**UNKNOWN, "look_first": True, "reading_back": True}, states.ReadingBack(**DOUBT)),
    (COMMITS, {**UNKNOWN, "look_first": True}, states.CommittingAgain(**DOUBT)),
    (
        SETTLES,
        {"look_first": True, "since": BEFORE},
        states.ProcessingInherited(BEFORE, "the installation that the backup was made of may have published it"),
    ),
    (
        NO_PLAN,
        {**RESTORED, **ROUND, "reading_back": True, "earlier": [EARLIER]},
        states.ReadingBackInherited(BEFORE, (EARLIER,), RESTORED["unknown"], **ROUND_NOW),  # type: ignore[arg-type]
    ),
    (
        COMMITS,
        {**RESTORED, "commits": 1, "reading_back": True, "closing": "Late."},
        states.ReadingBackInherited(BEFORE, (), RESTORED["unknown"], 1, "Late."),  # type: ignore[arg-type]
    ),
    (SETTLES, RESTORED, states.ProcessingInherited(BEFORE, RESTORED["unknown"])),  # type: ignore[arg-type]
    (SETTLES, {"restored": True}, states.ProcessingInherited()),
    (NO_PLAN, {"waits_for_owner": True}, WaitingForReconnect(states.Preparing())),
    (COMMITS, {"waits_for_owner": True, "reconnected_at": AT}, WaitingForReconnect(states.Committing())),
    (
        COMMITS,
        {**UNKNOWN, "reading_back": True, "waits_for_owner": True},
        WaitingForReconnect(states.ReadingBack(**DOUBT)),
    ),
    (
        NO_PLAN,
        {"look_first": True, "since": BEFORE, "earlier": [EARLIER], "waits_for_owner": True},
        WaitingForReconnect(states.Inherited(BEFORE, (EARLIER,))),
    ),
]


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """An appliance that was brought up to date with a delivery of each of the former combinations, and one ended."""
    former = tmp_path / "former"
    former.mkdir()
    for path in upgrade.MIGRATIONS.glob("00[01]*_*.py"):
        shutil.copy(path, former)
    for path in upgrade.MIGRATIONS.glob("002[0-4]_*.py"):
        shutil.copy(path, former)
    with monkeypatch.context() as patched:
        patched.setattr(upgrade, "MIGRATIONS", former)
        before = open_appliance(tmp_path, clock)
        database = before.settings.database_file
        before.close()
    with sqlite3.connect(database) as rows:
        rows.execute(
            "INSERT INTO post (id, status, created_at, updated_at, audience_id) VALUES ('p', 'pending', ?, ?, 1)",
            (AT, AT),
        )
        for number, (step, flags, _) in enumerate([*FORMER, (SETTLES, UNKNOWN, states.Preparing())]):
            rows.execute(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                    options, due_at, run_at, content_key, plan, step, progress, committed_at)
                    VALUES (?, 'p', ?, 'a', 'x', 'n', 'a', ?, '{}', ?, ?, '', ?, ?, ?, ?)""",
                (
                    f"d{number}", number, "queued" if number < len(FORMER) else "published", AT, AT,
                    None if step is None else json.dumps(PLAN), step or 0, json.dumps(flags),
                    AT if flags.get("reading_back") else None,
                ),
            )  # fmt: skip
    rows.close()
    now = open_appliance(tmp_path, clock)
    yield now
    now.close()


def test_every_combination_lands_in_the_phase_that_does_the_same_next(rt: Runtime) -> None:
    for number, (step, flags, phase) in enumerate(FORMER):
        delivery = delivery_rows.find(rt.reader, f"d{number}")
        assert delivery is not None
        assert delivery.progress.phase == phase, (step, flags)
        kept = {name: flags[name] for name in ("tries", "stopped", "reconnected_at", "again") if name in flags}
        assert {name: getattr(delivery.progress, name) for name in kept} == kept
        assert delivery.past_commit or not delivery.unknown_calls


def test_what_has_ended_is_read_as_before(rt: Runtime) -> None:
    delivery = delivery_rows.find(rt.reader, f"d{len(FORMER)}")
    assert delivery is not None and delivery.phase == states.Preparing()


def test_the_queue_knows_what_each_phase_waits_on(rt: Runtime) -> None:
    for row in rt.reader.all("SELECT id, phase, next_scope, waits_on FROM delivery WHERE state = 'queued'"):
        delivery = delivery_rows.find(rt.reader, row["id"])
        assert delivery is not None
        assert row["phase"] == delivery.phase.name
        assert row["next_scope"] == ("questions" if delivery.asks else delivery.step_name)
        assert row["waits_on"].lstrip("+") == ("" if ends_without_a_call(delivery) else delivery.step_name)


def ends_without_a_call(delivery: Any) -> bool:
    return bool(delivery.progress.stopped and not delivery.asks)
