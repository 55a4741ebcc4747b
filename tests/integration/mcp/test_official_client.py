"""The official client of MCP, in every revision, over HTTP and over `socialpub mcp` (contract 10.4.2, 10.4.3)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client import session
from mcp.client.streamable_http import streamable_http_client

from socialpub.web.http.app import App
from tests.integration.mcp.agent import CONNECTED, STATELESS, Agent

MODES = [("auto", STATELESS), (STATELESS, STATELESS), *(("legacy", revision) for revision in CONNECTED)]


@asynccontextmanager
async def over_http(app: App, key: str, mode: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), headers=headers) as http,
        Client(streamable_http_client("http://127.0.0.1:8000/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def use(client: Client, revision: str) -> None:
    """Use every kind of response."""
    assert client.session.protocol_version == revision
    assert next(tool.name for tool in (await client.list_tools()).tools) == "list_profiles"
    published = await client.call_tool("create_post", {"text": "Hello", "profiles": ["x"], "waitSeconds": 0})
    assert not published.is_error and published.structured_content["summary"] == ["x: pending"]
    refused = await client.call_tool("create_post", {"text": "Hello", "profiles": ["y"]})
    assert refused.is_error and refused.structured_content["code"] == "invalidRequest"
    with pytest.raises(MCPError, match="There is no tool disconnect"):
        await client.call_tool("disconnect", {})


@pytest.mark.parametrize(("mode", "revision"), MODES)
def test_over_http(
    agent: Agent, app: App, accounts: dict[str, str], mode: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with over_http(app, agent.key, mode) as client:
            await use(client, revision)

    monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", revision)
    agent.run(story())
