"""A scripted X: each call gets the next response and is compared with X's documents."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from socialpub.core.settings.networks import XSection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, Job, MediaFile, Memo, Outcome
from socialpub.providers.bodies import FilePart
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import X
from tests.support.scripted_calls import NOW, ScriptedCalls, SentCall, answer, counted, scripted_job
from tests.unit.providers.x import official

API = "https://api.x.test"


SECTION = XSection(client_id="client", client_secret=SecretStr("hush"), api_url=API)
ADAPTER = X(SECTION)


def data(status: int = 200, **fields: Any) -> HttpResponse:
    return answer(status, {"data": fields})


def problem(status: int, detail: str, type: str = "about:blank", **more: Any) -> HttpResponse:
    return answer(status, {"title": "Title", "detail": detail, "type": type, "status": status, **more})


def invalid(message: str) -> HttpResponse:
    return answer(
        400,
        {
            "errors": [{"parameters": {"a": ["1"]}, "message": message}],
            "title": "Invalid Request",
            "detail": "One or more parameters to your request was invalid.",
            "type": "https://api.twitter.com/2/problems/invalid-request",
        },
    )


class CallOfX(SentCall):
    @property
    def file(self) -> FilePart:
        part = self.request["multipart"]["media"]
        assert isinstance(part, FilePart)
        return part


class Script(ScriptedCalls):
    """Compares each request with X's documents."""

    def read(self, method: str, url: str, request: dict[str, Any]) -> SentCall:
        assert url.startswith(API)
        call = CallOfX(method, url.removeprefix(API), request)
        parts = request.get("multipart")
        fields = {key: part if isinstance(part, str) else "bytes" for key, part in parts.items()} if parts else None
        assert official.complaints(method, call.path, call.params, call.json, fields) == []
        return call


def image(position: int = 0, **other: Any) -> MediaFile:
    facts = {"width": 1200, "height": 675, "frames": 1}
    media = MediaFile(position, "image", "image/jpeg", 120_000, Path("/media/image"), "holiday.jpg", facts=facts)
    return replace(media, **other)


def gif(position: int = 0, **facts: Any) -> MediaFile:
    measured = {"width": 400, "height": 300, "frames": 20, **facts}
    return MediaFile(position, "image", "image/gif", 2_000_000, Path("/media/gif"), "dance.gif", facts=measured)


def video(position: int = 0, size_bytes: int = 2_500_000, **facts: Any) -> MediaFile:
    measured = {"width": 1280, "height": 720, "duration_seconds": 12.0, "frame_rate": 30.0, "has_audio": True, **facts}
    return MediaFile(position, "video", "video/mp4", size_bytes, Path("/media/video"), "trip.mp4", facts=measured)


def account(*scopes: str, **facts: Any) -> Account:
    return Account("2244990001", "acme", frozenset(scopes), facts)


def job(
    script: Script, text: str = "Hello", *media: MediaFile, options: dict[str, Any] | None = None, **more: Any
) -> Job:
    return scripted_job(script, Content(text, media), account(), "AT", options or {}, **more)


def run(step: str, script: Script, text: str = "Hello", *media: MediaFile, **more: Any) -> Outcome:
    return counted(ADAPTER.run(step, job(script, text, *media, **more)), more.get("back"))


def uploaded(*ids: str, ready_seconds_ago: float = 60.0, **more: Any) -> Memo:
    return {
        "media": {
            str(index): {
                "id": media_id,
                "expires_at": (NOW + timedelta(hours=23)).timestamp(),
                "ready_at": (NOW - timedelta(seconds=ready_seconds_ago)).timestamp(),
            }
            for index, media_id in enumerate(ids)
        },
        **more,
    }
