"""The world of the stand-ins: it can record every request, and the control API can do more to it."""

import contextlib
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from socialpub import sandbox
from socialpub.sandbox.memory import SandboxClock
from socialpub.sandbox.messages import SandboxRequest
from tests.stand_ins.bluesky_calls import BlueskyStandIn
from tests.stand_ins.pinterest import PinterestStandIn
from tests.stand_ins.tiktok import TikTokStandIn
from tests.stand_ins.x import XStandIn

SECRET_PARAMETERS = frozenset({"upload_token"})
KEPT_REQUESTS = 10_000


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request without its credentials."""

    network: str
    method: str
    path: str
    query: dict[str, str]
    content_type: str
    json: Any = None
    """The JSON body, or None."""
    fields: tuple[tuple[str, str | None, int], ...] = ()
    """The parts of a multipart body: name, declared type, bytes."""


def recorded(network: str, request: SandboxRequest) -> RecordedRequest:
    data = None
    with contextlib.suppress(ValueError):
        if request.content_type == "application/json":
            data = json.loads(request.body)
    fields = tuple((part.name, part.content_type, len(part.data)) for part in request.parts or ())
    query = {name: value for name, value in request.query().items() if name not in SECRET_PARAMETERS}
    return RecordedRequest(network, request.method, request.path, query, request.content_type, data, fields)


def end_record(network: Any, body: dict[str, Any]) -> None:
    match body["end"]:
        case "deleted":
            network.delete(body["uri"])
        case "taken_down" | "restored" as end:
            network.take_down(body["uri"], lifted=end == "restored")
        case other:
            raise ValueError(f"records end as deleted, taken_down or restored, not {other!r}")


class World(sandbox.World):
    kinds: ClassVar[tuple[Any, ...]] = (XStandIn, TikTokStandIn, PinterestStandIn, BlueskyStandIn)
    actions: ClassVar[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
        "chaos": lambda network, body: network.chaos(**body),
        "fates": lambda network, body: network.next_fate(body["fate"], int(body.get("times", 1))),
        "records": end_record,
    }

    x: XStandIn
    tiktok: TikTokStandIn
    pinterest: PinterestStandIn
    bluesky: BlueskyStandIn

    def __init__(self, clock: SandboxClock | None = None, *, journal: Path | None = None) -> None:
        self.record = False
        """Whether `requests` keeps every request."""
        self.requests: deque[RecordedRequest] = deque(maxlen=KEPT_REQUESTS)
        super().__init__(clock, journal=journal)

    def reset(self) -> None:
        self.requests.clear()
        super().reset()

    def received(self, network: str, request: SandboxRequest) -> None:
        if self.record:
            self.requests.append(recorded(network, request))
