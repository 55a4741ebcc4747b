"""The tools that ask a network: the choices of an account."""

from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.integration.mcp.agent import Agent
from tests.support.sandbox_http import connect_pinterest


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


def test_an_agent_learns_what_an_account_can_choose(agent: Agent, reader: Agent, rt: Runtime, world: World) -> None:
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
