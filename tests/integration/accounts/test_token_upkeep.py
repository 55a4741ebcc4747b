"""Unused tokens are renewed, and the owner is warned in time."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import connect, profiles, tokens, upkeep
from socialpub.accounts.tokens import Credentials
from socialpub.core import clock as clocks
from socialpub.core.errors import OperatorError
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.tables import profile_rows, waits
from socialpub.providers.auth import Tokens
from socialpub.providers.responses import NotSent, Rejected, Throttled
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.queue_threads import background_tasks
from tests.support.select import select_one

DAY = 86_400.0
MONTH = 30 * DAY


def row(rt: Runtime, profile_id: str) -> Any:
    return select_one(rt.db, "SELECT * FROM profile WHERE id = ?", (profile_id,))


# --- keeping alive ---------------------------------------------------------------------------------------------------


def test_idle_tokens_are_renewed_when_their_time_has_come_and_not_before(rt, network, profile, clock):
    clock.forward(MONTH - 1)
    assert upkeep.renew_idle_tokens(rt, held=()) is None
    clock.forward(1)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile
    assert network.auth.refreshes == ["refresh-0"]
    assert row(rt, profile)["renewed_at"] == rt.stamp()
    assert upkeep.renew_idle_tokens(rt, held=()) is None
    clock.forward(MONTH)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile


def test_a_profile_in_daily_use_is_left_alone(rt, network, profile, clock):
    for _ in range(60):
        clock.forward(DAY)
        assert tokens.load_fresh(rt, profile)
        assert upkeep.renew_idle_tokens(rt, held=()) is None
    assert len(network.auth.refreshes) == 60, "those of its posts"


def test_profiles_take_turns_the_longest_waiting_first(rt, network, clock):
    profiles_by_age = []
    for number in range(3):
        profiles_by_age.append(add_profile(rt, account_id=str(number)))
        clock.forward(1)
    clock.forward(MONTH)
    assert [upkeep.renew_idle_tokens(rt, held=()) for _ in range(4)] == [*profiles_by_age, None]


@pytest.mark.parametrize("error", [OverflowError("date value out of range"), OperatorError("No key.", "Set it.")])
def test_an_account_that_fails_unexpectedly_rests_and_the_others_are_renewed(rt, network, clock, caplog, error):
    broken = add_profile(rt, account_id="broken")
    clock.forward(1)
    other = add_profile(rt, account_id="other", tokens=("access-0", "refresh-other"))
    clock.forward(MONTH)
    network.auth.answers = [error]
    assert [upkeep.renew_idle_tokens(rt, held=()) for _ in range(3)] == [broken, other, None]
    assert network.auth.refreshes == ["refresh-0", "refresh-other"]
    (line,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert line.fields["profile"] == broken
    clock.forward(3600)
    assert upkeep.renew_idle_tokens(rt, held=()) == broken


def test_a_row_that_cannot_be_read_does_not_stop_the_loop(rt, network, clock, monkeypatch):
    broken, other = add_profile(rt, account_id="broken"), add_profile(rt, account_id="other")
    must_be_renewed = upkeep._must_be_renewed

    def fails(rt: Runtime, row: ProfileRow, now: datetime) -> bool:
        if row.id == broken:
            raise OverflowError("date value out of range")
        return must_be_renewed(rt, row, now)

    monkeypatch.setattr(upkeep, "_must_be_renewed", fails)
    clock.forward(MONTH)
    assert upkeep.renew_idle_tokens(rt, held=()) == other


@pytest.mark.parametrize("status", ["reauthRequired", "disconnected"])
def test_tokens_of_unusable_profiles_are_not_renewed(rt, network, clock, status):
    add_profile(rt, status=status)
    add_profile(rt, account_id="2", refresh_token=None)
    clock.forward(2 * MONTH)
    assert upkeep.renew_idle_tokens(rt, held=()) is None


@pytest.mark.parametrize(
    ("failure", "after"),
    [
        (NotSent("api.x.com could not be reached"), 3600),
        (Throttled("X asks to wait.", retry_after_seconds=7200), 7200),
        (Rejected("X does not know the app.", status=401, code="invalid_client"), 3600),
    ],
)
def test_a_failed_renewal_is_retried_later_and_delays_no_other(rt, network, profile, clock, failure, after):
    clock.forward(1)
    other = add_profile(rt, account_id="2")
    clock.forward(MONTH)
    network.auth.answers = [failure]
    assert upkeep.renew_idle_tokens(rt, held=()) == profile
    assert row(rt, profile)["status"] == "active", "the account costs nothing"
    assert upkeep.renew_idle_tokens(rt, held=()) == other
    clock.forward(after - 1)
    assert upkeep.renew_idle_tokens(rt, held=()) is None
    clock.forward(1)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile


def test_a_refused_refresh_token_asks_for_the_owner_once(rt, network, profile, clock):
    clock.forward(MONTH)
    network.auth.answers = [Rejected("X no longer accepts the authorization.", status=400, reauth=True)]
    assert upkeep.renew_idle_tokens(rt, held=()) == profile
    assert row(rt, profile)["status"] == "reauthRequired"
    assert upkeep.renew_idle_tokens(rt, held=()) is None


def test_a_network_that_refuses_the_app_is_not_asked(rt, network, profile, clock):
    clock.forward(MONTH)
    rt.write(lambda rt, tx: waits.hold(tx, "x", waits.PUBLISHING, "X has suspended the app.", None))
    with background_tasks(rt) as tasks:
        assert tasks.all["token renewal"].act(rt) is None


def test_a_refresh_token_that_expires_soon_is_renewed(rt, network, clock):
    profile = add_profile(rt, refresh_expires_at=clocks.after(rt.stamp(), 10 * DAY))
    clock.forward(3 * DAY)
    assert upkeep.renew_idle_tokens(rt, held=()) is None
    clock.forward(1)
    network.auth.answers = [Tokens("access-1", "refresh-1", 7200)]
    assert upkeep.renew_idle_tokens(rt, held=()) == profile
    assert upkeep.renew_idle_tokens(rt, held=()) is None, "an end that did not move is asked about once a day"
    clock.forward(DAY)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile


def test_access_tokens_that_last_for_weeks_are_renewed_before_they_end(rt, network, clock):
    network.auth.refresh_early_seconds = 3 * 86_400
    profile = add_profile(rt, access_expires_at=clocks.after(rt.stamp(), 10 * DAY))
    clock.forward(7 * DAY)
    assert upkeep.renew_idle_tokens(rt, held=()) is None
    clock.forward(1)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile


@pytest.fixture
def appliance(tmp_path: Path, clock: HandClock, sandbox_options: dict[str, Any]) -> Iterator[Runtime]:
    """With the real adapters, and the sandbox for their networks."""
    rt = open_appliance(tmp_path, clock, **sandbox_options)
    yield rt
    rt.close()


def imported(appliance: Runtime, world: World, name: str) -> str:
    grant = world.networks[name].grant("demo")  # type: ignore[attr-defined]
    return connect.import_account(appliance, name, connect.read_credentials(json.dumps(grant))).profile_id


@pytest.mark.parametrize(("name", "days"), [("x", 400), ("tiktok", 800), ("pinterest", 200)])
def test_an_unused_account_still_works_after_a_long_time(appliance, world, clock, name, days):
    world.tiktok.refresh_restarts = True
    profile = imported(appliance, world, name)
    renewals = 0
    for _ in range(0, days, 4):
        clock.forward(4 * DAY)
        renewals += upkeep.renew_idle_tokens(appliance, held=()) is not None
    assert row(appliance, profile)["status"] == "active"
    assert tokens.load_fresh(appliance, profile)
    assert 2 <= renewals <= days / 20


def test_a_fixed_expiry_is_reported_before_it_comes(appliance, world, clock):
    profile = imported(appliance, world, "tiktok")
    for _ in range(35):
        clock.forward(10 * DAY)
        upkeep.renew_idle_tokens(appliance, held=())
    told = [day for day in range(351, 367) if _a_day_passes(appliance, clock)]
    assert told[:7] == list(range(359, 366)), "every day of the last week"
    assert row(appliance, profile)["status"] == "reauthRequired"


def _a_day_passes(appliance: Runtime, clock: HandClock) -> bool:
    clock.forward(DAY)
    upkeep.renew_idle_tokens(appliance, held=())
    return warning_of(appliance) is not None


# --- telling the owner -----------------------------------------------------------------------------------------------


def warning_of(rt: Runtime) -> str | None:
    """The warning about the only profile."""
    (profile,) = profile_rows.list_all(rt.db)
    return upkeep.describe_warning(profile, rt.now())


def test_an_expiry_is_reported_during_the_last_week(rt, clock):
    ends = clocks.after(rt.stamp(), 8 * DAY)
    profile = add_profile(rt, refresh_token=None, access_expires_at=ends, expires_at=ends)
    assert warning_of(rt) is None
    clock.forward(DAY + 1)
    warning = warning_of(rt)
    assert warning is not None
    assert "does not have a refresh token" in warning
    assert "2026-10-20 09:00 UTC" in warning
    assert "socialpub admin connect-profile x" in warning
    connect.import_account(rt, "x", Credentials("new", "new-refresh"))
    assert warning_of(rt) is None
    assert row(rt, profile)["status"] == "active"


def test_an_account_that_must_be_connected_again_is_reported_with_its_reason(rt, profile):
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "X no longer accepts the authorization."))
    assert warning_of(rt) == "X no longer accepts the authorization. Run `socialpub admin connect-profile x`."
    rt.write(profiles.disconnect, profile)
    assert warning_of(rt) is None


def test_a_distant_or_unknown_expiry_is_not_reported(rt, clock, profile):
    add_profile(rt, account_id="2", expires_at=clocks.stamp(clock.now() + timedelta(days=8)))
    assert [upkeep.describe_warning(one, rt.now()) for one in profile_rows.list_all(rt.db)] == [None, None]


def test_a_past_expiry_is_reported_in_the_past_tense(rt, clock):
    add_profile(rt, expires_at=rt.stamp())
    clock.forward(1)
    assert "The refresh token expired on" in str(warning_of(rt))


def test_an_account_from_before_the_upkeep_is_counted_from_when_it_was_made(rt, network, clock):
    profile = add_profile(rt)

    def forget(tx: Database) -> None:
        tx.update(ProfileRow, profile, renewed_at=None)

    rt.db.write(forget)
    clock.forward(MONTH)
    assert upkeep.renew_idle_tokens(rt, held=()) == profile
