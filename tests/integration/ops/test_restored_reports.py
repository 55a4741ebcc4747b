"""What a restored backup reports is its own, and former keys stay known."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from socialpub.accounts.remedies import Surface
from socialpub.core.clock import stamp
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import NotifySection
from socialpub.db import appliance_state
from socialpub.db.tables import notifications, waits
from socialpub.ops import alerts
from socialpub.ops.backup import last_backup, restore
from socialpub.ops.notify import send
from socialpub.ops.notify.notifier import Notifier
from socialpub.providers.base import Refused
from socialpub.runtime import Runtime, build
from tests.support.appliance import accept
from tests.support.copies import copy_of, resumed
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.postbox import Postbox
from tests.support.scripted_network import ScriptedNetwork

NOTIFY = NotifySection.model_validate({"urls": ["json://127.0.0.1/owner"]})


@pytest.fixture
def appliance_options(network: ScriptedNetwork) -> dict[str, object]:
    return {"providers": {"x": network}, "notify": NOTIFY}


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    monkeypatch.setattr(send, "find_fault", lambda url: None)
    return box


@contextmanager
def restored(rt: Runtime, folder: Path, network: ScriptedNetwork) -> Iterator[Runtime]:
    """A backup, restored an hour later on another machine."""
    clock = rt.clock
    assert isinstance(clock, HandClock)
    copy = copy_of(rt, folder)
    clock.forward(3600)
    settings = Settings(data_dir=folder / "elsewhere", notify=NOTIFY)
    restore.restore(copy, settings, clock)
    other = build(settings, clock=clock, role="test")
    other.providers["x"] = network
    try:
        yield other
    finally:
        other.close()


def fail_one(rt: Runtime, clock: HandClock, network: ScriptedNetwork, profile: str) -> None:
    network.results["create_post"] = [Refused("The post is not allowed.")]
    accept(rt, profile)
    drain(rt, clock)


def minutes(rt: Runtime, clock: HandClock, count: int) -> None:
    """Let the worker report and check the alerts once a minute."""
    notifier = Notifier(rt)
    for _ in range(count):
        rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp))
        notifier.run_once()
        clock.forward(60)


def test_failures_of_the_original_are_neither_shown_nor_sent_but_its_own_are(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, profile: str, postbox: Postbox, tmp_path: Path
) -> None:
    minutes(rt, clock, 1)
    fail_one(rt, clock, network, profile)
    assert alerts.load_alert_facts(rt).failed.newest
    with restored(rt, tmp_path, network) as other:
        minutes(other, clock, 1)
        resumed(other, clock)
        minutes(other, clock, 10)
        assert postbox.received == []
        assert alerts.load_alert_facts(other).failed.newest == []
        fail_one(other, clock, network, profile)
        minutes(other, clock, 3)
        assert ["1 delivery failed" in title for title in postbox.titles] == [True]
        assert len(alerts.load_alert_facts(other).failed.newest) == 1


def test_the_originals_alerts_and_unsent_messages_are_dropped(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, postbox: Postbox, tmp_path: Path
) -> None:
    minutes(rt, clock, 1)
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "No credits are left.", "402"))
    minutes(rt, clock, 3)
    assert len(postbox.received) == 1
    postbox.failing["json"] = "the host is not found"
    rt.db.write(lambda tx: notifications.add(tx, "A second message", "that waits"))
    minutes(rt, clock, 1)
    assert notifications.services(rt.db)[0].failing_since
    postbox.failing.clear()
    with restored(rt, tmp_path, network) as other:
        resumed(other, clock)
        minutes(other, clock, 10)
        assert len(postbox.received) == 1, "neither the hold, nor its end, nor what waited"
        assert {finding.level for finding in send.check_services(other, Surface.SHELL)} == {"ok"}


def test_the_network_that_refused_the_original_is_asked_again(
    rt: Runtime, network: ScriptedNetwork, tmp_path: Path
) -> None:
    rt.db.write(lambda tx: waits.hold(tx, "x", waits.PUBLISHING, "No credits are left.", "402"))
    with restored(rt, tmp_path, network) as other:
        assert alerts.load_alert_facts(other).holds == []
    assert alerts.load_alert_facts(rt).holds, "the original is still refused"


def test_the_clock_the_worker_and_the_backups_of_the_original_are_none_of_this_machine(
    rt: Runtime, clock: HandClock, network: ScriptedNetwork, tmp_path: Path
) -> None:
    rt.write(last_backup.record_failure, "The disk was full.")
    rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.HEARTBEAT, stamp(tx.now - timedelta(days=1))))
    clock.jump(7200)
    rt.db.follow_clock()
    kinds = {str(cause.kind) for cause in alerts.list_alerts(rt, Surface.SHELL)}
    assert {"clock", "backup"} <= kinds
    with restored(rt, tmp_path, network) as other:
        assert {str(cause.kind) for cause in alerts.list_alerts(other, Surface.SHELL)} == {"paused", "worker"}
        assert last_backup.load(other.db).made_at is not None
