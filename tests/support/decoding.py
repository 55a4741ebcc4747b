"""Decodes files in the process of the test. The decoder's child takes 0.1 s of processor time for each file."""

import asyncio
import json
from typing import Any

import pytest

from socialpub.media.decoder import client, process


def decode_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the child, but not its request, its response, and the waits before its start."""
    monkeypatch.setattr(client, "_run_once", _run_here)


async def _run_here(_need: int, request: dict[str, Any], _timeout_seconds: float) -> dict[str, Any]:
    work = process._load_work(request)
    response = await asyncio.to_thread(process._respond, request, work)
    return client._result(0, process.READY + json.dumps(response).encode(), b"", request)
