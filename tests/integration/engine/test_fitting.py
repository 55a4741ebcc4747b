"""Versions made for a delivery go when it is settled, however it ended."""

from socialpub import fitting
from socialpub.runtime import Runtime
from tests.crank import drain
from tests.house import accept


def test_what_was_made_for_a_delivery_that_ended_is_removed_and_what_is_needed_stays(rt: Runtime, profile: str) -> None:
    accept(rt, profile, body="ended")
    drain(rt)
    accept(rt, profile, body="waits")
    ended, waits = (row[0] for row in rt.reader.all("SELECT id FROM delivery ORDER BY id"))
    for delivery in (ended, waits):
        (rt.files.path(fitting.FITTED) / delivery).mkdir(parents=True)
    assert fitting.clean(rt) == 1
    assert [folder.name for folder in rt.files.path(fitting.FITTED).iterdir()] == [waits]
