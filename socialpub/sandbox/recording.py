"""Requests kept for a test that wants to know what was sent, without its credentials."""

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.streamed_body import PartSummary

SECRET_PARAMETERS = frozenset({"upload_token"})


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    network: str
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    json: Any = None
    """The JSON body, parsed; None when there is none."""
    fields: tuple[PartSummary, ...] = ()
    """The parts of a multipart body: name, declared type, bytes."""


def recorded(network: str, request: SandboxRequest) -> RecordedRequest:
    data = None
    fields: tuple[PartSummary, ...] = ()
    if request.content_type == "application/json":
        with contextlib.suppress(ValueError):
            data = json.loads(request.body)
    elif request.sink is not None:
        fields = request.sink.parts()
    elif request.content_type == "multipart/form-data":
        with contextlib.suppress(Exception):
            fields = tuple((part.header.name, part.header.content_type, len(part.data)) for part in request.parts())
    query = {name: value for name, value in request.query().items() if name not in SECRET_PARAMETERS}
    return RecordedRequest(network, request.method, request.path, query, request.content_type, data, fields)
