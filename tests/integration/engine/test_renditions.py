"""Versions made for a delivery go when it is settled, however it ended."""

from socialpub.publishing import renditions
from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.drain import drain


def test_what_was_made_for_a_delivery_that_ended_is_removed_and_what_is_needed_stays(rt: Runtime, profile: str) -> None:
    accept(rt, profile, body="ended")
    drain(rt)
    accept(rt, profile, body="waits")
    ended, waits = (row[0] for row in rt.reader.all("SELECT id FROM delivery ORDER BY id"))
    for delivery in (ended, waits):
        (rt.files.path(renditions.FITTED) / delivery).mkdir(parents=True)
    assert renditions.clean(rt) == 1
    assert [folder.name for folder in rt.files.path(renditions.FITTED).iterdir()] == [waits]
