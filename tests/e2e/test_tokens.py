"""Tokens of all three networks, through kills: one refresh is enough, and an account is never lost in silence."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.caller import Caller, effects
from tests.e2e.processes import until
from tests.e2e.stage import PEOPLE, Stage
from tests.samples import media

NETWORKS = ("x", "tiktok", "pinterest")
FIRST_CALL = {"x": "create_post", "tiktok": "creator_info", "pinterest": "read_board"}
"""Where a plan with a photo first needs the token."""
TEN = 10


@pytest.fixture
def photo(stage: Stage, caller: Caller, tmp_path: Path) -> str:
    """The access tokens of all three accounts have run out, and the web process is there."""
    stage.start("web")
    stage.tiktok.tell("settings", processing_ticks=0)
    for network in NETWORKS:
        stage.witness(network).tell("tokens", username=PEOPLE[0], end="expired")
    return caller.upload(media.jpeg(tmp_path / "photo.jpg").read_bytes(), "photo.jpg", "image/jpeg")


def test_ten_deliveries_due_at_once_on_an_expired_token_refresh_it_once(
    stage: Stage, caller: Caller, photo: str
) -> None:
    posts = {
        f"{network} {number}": publish(stage, f"Number {number}", network, photo)
        for network in NETWORKS
        for number in range(TEN)
    }
    workers = [stage.begin("worker") for _ in range(2)]
    for name, post in posts.items():
        assert caller.delivery(post)["status"] == "published", name
    assert all(worker.running for worker in workers)
    for network in NETWORKS:
        assert stage.witness(network).calls("token") == 1
        assert len(effects(stage.witness(network).show())) == TEN


def test_a_worker_killed_before_the_new_pair_reached_it_says_that_the_owner_must_act(
    stage: Stage, caller: Caller, photo: str
) -> None:
    posts = killed_in_the_refresh(stage, photo)
    for network, post in posts.items():
        delivery = caller.delivery(post)
        assert delivery["status"] == "failed", delivery
        assert "onnect the account again" in delivery["errorMessage"]
        assert effects(stage.witness(network).show()) == {}
    assert set(statuses(caller, stage).values()) == {"reauthRequired"}

    for network in NETWORKS:
        granted = stage.witness(network).grant(PEOPLE[0])
        assert stage.admin("import-profile", network, said=granted) == stage.profile_on[network]
    assert set(statuses(caller, stage).values()) == {"active"}
    for network in NETWORKS:
        assert caller.delivery(publish(stage, "Back again", network, photo))["status"] == "published"


def test_a_network_that_answers_the_old_refresh_token_once_more_costs_nobody_an_account(
    stage: Stage, caller: Caller, photo: str
) -> None:
    stage.tiktok.tell("settings", refresh_grace_seconds=3600)
    stage.pinterest.tell("settings", old_refresh_survives=True)
    posts = killed_in_the_refresh(stage, photo, "tiktok", "pinterest")
    for network, post in posts.items():
        assert caller.delivery(post)["status"] == "published"
        assert len(effects(stage.witness(network).show())) == 1
        assert stage.witness(network).calls("token") == 2


def test_a_worker_killed_right_after_it_kept_the_new_pair_goes_on_with_it(
    stage: Stage, caller: Caller, photo: str
) -> None:
    worker = stage.start("worker")
    posts = {}
    for network, endpoint in FIRST_CALL.items():
        # The first call is refused for its token, the second one has the new token.
        stage.witness(network).script(endpoint, "times_out_before_effect", skipping=1)
        posts[network] = publish(stage, "With the new pair", network, photo)
    for network in NETWORKS:
        until(stage.witness(network).held, f"{network} holds the first call with the new token")
    worker.kill()
    stage.start("worker")
    for network, post in posts.items():
        assert caller.delivery(post)["status"] == "published"
        assert stage.witness(network).calls("token") == 1
        assert len(effects(stage.witness(network).show())) == 1


def killed_in_the_refresh(stage: Stage, photo: str, *networks: str) -> dict[str, str]:
    """The networks have given out new pairs and spent the old ones when the worker dies; a new worker runs."""
    worker = stage.start("worker")
    posts = {}
    for network in networks or NETWORKS:
        stage.witness(network).script("token", "times_out_after_effect")
        posts[network] = publish(stage, "Is the token good?", network, photo)
    for network in posts:
        until(stage.witness(network).held, f"{network} has answered the refresh to nobody")
    worker.kill()
    stage.start("worker")
    return posts


def publish(stage: Stage, text: str, network: str, photo: str) -> str:
    options: dict[str, Any] = {
        "x": {},
        "tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"},
        "pinterest": {"boardId": stage.board_id},
    }
    chosen = {network: options[network]} if options[network] else None
    media = () if network == "x" else (photo,)
    return stage.caller().publish(text, stage.profile_on[network], media=media, options=chosen)


def statuses(caller: Caller, stage: Stage) -> dict[str, str]:
    """Of the three profiles."""
    listed = caller.ask("GET", "/api/v1/profiles").json()["data"]
    ours = set(stage.profile_on.values())
    return {profile["provider"]: profile["status"] for profile in listed if profile["id"] in ours}
