"""A scripted server of an account: each call gets the next response."""

import base64
import json
from pathlib import Path
from typing import Any, cast

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.auth import Account
from socialpub.providers.base import Content, Job, MediaFile, Memo, Outcome
from socialpub.providers.bluesky import Bluesky
from socialpub.providers.bluesky.record import cid_of
from socialpub.providers.http import Http
from socialpub.providers.responses import HttpResponse
from tests.support.scripted_calls import ScriptedCalls, SentCall, answer, counted, scripted_job

SERVICE = "https://service.test"
PLC = "https://site.test/plc"
DID = "did:plc:abcdefghijklmnopqrstuvwx"
SECTION = BlueskySection(enabled=True, service=SERVICE, plc_url=PLC)
ADAPTER = Bluesky(SECTION)


class Script(ScriptedCalls):
    """Shortens the names of calls to the service. Every call goes to an address that was checked."""

    def read(self, method: str, url: str, request: dict[str, Any]) -> SentCall:
        assert "address" in request or url.startswith((SERVICE, PLC))
        return SentCall(method, url.removeprefix(f"{SERVICE}/xrpc/"), request)


def http(*answers: HttpResponse | Exception) -> tuple[Http, Script]:
    script = Script(*answers)
    return cast(Http, script), script


def refusal(status: int, name: str, message: str = "The message.", **headers: str) -> HttpResponse:
    return answer(status, {"error": name, "message": message}, **headers)


def token(scope: str, seconds: int = 7200, **more: Any) -> str:
    """Return a JWT without a valid signature."""
    claims = {"scope": scope, "iat": 1_700_000_000, "exp": 1_700_000_000 + seconds, **more}
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.c2ln"


def session(**changed: Any) -> dict[str, Any]:
    return {
        "did": DID,
        "handle": "studio.test",
        "accessJwt": token("com.atproto.appPass"),
        "refreshJwt": token("com.atproto.refresh", 7_776_000),
        "active": True,
        "emailConfirmed": True,
        "didDoc": document(SERVICE),
        **changed,
    }


def document(server: str, did: str = DID, handle: str = "studio.test") -> dict[str, Any]:
    service = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": server}
    return {"id": did, "alsoKnownAs": [f"at://{handle}"], "service": [service]}


def image(position: int = 0, alt: str | None = None, size_bytes: int = 120_000) -> MediaFile:
    facts = {"width": 1200, "height": 675, "frames": 1}
    return MediaFile(position, "image", "image/jpeg", size_bytes, Path(f"/media/{position}"), "a.jpg", alt, facts)


def video() -> MediaFile:
    facts = {"width": 1280, "height": 720, "duration_seconds": 12.0}
    return MediaFile(0, "video", "video/mp4", 2_500_000, Path("/media/video"), "trip.mp4", "A trip", facts)


def blob(name: str = "a") -> dict[str, Any]:
    # Any CID of raw bytes is good enough here.
    link = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyk" + name
    return {"$type": "blob", "ref": {"$link": link}, "mimeType": "image/jpeg", "size": 120_000}


def stored(job_memo: Memo, **changed: Any) -> HttpResponse:
    """Return the server's response to a query for the record in the memo."""
    built = job_memo["record"]
    uri = f"at://{DID}/app.bsky.feed.post/{built['key']}"
    return answer(200, {"uri": uri, "cid": cid_of(built["post"]), "value": built["post"], **changed})


def job(
    script: Script, text: str = "Hello", *media: MediaFile, options: dict[str, Any] | None = None, **more: Any
) -> Job:
    account = Account(DID, "studio.test", facts={"server": SERVICE})
    return scripted_job(script, Content(text, media), account, "AT", options or {}, **more)


def run(step: str, script: Script, text: str = "Hello", *media: MediaFile, **more: Any) -> Outcome:
    return counted(ADAPTER.run(step, job(script, text, *media, **more)), more.get("back"))
