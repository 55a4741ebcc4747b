"""What the owner sees first: everything that needs them, and nothing that does not."""

from collections.abc import Callable

from socialpub.accounts.api_keys import OWNER
from socialpub.accounts.remedies import Surface
from socialpub.db.connection import Database
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows
from socialpub.ops import alerts
from socialpub.ops.alerts import DiskSpace
from socialpub.publishing.posts import retries
from socialpub.runtime import Runtime
from tests.support.appliance import accept, end_unsent
from tests.support.drain import drain
from tests.support.hand_clock import HandClock

DAY = 86400


def fail(rt: Runtime, post: str, state: State = State.FAILED) -> None:
    """Let every open delivery of the post fail."""

    def end(_rt: Runtime, tx: Database) -> None:
        for delivery in delivery_rows.list_open_of_post(tx, post):
            end_unsent(rt, tx, delivery, state, "No.")

    rt.write(end)


def test_an_appliance_that_is_well_needs_nothing(rt: Runtime, well: Callable[[], None], profile: str) -> None:
    accept(rt, profile)
    drain(rt)
    assert list(alerts.list_alerts(rt, Surface.DASHBOARD)) == []
    assert alerts.load_alert_facts(rt).failed.newest == []


def test_a_failure_needs_the_owner_until_it_was_tried_again_or_is_a_week_old(
    rt: Runtime, well: Callable[[], None], profile: str, clock: HandClock
) -> None:
    refused, lost = accept(rt, profile, body="Refused " * 30), accept(rt, profile, body="Lost")
    fail(rt, refused)
    clock.forward(60)
    fail(rt, lost, State.UNCONFIRMED)
    well()
    failed = alerts.load_alert_facts(rt).failed
    assert (failed.failed, failed.unknown) == (1, 1)
    assert [(one.post_id, one.unknown, one.error) for one in failed.newest] == [
        (lost, True, "No."),
        (refused, False, "No."),
    ]
    assert failed.newest[1].text == ("Refused " * 30)[:100]
    clock.forward(1)
    again = rt.write(retries.retry, refused, OWNER)
    assert [one.post_id for one in alerts.load_alert_facts(rt).failed.newest] == [lost]
    fail(rt, again)
    assert [one.post_id for one in alerts.load_alert_facts(rt).failed.newest] == [again, lost]
    clock.forward(7 * DAY)
    assert [one.post_id for one in alerts.load_alert_facts(rt).failed.newest] == [again]
    clock.forward(DAY)
    assert alerts.load_alert_facts(rt).failed.newest == []


def test_a_disk_is_reported_before_it_is_full() -> None:
    told = [(DiskSpace(free, 100).is_full, DiskSpace(free, 100).is_nearly_full) for free in (99, 100, 199, 200)]
    assert told == [(True, False), (False, True), (False, True), (False, False)]
