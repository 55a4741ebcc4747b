"""A written conversation with TikTok: each call gets the next answer, and every request has its endpoint's form."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Account, CallTrace, Content, ImageLimits, Job, MediaFile, Memo, Outcome
from socialpub.providers.bodies import FileBody
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import TikTok
from tests.support.going_back import counted
from tests.support.scripted_calls import ScriptedCalls, SentCall, as_it_is

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
API = "https://open.tiktokapis.com"
ADDRESS = "https://open-upload.tiktokapis.com/video/?upload_id=7000&upload_token=demo"
PUBLISH_ID = "v_pub_file~v2-1.7000000000000000001"
SECTION = TikTokSection(client_key="ck", client_secret=SecretStr("cs-secret"))
ADAPTER = TikTok(SECTION)
DIRECT = {"privacyLevel": "SELF_ONLY"}
DRAFT = {"mode": "draft"}
CHUNK = 10_000_000


def ok(**data: Any) -> HttpResponse:
    return envelope(200, "ok", **data)


def envelope(status: int, code: str, message: str = "", /, **data: Any) -> HttpResponse:
    body = {"data": data, "error": {"code": code, "message": message, "log_id": "20260131AB"}}
    return HttpResponse(status, {}, json.dumps(body).encode())


def page(status: int) -> HttpResponse:
    """What a proxy says."""
    return HttpResponse(status, {}, b"<html>")


def put(status: int) -> HttpResponse:
    """The answer of an upload host."""
    return HttpResponse(status, {}, b"")


def stands(status: str, **data: Any) -> HttpResponse:
    return ok(status=status, **data)


def received(count: int) -> HttpResponse:
    return stands("PROCESSING_UPLOAD", uploaded_bytes=count)


class CallOfTikTok(SentCall):
    @property
    def range(self) -> str:
        return str(self.request["headers"]["content-range"])


class Script(ScriptedCalls):
    """Held against what TikTok's pages say of each endpoint."""

    def __init__(self, *answers: HttpResponse | Exception) -> None:
        super().__init__(*answers)
        self.trace = CallTrace()

    def read(self, method: str, url: str, request: dict[str, Any]) -> SentCall:
        call = CallOfTikTok(method, url.removeprefix(API), request)
        if method == "PUT":
            assert "token" not in request
            content = request["content"]
            assert isinstance(content, FileBody)
            first, last = call.range.removeprefix("bytes ").partition("/")[0].split("-")
            assert (content.offset, content.length) == (int(first), int(last) - int(first) + 1)
        else:
            assert method == "POST"
            assert url.startswith(f"{API}/v2/")
            assert call.path.partition("?")[0].endswith("/")
            assert request["token"] == "act.1"
            assert request["headers"] == {"content-type": "application/json; charset=UTF-8"}
        return call

    @property
    def asked(self) -> list[str]:
        """PUTs by their range, the rest by the end of its path."""
        return [
            call.range if call.method == "PUT" else call.path.removeprefix("/v2/post/publish/") for call in self.calls
        ]


def film(size_bytes: int = 15_000_000, mime_type: str = "video/mp4", **facts: Any) -> MediaFile:
    measured = {"width": 1080, "height": 1920, "duration_seconds": 12.0, "frame_rate": 30.0, **facts}
    return MediaFile(0, "video", mime_type, size_bytes, Path("/media/film"), "trip.mp4", facts=measured)


def photo(position: int = 0, **other: Any) -> MediaFile:
    facts = {"width": 1200, "height": 675, "frames": 1}
    media = MediaFile(position, "image", "image/jpeg", 120_000, Path(f"/media/{position}"), "x.jpg", facts=facts)
    return replace(media, **other)


def opened(sent: int = 0, seconds_left: float = 3540.0, **more: Any) -> Memo:
    """The memo of a task whose upload has begun."""
    upload = {"address": f"sealed {ADDRESS}", "ends_at": NOW.timestamp() + seconds_left, "sent": sent, "out": False}
    creator = {"username": "demo.owner", "levels": ["SELF_ONLY"], "off": []}
    return {"creator": creator, "publish_id": PUBLISH_ID, "upload": {**upload, **more}}


def job(
    script: Script,
    *media: MediaFile,
    text: str = "Evening light #demo",
    options: dict[str, Any] | None = None,
    memo: Memo | None = None,
    account: Account | None = None,
    seconds: float = 0.0,
    slice_over: Callable[[], bool] = lambda: False,
    fit: Callable[[MediaFile, ImageLimits], MediaFile] = as_it_is,
    public_url: Callable[[MediaFile], str] = lambda media: f"https://box.example.net/m{media.path}?signature=s",
    unknown_before: bool = False,
    back: dict[str, int] | None = None,
) -> Job:
    return Job(
        content=Content(text, media or (film(),)),
        options=DIRECT if options is None else options,
        account=account or Account("oid", "owner"),
        memo=memo or {},
        token="act.1",
        call=script.call,
        fit=fit,
        now=NOW + timedelta(seconds=seconds),
        slice_over=slice_over,
        committed_at=NOW,
        unknown_before=unknown_before,
        times_back=back or {},
        public_url=public_url,
        seal=lambda text: f"sealed {text}",
        open=lambda sealed: sealed.removeprefix("sealed "),
        trace=script.trace,
    )


def run(step: str, script: Script, *media: MediaFile, **more: Any) -> Outcome:
    back = {} if (given := more.get("back")) is None else given
    outcome = counted(ADAPTER.run(step, job(script, *media, **more)), back)
    assert script.over, "not everything was asked"
    return outcome
