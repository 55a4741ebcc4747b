"""An X app without a secret (a public client) connects, posts, refreshes and gives its tokens back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.accounts import connect, profiles, tokens, upkeep
from socialpub.core.settings.networks import XSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import profile_rows
from socialpub.providers.responses import AppRefused
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import accept, open_appliance, state_of
from tests.support.consent_browser import Browser, query_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import HOST, FaultTransport, http_over

X = XSection(client_id="native", api_url=f"{HOST}/x", authorize_url=f"{HOST}/x/i/oauth2/authorize")


def test_a_public_client_goes_the_whole_way(tmp_path: Path, clock: HandClock, world: World) -> None:
    world.x.add_app("native", None, ["http://127.0.0.1:8000/oauth/x/callback"])
    rt = open_appliance(tmp_path, clock, http=http_over(FaultTransport(world)), networks=ProvidersSection(x=X))
    try:
        begun = connect.begin(rt, "x")
        profile = connect.finish(rt, "x", query_of(Browser(world).decides(begun.url))).profile_id
        first = tokens.load_fresh(rt, profile)

        post = accept(rt, profile)
        drain(rt, clock)
        assert state_of(rt, post) is State.PUBLISHED
        assert len(world.x.posts) == 1

        clock.forward(3 * 3600)
        second = tokens.load_fresh(rt, profile)
        assert second != first
        assert world.x.tokens.bearer(second)

        rt.write(profiles.disconnect, profile)
        assert upkeep.revoke_disconnected(rt) == 1
        assert world.x.counts["revoke"] == 2, "the refresh token and the access token"
        assert world.x.tokens.bearer(second) is None
    finally:
        rt.close()


@pytest.fixture
def without_its_secret(tmp_path: Path, clock: HandClock, world: World) -> Iterator[tuple[Runtime, str]]:
    """An account that was connected with a secret, which was then taken out of the configuration."""
    world.x.add_app("native", "secret")
    with_secret = XSection.model_validate({**X.model_dump(), "client_secret": "secret"})
    rt = open_appliance(
        tmp_path, clock, http=http_over(FaultTransport(world)), networks=ProvidersSection(x=with_secret)
    )
    begun = connect.begin(rt, "x")
    profile = connect.finish(rt, "x", query_of(Browser(world).decides(begun.url))).profile_id
    rt.close()
    rt = open_appliance(tmp_path, clock, http=http_over(FaultTransport(world)), networks=ProvidersSection(x=X))
    clock.forward(3 * 3600)
    yield rt, profile
    rt.close()


def test_a_secret_that_is_missing_is_told_and_costs_no_connection(without_its_secret: tuple[Runtime, str]) -> None:
    rt, profile = without_its_secret
    with pytest.raises(AppRefused, match="set client_secret"):
        tokens.load_fresh(rt, profile)
    row = profile_rows.find(rt.reader, profile)
    assert row is not None
    assert row.status is ProfileStatus.ACTIVE
