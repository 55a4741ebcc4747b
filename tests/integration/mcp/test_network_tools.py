"""The tools that ask a network or fetch a file."""

import asyncio
from functools import partial
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.publishing.media import imports
from tests.integration.uploads.caller import Gone
from tests.samples import media
from tests.support.rows import post_ids
from tests.support.sandbox_http import connect_pinterest, connect_x

LATER = "2099-01-01T00:00:00Z"


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


def test_an_agent_learns_what_an_account_can_choose(agent, reader, rt, world):
    profile_id = connect_pinterest(rt, world)
    shown = reader.call("get_choices", profile="pinterest")
    assert shown["data"]["profileId"] == profile_id
    boards = next(option for option in shown["data"]["options"] if option["key"] == "boardId")
    assert boards["required"] is True and boards["values"]
    more = agent.call("get_choices", profile=profile_id, boardId=boards["values"][0]["value"])
    assert more["data"]["profileId"] == profile_id
    assert agent.call("get_choices", profile="pinterest", boardId="1")["errors"][0]["path"] == ["boardId"]
    assert agent.call("get_choices", profile="tiktok")["errors"][0]["path"] == ["profile"]
    rt.write(profiles.disconnect, profile_id)
    assert agent.call("get_choices", profile=profile_id)["code"] == "conflict"


# --- media by URL ----------------------------------------------------------------------------------------------------


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limit of each fetch."""
    fetch, limits = imports.fetch, []

    async def recorded(*args: Any, seconds: float) -> Any:
        limits.append(seconds)
        return await fetch(*args, seconds=seconds)

    monkeypatch.setattr(imports, "fetch", recorded)
    return limits


def test_media_come_by_url_and_wait_at_most_45_seconds(agent, rt, world, tmp_path, fetches):
    connect_x(rt, world)
    own = agent.upload(media.png(tmp_path / "a.png").read_bytes())
    # A URL of this appliance means its artifact.
    assert agent.call("upload_media", url=own["url"])["data"]["artifactId"] == own["artifactId"]
    shown = agent.call("create_post", profiles=["x"], media=[{"url": own["url"], "alt": "A"}], scheduledAt=LATER)
    assert shown["data"]["media"][0]["artifactId"] == own["artifactId"]
    post_id = shown["data"]["id"]
    changed = agent.call("update_post", postId=post_id, media=[{"url": own["url"]}])
    assert "alt" not in changed["data"]["media"][0]
    assert fetches == [45, 45, 45]


def test_a_client_that_leaves_ends_its_call(agent, rt, world, monkeypatch):
    is_fetching = asyncio.Event()

    async def hang(*_: Any, **__: Any) -> None:
        is_fetching.set()
        await asyncio.Event().wait()

    connect_x(rt, world)
    monkeypatch.setattr(imports, "fetch", hang)
    monkeypatch.setattr(agent, "asking", partial(agent.asking, goes_away=True, leaves=is_fetching))
    with pytest.raises(Gone):
        agent.call("create_post", profiles=["x"], media=[{"url": "https://a.example/b.png"}])
    assert post_ids(rt) == []
