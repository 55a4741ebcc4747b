"""Runs every write twice and rolls the first run back: a batch in which one write fails runs all its writes again.

Both runs must have the same result and change the same number of rows. The tests then judge the second run, so an
effect of the first run outside of its transaction shows there.
"""

import random
import re

import pytest

from socialpub.db.database import Writer, _Call

_NEW_EACH_TIME = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # ids
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.?\d*Z?"  # times, because time passes
    r"|[\w+/=-]{32,}"  # tokens, keys and sealed texts
    r"|0x[0-9a-f]+|\b[0-9a-f]{12}\b"  # addresses of objects, ids of sessions
)


def repeat_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    run_once = Writer._try

    def run(writer: Writer, call: _Call) -> tuple[int, int, str]:
        before = writer._connection.total_changes
        run_once(writer, call)
        assert call.tx is not None
        result = call.error if call.error is not None else call.result
        changes = writer._connection.total_changes - before
        return changes, len(call.tx.calls_after_commit), _NEW_EACH_TIME.sub("*", repr(result))

    def run_twice(writer: Writer, call: _Call) -> None:
        execute = writer._connection.execute
        chance = random.getstate()  # a longer back-off may be too long
        execute("SAVEPOINT first")
        first = run(writer, call)
        execute("ROLLBACK TO first")
        random.setstate(chance)
        execute("RELEASE first")
        assert run(writer, call) == first, "a write has an effect outside of its transaction"

    monkeypatch.setattr(Writer, "_try", run_twice)
