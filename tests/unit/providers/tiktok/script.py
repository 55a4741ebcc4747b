"""A scripted TikTok: each call gets the next response, and each request has its endpoint's form."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.base import CallTrace, Content, Job, MediaFile, Memo, Outcome
from socialpub.providers.bodies import FileBody
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import TikTok
from tests.support.scripted_calls import NOW, ScriptedCalls, SentCall, counted, scripted_job

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
    return HttpResponse(status, {}, b"<html>")


def put(status: int) -> HttpResponse:
    return HttpResponse(status, {}, b"")


def with_status(status: str, **data: Any) -> HttpResponse:
    return ok(status=status, **data)


def received(count: int) -> HttpResponse:
    return with_status("PROCESSING_UPLOAD", uploaded_bytes=count)


class CallOfTikTok(SentCall):
    @property
    def range(self) -> str:
        return str(self.request["headers"]["content-range"])


class Script(ScriptedCalls):
    """Compares each request with TikTok's documentation."""

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
        return [
            call.range if call.method == "PUT" else call.path.removeprefix("/v2/post/publish/") for call in self.calls
        ]


def video(size_bytes: int = 15_000_000, mime_type: str = "video/mp4", **facts: Any) -> MediaFile:
    measured = {"width": 1080, "height": 1920, "duration_seconds": 12.0, "frame_rate": 30.0, **facts}
    return MediaFile(0, "video", mime_type, size_bytes, Path("/media/video"), "trip.mp4", facts=measured)


def photo(position: int = 0, **other: Any) -> MediaFile:
    facts = {"width": 1200, "height": 675, "frames": 1}
    media = MediaFile(position, "image", "image/jpeg", 120_000, Path(f"/media/{position}"), "x.jpg", facts=facts)
    return replace(media, **other)


def opened(sent: int = 0, seconds_left: float = 3540.0, **more: Any) -> Memo:
    upload = {"address": f"sealed {ADDRESS}", "ends_at": NOW.timestamp() + seconds_left, "sent": sent, "out": False}
    creator = {"username": "demo.owner", "levels": ["SELF_ONLY"], "off": []}
    return {"creator": creator, "publish_id": PUBLISH_ID, "upload": {**upload, **more}}


def job(
    script: Script,
    *media: MediaFile,
    text: str = "Evening light #demo",
    options: dict[str, Any] | None = None,
    account: Account | None = None,
    **more: Any,
) -> Job:
    given = {
        "committed_at": NOW,
        "public_url": lambda media: f"https://box.example.net/m{media.path}?signature=s",
        "seal": lambda text: f"sealed {text}",
        "open": lambda sealed: sealed.removeprefix("sealed "),
        "trace": script.trace,
    }
    content, chosen = Content(text, media or (video(),)), DIRECT if options is None else options
    return scripted_job(script, content, account or Account("oid", "owner"), "act.1", chosen, **{**given, **more})


def run(step: str, script: Script, *media: MediaFile, **more: Any) -> Outcome:
    outcome = counted(ADAPTER.run(step, job(script, *media, **more)), more.get("back"))
    assert script.over, "not everything was asked"
    return outcome
