"""A network that is no longer enabled, and the profiles and posts that it leaves (contract 11.1)."""

from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import profiles, redirects
from socialpub.core.errors import OperatorError
from socialpub.core.settings.networks import BlueskySection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db.states import State
from socialpub.ops.doctor import checks
from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile, open_appliance, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

ENABLED = ProvidersSection(bluesky=BlueskySection(enabled=True))
NOT_ENABLED = ProvidersSection(bluesky=BlueskySection(service="http://127.0.0.1:9"))
THREE = ["x", "tiktok", "pinterest"]


@pytest.fixture
def appliance_options() -> dict[str, Any]:
    return {"networks": ENABLED}


@pytest.fixture
def account(rt: Runtime) -> str:
    return add_profile(rt, "bluesky", "did:plc:one", name="Sky")


def restarted(folder: Path, clock: HandClock) -> Runtime:
    """Start again without the network in the configuration."""
    return open_appliance(folder, clock, networks=NOT_ENABLED)


def test_without_profiles_the_network_is_gone(rt, tmp_path, clock):
    assert list(rt.providers) == [*THREE, "bluesky"]
    again = restarted(tmp_path, clock)
    assert list(again.providers) == THREE
    assert profiles.find_not_enabled(again) == []
    again.close()


def test_its_posts_are_still_published(rt, tmp_path, clock, account):
    post = accept(rt, account)
    again = restarted(tmp_path, clock)
    assert list(again.providers) == [*THREE, "bluesky"]
    again.providers["bluesky"] = ScriptedNetwork()  # type: ignore[assignment]
    drain(again, clock)
    assert state_of(again, post) is State.PUBLISHED
    again.close()


def test_no_account_of_it_can_be_connected(rt, tmp_path, clock, account):
    assert redirects.find_missing_app(rt, "bluesky") is None
    again = restarted(tmp_path, clock)
    obstacle = redirects.find_missing_app(again, "bluesky")
    assert isinstance(obstacle, OperatorError)
    assert obstacle.sentence == "Bluesky is not enabled. Set enabled = true in [providers.bluesky]."
    again.close()


def test_the_doctor_reports_connected_profiles_of_it(rt, tmp_path, clock, account):
    add_profile(rt, "bluesky", "did:plc:two")
    assert profiles.find_not_enabled(rt) == []
    again = restarted(tmp_path, clock)
    (error,) = profiles.find_not_enabled(again)
    assert error.message == "Bluesky is not enabled, but 2 profiles of it are connected."
    assert error.hint == "Set enabled = true in [providers.bluesky], or disconnect all profiles of Bluesky."
    (found,) = [one for one in checks.check(again) if one.message == error.message]
    assert (found.level, found.remedy) == ("problem", error.hint)
    again.close()
