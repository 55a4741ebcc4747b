"""The official client of MCP, in every revision, over HTTP and over `socialpub mcp` (contract 10.4.2, 10.4.3)."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client import session
from mcp.client.streamable_http import streamable_http_client

from socialpub.web.http.app import App
from tests.integration.mcp.agent import CONNECTED, STATELESS
from tests.samples import media
from tests.support.served import served

ROOT = Path(__file__).parents[3]
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
def test_over_http(agent, app, accounts, mode, revision, monkeypatch):
    async def story() -> None:
        async with over_http(app, agent.key, mode) as client:
            await use(client, revision)

    monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", revision)
    agent.run(story())


# --- over stdin and stdout -------------------------------------------------------------------------------------------


@pytest.fixture
def served_at(app: App) -> Iterator[str]:
    with served(app) as url:
        yield url


@pytest.mark.parametrize(("mode", "revision"), [("auto", STATELESS), ("legacy", "2025-11-25")])
def test_over_socialpub_mcp(
    served_at,
    agent,
    accounts,
    tmp_path,
    mode,
    revision,
    monkeypatch,
):
    environment = {"SOCIALPUB_URL": served_at, "SOCIALPUB_KEY": agent.key, "PYTHONPATH": str(ROOT)}
    program = StdioServerParameters(command=sys.executable, args=["-m", "socialpub", "mcp"], env=environment)

    image = media.png(tmp_path / "a.png")

    async def story() -> None:
        async with Client(stdio_client(program), mode=mode) as client:
            await use(client, revision)
            upload = next(tool for tool in (await client.list_tools()).tools if tool.name == "upload_media")
            assert set(upload.input_schema["properties"]) == {"url", "path"}
            uploaded = await client.call_tool("upload_media", {"path": str(image)})
            assert uploaded.structured_content["data"]["mimeType"] == "image/png"

    monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", revision)
    asyncio.run(story())
