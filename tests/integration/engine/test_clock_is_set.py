"""A wall clock that is set, either way: our own waits last as long as before, lateness follows it, and it shows."""

from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest

from socialpub.accounts import profiles, upkeep
from socialpub.core.clock import parse
from socialpub.core.settings.schema import PublishingSection
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.states import State
from socialpub.ops import health
from socialpub.ops.doctor import checks
from socialpub.providers.base import Kind, Published, Readback, Wait
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer, NotSent, Throttled
from socialpub.publishing import backfill, retention
from socialpub.publishing.delivery import resume
from socialpub.worker import reconciler
from tests.support.appliance import (
    accept,
    add_profile,
    attempts_of,
    connect_again,
    message_of,
    open_appliance,
    state_of,
)
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.rows import artifact
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_one, select_value

WEEK = 7 * 86_400.0
either_way = pytest.mark.parametrize("jump", [WEEK, -WEEK, 3600.0, -3600.0], ids=["+7d", "-7d", "+1h", "-1h"])

WAITING: dict[str, tuple[Any, float]] = {
    "a rate limit": (Throttled("slow down", retry_after_seconds=600), 600),
    "a retry": (NotSent("no route"), 5),
    "processing": (Wait(300, "X is processing the video"), 300),
}
"""What the first call comes to, and for how long at least the next one waits."""


@contextmanager
def next_run(folder, at, network):
    """The machine starts again with its clock at this time: the appliance of the same folder, and this clock."""
    booted = HandClock(at)
    booted.boot = "the next one"
    with closing(open_appliance(folder, booted, providers={"x": network})) as later:
        later.write(reconciler.record_heartbeat)
        yield later, booted


@either_way
@pytest.mark.parametrize("met", WAITING)
def test_a_set_clock_does_not_change_a_wait(rt, network, profile, clock, met, jump):
    answer, seconds = WAITING[met]
    network.results["create_post"] = [answer]
    post = accept(rt, profile)
    drain(rt)
    clock.forward(1)
    clock.jump(jump)
    for passed in (seconds - 2, 8):
        assert state_of(rt, post) is State.QUEUED
        clock.forward(passed)
        drain(rt)
    assert state_of(rt, post) is State.PUBLISHED


@either_way
def test_a_clock_jump_does_not_shorten_a_round_of_read_backs(rt, network, profile, clock, jump):
    network.results["create_post"] = [NoAnswer("timed out")]
    post = accept(rt, profile)
    drain(rt)
    clock.forward(6)
    drain(rt)
    clock.jump(jump)
    clock.forward(300)
    drain(rt)
    assert network.asked.count("create_post") == 1, "it has not been looked for ten minutes"
    network.results["recover"] = [Readback((Published("77"),))]
    drain(rt, clock, within=300)
    assert (state_of(rt, post), network.asked.count("create_post")) == (State.PUBLISHED, 1)


@either_way
def test_a_set_clock_does_not_use_up_the_deadline(rt, network, profile, clock, jump):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=600)]
    begun, paused = accept(rt, profile), add_profile(rt, account_id="other")
    drain(rt)
    rt.write(resume.pause)
    not_begun = accept(rt, paused, body="Accepted while it was paused")
    clock.forward(60)
    clock.jump(jump)
    clock.forward(60)
    assert rt.write(resume.end_pause) == 0, "nothing is too late"
    drain(rt, clock, within=700)
    assert [state_of(rt, post) for post in (begun, not_begun)] == [State.PUBLISHED] * 2


@either_way
def test_a_post_keeps_the_time_that_its_owner_chose(rt, network, profile, clock, jump):
    at = clock.now() + timedelta(days=10)
    post = accept(rt, profile, at=at)
    clock.jump(jump)
    drain(rt, clock, within=20 * 86_400)
    assert state_of(rt, post) is State.PUBLISHED
    assert network.jobs[0].even_now >= at - timedelta(seconds=jump), "on the even clock of ours"
    published_at = parse(select_value(rt.db, "SELECT published_at FROM delivery"))
    assert timedelta(0) <= published_at - at < timedelta(seconds=2)


def test_a_post_that_the_new_time_makes_too_late_is_not_sent_and_says_that_the_clock_was_set(
    rt, network, profile, clock
):
    in_time = accept(rt, profile, body="in time", at=clock.now() + timedelta(days=6, hours=12))
    late = accept(rt, profile, body="late", at=clock.now() + timedelta(days=2))
    clock.jump(WEEK)
    drain(rt)
    assert state_of(rt, in_time) is State.PUBLISHED, "12 hours late is allowed"
    assert message_of(rt, late) == (
        "Not sent: the post is more than 24 hours late (publishing.max_lateness). The clock was set forward "
        "by 7 days at 2026-10-19T09:00:00.000Z. If the clock is correct now, create the post again. Otherwise, set "
        "the clock first."
    )
    assert network.effects == ["in time"]


def test_overdue_posts_go_out_oldest_first_by_the_time_that_their_owner_chose(rt, network, profile, clock):
    rt.write(resume.pause)
    for minutes in (50, 30, 40):
        accept(rt, profile, body=str(minutes), at=clock.now() + timedelta(minutes=minutes))
    clock.forward(35 * 60)
    clock.jump(3600)
    rt.write(resume.end_pause)
    drain(rt)
    assert network.effects == ["30", "40", "50"]


@pytest.mark.parametrize("at_once", [True, False], ids=["accepted", "scheduled"])
def test_a_host_without_a_clock_that_was_off_for_weeks_sends_no_late_post(
    rt, network, profile, clock, tmp_path, at_once
):
    clock.forward(60)
    old = accept(rt, profile, body="old", at=None if at_once else clock.now() + timedelta(hours=1))
    clock.forward(60)
    rt.write(reconciler.record_heartbeat)
    with next_run(tmp_path, clock.now(), network) as (later, booted):  # with the time of its last shutdown
        booted.forward(120)
        new = accept(later, profile, body="new")
        booted.jump(44 * 86_400)
        drain(later)
        assert "The clock was set forward by 44 days" in message_of(later, old)
        assert state_of(later, new) is State.PUBLISHED, "it was accepted a moment ago"
        assert network.effects == ["new"]


def test_a_post_accepted_before_a_power_cut_keeps_its_age_when_the_clock_is_corrected(
    rt, network, profile, clock, tmp_path
):
    rt.write(resume.pause)
    accepted = accept(rt, profile, body="accepted")
    scheduled = accept(rt, profile, body="scheduled", at=clock.now() + timedelta(minutes=5))
    clock.forward(360)
    rt.write(reconciler.record_heartbeat)
    with next_run(tmp_path, clock.now() - timedelta(days=44), network) as (later, booted):
        booted.forward(120)
        booted.jump(44 * 86_400)
        later.write(resume.end_pause)
        drain(later)
        assert [state_of(later, post) for post in (accepted, scheduled)] == [State.PUBLISHED] * 2


@pytest.mark.parametrize("days", [3, -3])
def test_a_clock_that_is_briefly_wrong_makes_no_earlier_post_late(rt, network, profile, clock, tmp_path, days):
    rt.write(resume.pause)
    post = accept(rt, profile)
    rt.write(reconciler.record_heartbeat)
    with next_run(tmp_path, clock.now() + timedelta(minutes=1), network) as (later, booted):
        booted.jump(days * 86_400)
        later.write(reconciler.record_heartbeat)
        booted.forward(30)
        booted.jump(-days * 86_400)
        later.write(resume.end_pause)
        drain(later)
        assert state_of(later, post) is State.PUBLISHED


def test_a_post_that_waited_for_its_network_is_late_when_the_clock_says_so(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=7200)]
    begun = accept(rt, profile, body="begun")
    drain(rt)
    put_off = accept(rt, profile, body="put off", at=clock.now() + timedelta(minutes=1))
    clock.forward(120)
    drain(rt)
    clock.jump(30 * 3600)
    drain(rt, clock)
    assert state_of(rt, begun) is State.PUBLISHED, "it had started in time"
    assert "The clock was set forward by 30 hours" in message_of(rt, put_off)


def test_the_deadline_of_an_account_that_was_connected_again_moves_with_the_clock(rt, network, profile, clock):
    network.results["create_post"] = [AuthExpired("401"), AuthExpired("401")]
    post = accept(rt, profile)
    drain(rt)
    clock.forward(3600)
    connect_again(rt)
    clock.jump(WEEK)
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


def test_a_scheduled_post_that_was_due_waits_for_its_time_again_when_the_clock_goes_back(rt, network, profile, clock):
    at = clock.now() + timedelta(minutes=10)
    rt.write(resume.pause)
    post = accept(rt, profile, at=at)
    clock.forward(660)
    clock.jump(-3600)
    rt.write(resume.end_pause)
    drain(rt)
    assert state_of(rt, post) is State.QUEUED
    clock.forward((at - clock.now()).total_seconds())
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED


@either_way
def test_a_set_clock_does_not_change_the_end_of_holds_and_gaps(tmp_path, clock, jump):
    network = ScriptedNetwork()
    gap = PublishingSection(min_gap=timedelta(minutes=15))
    with closing(open_appliance(tmp_path, clock, providers={"x": network}, publishing=gap)) as rt:
        one, two = add_profile(rt, account_id="one"), add_profile(rt, account_id="two")
        first, second = accept(rt, one), accept(rt, one, body="Second")
        drain(rt)
        network.results["create_post"] = [AppRefused("no credits")]
        held = accept(rt, two)
        drain(rt)
        clock.jump(jump)
        clock.forward(14 * 60)
        drain(rt)
        assert [state_of(rt, post) for post in (first, second, held)] == [State.PUBLISHED, State.QUEUED, State.QUEUED]
        clock.forward(2 * 60)
        drain(rt)
        assert [state_of(rt, post) for post in (second, held)] == [State.PUBLISHED] * 2


@either_way
def test_an_adapter_measures_ages_on_the_monotonic_clock(rt, network, profile, clock, jump):
    network.steps = ScriptedNetwork(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT)).steps
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=100)]
    accept(rt, profile)
    drain(rt)
    clock.jump(jump)
    clock.forward(101)
    drain(rt)
    upload, first, second = network.jobs
    assert (first.even_now - upload.even_now).total_seconds() == 0
    assert 100 < (second.even_now - first.even_now).total_seconds() < 102
    assert second.committed_at is not None
    assert abs((second.committed_at - second.even_now).total_seconds()) < 1
    assert second.wall_now == clock.now()


# --- what is said about it -------------------------------------------------------------------------------------------


@either_way
def test_readiness_and_the_doctor_report_a_clock_jump_for_a_day(rt, network, clock, jump):
    rt.write(reconciler.record_heartbeat)
    assert health.describe_clock_jump(rt.db, rt.now()) is None
    clock.jump(jump)
    rt.write(reconciler.record_heartbeat)
    told = health.describe_clock_jump(rt.db, rt.now())
    assert told is not None
    assert told.startswith(f"The clock was set {'forward' if jump > 0 else 'back'} by ")
    assert anyio.run(health.check_readiness, rt).reasons == [], "it is information, and nothing is wrong"
    assert told in [finding.message for finding in checks.check(rt)]
    clock.forward(86_500)
    assert health.describe_clock_jump(rt.db, rt.now()) is None


def test_a_heartbeat_from_the_future_does_not_count(rt, clock):
    rt.write(reconciler.record_heartbeat)
    clock.jump(-5 * 3600)
    (late,) = list(health.worker_problems(rt.db, rt.now()))
    assert late.code == "workerLate"


def test_a_worker_that_died_before_a_clock_jump_is_reported(rt, clock):
    rt.write(reconciler.record_heartbeat)
    clock.jump(-5 * 3600)
    clock.forward(60)
    assert len(anyio.run(health.check_readiness, rt).reasons) == 1


def test_only_the_first_process_that_notices_a_clock_jump_shifts_timestamps(rt, network, profile, clock, tmp_path):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=600)]
    accept(rt, profile)
    drain(rt)
    with closing(open_appliance(tmp_path, clock, providers={"x": network})) as other:
        other.write(reconciler.record_heartbeat)
        clock.jump(WEEK)
        expected = clock.now() + timedelta(seconds=600)
        for each in (rt, other, rt):
            each.write(reconciler.record_heartbeat)
        assert abs(parse(select_value(rt.db, "SELECT run_at FROM delivery")) - expected) < timedelta(seconds=1)
        known = clock_jumps.load_state(rt.db)
        assert known is not None
        assert known.moved == pytest.approx(WEEK)


def test_a_host_that_starts_with_a_slow_clock_shifts_its_waits_back(rt, network, profile, clock, tmp_path):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=600)]
    post = accept(rt, profile)
    drain(rt)
    rt.write(reconciler.record_heartbeat)
    with next_run(tmp_path, clock.now() - timedelta(days=30), network) as (later, booted):
        booted.forward(601)
        drain(later)
        assert state_of(later, post) is State.PUBLISHED


def test_a_correction_of_a_few_seconds_is_not_reported(rt, network, profile, clock):
    post = accept(rt, profile)
    for _ in range(20):
        clock.jump(2)
        rt.write(reconciler.record_heartbeat)
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED
    assert attempts_of(rt, post) == [("create_post", "published")]


def test_a_retry_with_its_key_finds_its_first_answer_after_a_jump(rt, clock):
    rt.db.write(
        lambda tx: tx.execute_sql(
            """INSERT INTO idempotency (key_id, key, fingerprint, created_at, status)
                VALUES ('k', 'once', 'f', ?, 201)""",
            (tx.stamp,),
        )
    )
    clock.jump(WEEK)
    rt.write(reconciler.record_heartbeat)
    assert parse(select_value(rt.db, "SELECT created_at FROM idempotency")) == parse(rt.stamp())
    assert appliance_state.get(rt.db, appliance_state.CLOCK) is not None


# --- during a call ---------------------------------------------------------------------------------------------------


a_week_either_way = pytest.mark.parametrize("jump", [WEEK, -WEEK], ids=["+7d", "-7d"])


def set_during(rt, clock, jump, then):
    def call(job):
        clock.jump(jump)
        rt.write(reconciler.record_heartbeat)
        raise then

    return call


@a_week_either_way
def test_the_deadline_is_not_used_up_when_the_clock_is_set_during_a_call(rt, network, profile, clock, jump):
    network.results["create_post"] = [set_during(rt, clock, jump, Throttled("slow", retry_after_seconds=600))]
    post = accept(rt, profile)
    drain(rt)
    drain(rt, clock, within=900)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)


@pytest.mark.parametrize(("status", "days"), [("reserved", 7), ("verified", 31)])
def test_a_new_upload_is_kept_when_the_clock_is_set_forward(rt, clock, status, days):
    fresh = artifact(rt, status)
    rt.write(reconciler.record_heartbeat)
    clock.jump(days * 86400)
    rt.write(reconciler.record_heartbeat)
    retention.remove_unused_media(rt)
    assert select_one(rt.db, "SELECT 1 FROM artifact WHERE id = ? AND removed_at IS NULL", (fresh,)) is not None


# --- ages ------------------------------------------------------------------------------------------------------------


def test_tokens_are_erased_after_an_hour_although_the_clock_was_set_back(rt, network, profile, clock):
    def down(*_):
        raise NoAnswer("down")

    network.auth.revoke = down
    rt.write(profiles.disconnect, profile)
    rt.write(reconciler.record_heartbeat)
    clock.jump(-WEEK)
    rt.write(reconciler.record_heartbeat)
    for _ in range(10):
        clock.forward(600)
        upkeep.revoke_disconnected(rt)
    assert select_value(rt.db, "SELECT access_token FROM profile") is None


def test_a_late_id_is_filled_in_although_the_clock_was_set_forward(rt, network, profile, clock):
    network.results["create_post"] = [Published(None)]
    told = [None, Published("77")]
    network.fill_in = lambda job: told.pop(0)
    accept(rt, profile)
    drain(rt)
    clock.forward(61)
    backfill.fill_in_missing(rt)
    clock.jump(WEEK)
    rt.write(reconciler.record_heartbeat)
    clock.forward(3600)
    backfill.fill_in_missing(rt)
    assert select_value(rt.db, "SELECT provider_post_id FROM delivery") == "77"


@pytest.mark.parametrize("seconds", [-5.0, 5e8, 1.7e12, 1e15, float("inf"), float("nan")])
def test_an_absurd_wait_of_a_step_ends_no_delivery(rt, network, profile, clock, seconds):
    network.results["create_post"] = [Wait(seconds, "X asks to wait")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert network.asked == ["create_post", "create_post"]


@pytest.mark.parametrize("seconds", [5e8, 1.7e12, 1e15])
def test_an_absurd_wait_of_a_revocation_is_stored_for_a_day_at_most(rt, network, profile, clock, seconds):
    def limited(*_):
        raise Throttled("slow down", retry_after_seconds=seconds)

    network.auth.revoke = limited
    rt.write(profiles.disconnect, profile)
    upkeep.revoke_disconnected(rt)
    until = select_value(rt.db, "SELECT until FROM stored_wait")
    assert until is not None
    assert until <= "2026-10-13T09:00:00.000Z"
