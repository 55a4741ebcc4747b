"""The messages of MCP that the appliance and `socialpub mcp` both write.

Nothing heavy is imported here, because the command must start fast.
"""

from typing import Any

import orjson

STATELESS = ("2026-07-28",)
"""Revisions without `initialize`. Every request names its revision in `_meta`."""
WITH_INITIALIZE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS = (*WITH_INITIALIZE, *STATELESS)

META_REVISION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER = "io.modelcontextprotocol/serverInfo"

REVISION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method: the parameter that the header `Mcp-Name` repeats."""

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
HEADER_MISMATCH, UNKNOWN_REVISION = -32020, -32022


def response(request_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return the response to a request that failed. `request_id` is None if the request has no readable id."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def requested_revision(message: dict[str, Any]) -> Any:
    """Return the revision in the `_meta` of a request, or None."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(META_REVISION) if isinstance(meta, dict) else None


def tool_result(structured: Any, *, is_error: bool = False) -> dict[str, Any]:
    """Return the result of a tool call: the same JSON as structured content and as text (contract 10.4.5)."""
    text = orjson.dumps(structured).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": is_error}


def repeated_name(message: dict[str, Any]) -> Any:
    """Return the parameter that the header `Mcp-Name` of this request repeats, or None."""
    params, parameter = message.get("params"), NAME_PARAMETERS.get(str(message.get("method")))
    return params.get(parameter) if parameter is not None and isinstance(params, dict) else None
