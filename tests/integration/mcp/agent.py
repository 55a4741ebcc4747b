"""An agent over HTTP: JSON-RPC requests with the headers that the specification of each revision requires."""

import json
from collections.abc import Coroutine
from typing import Any

from socialpub.web.mcp.messages import META_CAPABILITIES, META_REVISION
from tests.integration.uploads.caller import Caller, Reply

STATELESS = "2026-07-28"
CONNECTED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Agent(Caller):
    def send(self, message: Any, **headers: str) -> Reply:
        return self.run(self.sending(message, **headers))

    def sending(self, message: Any, **headers: str) -> Coroutine[Any, Any, Reply]:
        """Send a message, or bytes in its place. Underscores in the names of headers are hyphens."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.asking("POST", "/mcp", body, fields)

    def request(self, method: str, params: Any = None, *, revision: str = STATELESS, **headers: str) -> Reply:
        return self.run(self.requesting(method, params, revision=revision, **headers))

    def requesting(
        self, method: str, params: Any = None, *, revision: str = STATELESS, **headers: str
    ) -> Coroutine[Any, Any, Reply]:
        params, fields = dict(params or {}), {"mcp_protocol_version": revision}
        if revision == STATELESS:
            params["_meta"] = {META_REVISION: revision, META_CAPABILITIES: {}}
            fields |= {"mcp_method": method, **({"mcp_name": params["name"]} if method == "tools/call" else {})}
        return self.sending({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, **{**fields, **headers})

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return its structured content."""
        return self.run(self.calling(tool, **arguments))

    async def calling(self, tool: str, **arguments: Any) -> Any:
        reply = await self.requesting("tools/call", {"name": tool, "arguments": arguments})
        assert reply.status == 200, reply.body
        result = reply.json()["result"]
        assert result["resultType"] == "complete"
        [text] = result["content"]
        assert json.loads(text["text"]) == result["structuredContent"]
        assert result["isError"] is ("title" in result["structuredContent"])
        return result["structuredContent"]
