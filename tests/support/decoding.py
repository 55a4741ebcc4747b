"""Decodes files in the process of the test, or in a changed child. A child takes 0.1 s of processor time."""

import asyncio
import json
import sys
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


def child(before: str) -> tuple[str, ...]:
    """The command of the real child that runs this code first."""
    code = f"import os, resource, sys\nfrom socialpub.media.decoder import confinement, inspect, process\n{before}\n"
    return (sys.executable, "-I", "-c", f"{code}process.main()")


def child_that(does: str) -> tuple[str, ...]:
    """The command of the real child that does this with a file that is not one of our samples."""
    lines = "respond = process._respond", "def changed(request, work):", "    if '/samples/' not in request['path']:"
    ends = f"        {does}", "    return respond(request, work)", "process._respond = changed"
    return child("\n".join(lines + ends))
