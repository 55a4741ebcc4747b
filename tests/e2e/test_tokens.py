"""Tokens of all three networks, through kills: one refresh is enough, and an account is never lost in silence."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.caller import Caller, effects
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import PEOPLE, Installation
from tests.e2e.processes import until
from tests.samples import media

NETWORKS = ("x", "tiktok", "pinterest")
FIRST_CALL = {"x": "create_post", "tiktok": "creator_info", "pinterest": "read_board"}
"""Where a plan with a photo first needs the token."""
TEN = 10


@pytest.fixture
def installation(make_installation: MakeInstallation) -> Installation:
    """No call is given up before a kill."""
    installation = make_installation(deadline_seconds=60)
    installation.sandbox()
    return installation


@pytest.fixture
def photo(installation: Installation, caller: Caller, tmp_path: Path) -> str:
    """The access tokens of all three accounts have run out, and the web process is there."""
    installation.start("web")
    installation.tiktok.tell("settings", processing_ticks=0)
    for network in NETWORKS:
        installation.control(network).tell("tokens", username=PEOPLE[0], end="expired")
    return caller.upload(media.jpeg(tmp_path / "photo.jpg").read_bytes(), "photo.jpg", "image/jpeg")


def test_ten_deliveries_due_at_once_on_an_expired_token_refresh_it_once(
    installation: Installation, caller: Caller, photo: str
) -> None:
    posts = {
        f"{network} {number}": publish(installation, f"Number {number}", network, photo)
        for network in NETWORKS
        for number in range(TEN)
    }
    workers = [installation.begin("worker") for _ in range(2)]
    for name, post in posts.items():
        assert caller.delivery(post)["status"] == "published", name
    assert all(worker.running for worker in workers)
    for network in NETWORKS:
        assert installation.control(network).calls("token") == 1
        assert len(effects(installation.control(network).show())) == TEN


@pytest.mark.endurance
def test_a_worker_killed_before_the_new_pair_reached_it_says_that_the_owner_must_act(
    installation: Installation, caller: Caller, photo: str
) -> None:
    posts = killed_in_the_refresh(installation, photo)
    for network, post in posts.items():
        until(lambda post=post: is_held(caller, post), f"the post on {network} is held")
        assert "must be connected again" in caller.attempts(post)[-1]["message"]
        assert caller.delivery(post, wait=1)["status"] == "pending"
        assert effects(installation.control(network).show()) == {}
    assert set(statuses(caller, installation).values()) == {"reauthRequired"}

    for network in NETWORKS:
        granted = installation.control(network).grant(PEOPLE[0])
        assert installation.admin("import-profile", network, stdin=granted) == installation.profile_on[network]
    assert set(statuses(caller, installation).values()) == {"active"}
    for network, post in posts.items():
        assert caller.delivery(post)["status"] == "published", "without being created again"
        assert len(effects(installation.control(network).show())) == 1
    for network in NETWORKS:
        assert caller.delivery(publish(installation, "Back again", network, photo))["status"] == "published"


def is_held(caller: Caller, post: str) -> bool:
    attempts = caller.attempts(post)
    return bool(attempts) and attempts[-1]["outcome"] == "held"


@pytest.mark.endurance
def test_a_network_that_accepts_the_old_refresh_token_again_loses_no_account(
    installation: Installation, caller: Caller, photo: str
) -> None:
    installation.tiktok.tell("settings", refresh_grace_seconds=3600)
    installation.pinterest.tell("settings", old_refresh_survives=True)
    posts = killed_in_the_refresh(installation, photo, "tiktok", "pinterest")
    for network, post in posts.items():
        assert caller.delivery(post)["status"] == "published"
        assert len(effects(installation.control(network).show())) == 1
        assert installation.control(network).calls("token") == 2


@pytest.mark.endurance
def test_a_worker_killed_right_after_it_kept_the_new_pair_goes_on_with_it(
    installation: Installation, caller: Caller, photo: str
) -> None:
    worker = installation.start("worker")
    posts = {}
    for network, endpoint in FIRST_CALL.items():
        # The first call is refused for its token, the second one has the new token.
        installation.control(network).script(endpoint, "times_out_before_effect", skipping=1)
        posts[network] = publish(installation, "With the new pair", network, photo)
    for network in NETWORKS:
        until(installation.control(network).held, f"{network} holds the first call with the new token")
    worker.kill()
    installation.start("worker")
    for network, post in posts.items():
        assert caller.delivery(post)["status"] == "published"
        assert installation.control(network).calls("token") == 1
        assert len(effects(installation.control(network).show())) == 1


def killed_in_the_refresh(installation: Installation, photo: str, *networks: str) -> dict[str, str]:
    """The networks have given out new pairs and spent the old ones when the worker dies; a new worker runs."""
    worker = installation.start("worker")
    posts = {}
    for network in networks or NETWORKS:
        installation.control(network).script("token", "times_out_after_effect")
        posts[network] = publish(installation, "Is the token good?", network, photo)
    for network in posts:
        until(installation.control(network).held, f"{network} has responded to the refresh")
    worker.kill()
    installation.start("worker")
    return posts


def publish(installation: Installation, text: str, network: str, photo: str) -> str:
    options: dict[str, Any] = {
        "x": {},
        "tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"},
        "pinterest": {"boardId": installation.board_id},
    }
    chosen = {network: options[network]} if options[network] else None
    media = () if network == "x" else (photo,)
    return installation.caller().publish(text, installation.profile_on[network], media=media, options=chosen)


def statuses(caller: Caller, installation: Installation) -> dict[str, str]:
    """Of the three profiles."""
    listed = caller.ask("GET", "/api/v1/profiles").json()["data"]
    ours = set(installation.profile_on.values())
    return {profile["provider"]: profile["status"] for profile in listed if profile["id"] in ours}
