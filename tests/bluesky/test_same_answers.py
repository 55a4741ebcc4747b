"""The same calls to Bluesky's own server and to the stand-in have the same status, error name and fields."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.bluesky.front import Answer
from tests.bluesky.servers import POST, Account, BlueskyServer, StandIn
from tests.support.hand_clock import HandClock

pytestmark = pytest.mark.bluesky

CREATE, REFRESH, GET_SESSION, END = (
    f"com.atproto.server.{name}Session" for name in ("create", "refresh", "get", "delete")
)
PUT, WRITES, GET, LIST = (
    f"com.atproto.repo.{name}" for name in ("putRecord", "applyWrites", "getRecord", "listRecords")
)
NEW, DELETE, UPLOAD = (f"com.atproto.repo.{name}" for name in ("createRecord", "deleteRecord", "uploadBlob"))
DESCRIBE, RESOLVE = "com.atproto.server.describeServer", "com.atproto.identity.resolveHandle"
BLOB, STATUS = "com.atproto.sync.getBlob", "com.atproto.sync.getRepoStatus"

AT = "2026-10-12T09:00:00.000Z"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FAMILY = "👨‍👩‍👧‍👦"


@dataclass
class Calls:
    """The calls of one account to one server. `answers` are what the server responded, in order."""

    server: BlueskyServer
    account: Account
    other: Account
    access: str
    refresh: str
    answers: list[tuple[str, Answer]] = field(default_factory=list)

    def call(self, name: str, body: Any = None, **how: Any) -> dict[str, Any]:
        answer = self.server.call(name, body, **how)
        self.answers.append((name, answer))
        is_json = answer.headers.get("content-type", answer.headers.get("Content-Type", "")).startswith(
            "application/json"
        )
        return json.loads(answer.body) if answer.body and is_json else {}

    def put(self, rkey: str, record: Any, *, token: str | None = None, **more: Any) -> dict[str, Any]:
        body = {"repo": self.account.did, "collection": POST, "rkey": rkey, "swapRecord": None, "validate": True}
        return self.call(PUT, {**body, "record": record, **more}, token=self.access if token is None else token)

    def post(self, rkey: str, **fields: Any) -> dict[str, Any]:
        """Put a post with these fields."""
        return self.put(rkey, post(**fields))

    def write(self, *writes: Any) -> dict[str, Any]:
        return self.call(WRITES, {"repo": self.account.did, "writes": list(writes)}, token=self.access)

    def get(self, rkey: str, **more: str) -> dict[str, Any]:
        return self.call(GET, params={"repo": self.account.did, "collection": POST, "rkey": rkey} | more)

    def delete(self, rkey: str, **more: Any) -> dict[str, Any]:
        body = {"repo": self.account.did, "collection": POST, "rkey": rkey, **more}
        return self.call(DELETE, body, token=self.access)

    def upload(self, content: bytes = PNG, content_type: str = "image/png", **how: Any) -> Any:
        return self.call(UPLOAD, content, token=self.access, content_type=content_type, **how).get("blob")


def parsed(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError:
        return None


def post(**fields: Any) -> dict[str, Any]:
    return {"$type": POST, "text": "Hello", "createdAt": AT, **fields}


def key(number: int) -> str:
    return f"3mxo5qpa7r{number:03}".translate(str.maketrans("0189", "abcd"))


def create(number: int, **fields: Any) -> dict[str, Any]:
    name = "com.atproto.repo.applyWrites#create"
    return {"$type": name, "collection": POST, "rkey": key(number), "value": post(**fields)}


def image(blob: Any, **fields: Any) -> dict[str, Any]:
    shown = {"image": blob, "alt": "", "aspectRatio": {"width": 1, "height": 1}, **fields}
    return {"$type": "app.bsky.embed.images", "images": [shown]}


def facet(*features: dict[str, Any], start: int = 0, end: int = 3) -> list[dict[str, Any]]:
    kind = "app.bsky.richtext.facet#"
    named = [{**one, "$type": kind + one["$type"]} for one in features]
    return [{"index": {"byteStart": start, "byteEnd": end}, "features": named}]


def sign_in(calls: Calls, identifier: str, password: str | None = None) -> dict[str, Any]:
    return calls.call(CREATE, {"identifier": identifier, "password": password or calls.account.app_password})


def sessions(calls: Calls) -> None:
    sign_in(calls, calls.account.handle)
    sign_in(calls, calls.account.did)
    sign_in(calls, calls.account.handle.upper())
    sign_in(calls, calls.account.handle, calls.account.password)


def refused_sessions(calls: Calls) -> None:
    sign_in(calls, calls.account.handle, "xxxx-xxxx-xxxx-xxxx")
    sign_in(calls, "nobody.test")
    sign_in(calls, "@" + calls.account.handle)
    sign_in(calls, calls.account.handle + " ")
    sign_in(calls, "")
    calls.call(CREATE, {"identifier": calls.account.handle})
    calls.call(CREATE, {"identifier": 1, "password": 2})
    calls.call(CREATE, b"{", content_type="application/json")
    calls.call(CREATE)


def refreshing(calls: Calls) -> None:
    session = sign_in(calls, calls.account.did)
    first = calls.call(REFRESH, b"", token=session["refreshJwt"])
    second = calls.call(REFRESH, b"", token=session["refreshJwt"])
    calls.call(GET_SESSION, token=first["accessJwt"])
    calls.call(GET_SESSION, token=session["accessJwt"])
    calls.call(REFRESH, b"", token=first["refreshJwt"])
    calls.call(REFRESH, b"", token=second["refreshJwt"])
    calls.call(REFRESH, b"", token=session["accessJwt"])
    calls.call(REFRESH, b"", token="x.y.z")
    calls.call(REFRESH, b"")
    calls.call(GET_SESSION, token=session["refreshJwt"])
    calls.call(GET_SESSION)


def signing_out(calls: Calls) -> None:
    session = sign_in(calls, calls.account.did)
    calls.call(END, b"", token=session["accessJwt"])
    calls.call(END, b"", token=session["refreshJwt"])
    calls.call(END, b"", token=session["refreshJwt"])
    calls.call(REFRESH, b"", token=session["refreshJwt"])
    calls.call(GET_SESSION, token=session["accessJwt"])


def the_server(calls: Calls) -> None:
    calls.call(DESCRIBE)
    calls.call(RESOLVE, params={"handle": calls.account.handle})
    calls.call(RESOLVE, params={"handle": "nobody.test"})
    calls.call(RESOLVE, params={"handle": "no handle"})
    calls.call(RESOLVE)
    calls.call("com.atproto.server.noSuchMethod")
    calls.call("app.bsky.video.getUploadLimits", token=calls.access)
    calls.call(PUT)
    calls.call(DESCRIBE, {})
    calls.call(STATUS, params={"did": calls.account.did})
    calls.call(STATUS, params={"did": "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"})


def repeated_puts(calls: Calls) -> None:
    calls.post(key(1))
    calls.post(key(1))
    calls.post(key(1), text="Other")
    calls.put(key(1), post(text="Other"), swapRecord="bafyreiagqi7firpwsxipmdwofilp7ocpdkhheauiq63x3oalmjexpkzqwa")
    calls.get(key(1))
    calls.delete(key(1))
    calls.delete(key(1))
    calls.get(key(1))
    calls.post(key(1))


def refused_puts(calls: Calls) -> None:
    calls.put("not-a-tid", post())
    calls.put(key(2), post(), token="")
    calls.put(key(2), post(), token="x.y.z")
    calls.put(key(2), post(), token=calls.refresh)
    calls.put(key(2), post(), repo=calls.other.did)
    calls.put(key(2), post(), repo="nobody.test")
    calls.put(key(2), post(), collection="no collection")
    calls.put(key(2), {**post(), "$type": "app.bsky.feed.like"})
    calls.put(key(2), "text")
    calls.put(key(2), {"$type": POST, "text": "Hello"})
    calls.put(key(2), post(text=1.5))
    calls.put(key(2), post(langs=None))
    calls.put(key(2), post(unknown={"a": 1}))


def texts(calls: Calls) -> None:
    for number, text in enumerate(
        ("", "a" * 300, "a" * 301, "🇩🇪" * 300, FAMILY * 120, FAMILY * 121, "é" * 301, "\r\n" * 300, "नि" * 300, "\0")
    ):
        calls.post(key(30 + number), text=text)


def dates(calls: Calls) -> None:
    for number, at in enumerate(
        (
            "2026-10-12T09:00:00Z",
            "2026-10-12T09:00:00+01:00",
            "2026-10-12T09:00:00-00:00",
            "2026-10-12T09:00:00",
            "2026-10-12 09:00:00Z",
            "2026-10-12",
            "2026-13-12T09:00:00Z",
        )
    ):
        calls.post(key(50 + number), createdAt=at)


def languages_and_labels(calls: Calls) -> None:
    calls.post(key(60), langs=["de", "pt-BR", "en"])
    calls.post(key(61), langs=["de", "en", "fr", "it"])
    calls.post(key(62), langs=["english language"])
    values = [{"val": "sexual"}]
    calls.post(key(63), labels={"$type": "com.atproto.label.defs#selfLabels", "values": values})
    calls.post(key(64), labels={"values": values})
    calls.post(key(65), labels={"$type": "com.atproto.label.defs#selfLabels", "values": values * 11})


def facets(calls: Calls) -> None:
    link = {"$type": "link", "uri": "https://example.com"}
    calls.post(key(70), facets=facet(link))
    calls.post(key(71), facets=facet({**link, "uri": "example.com"}))
    calls.post(key(72), facets=facet({**link, "uri": "https://example.com/a b"}))
    calls.post(key(73), facets=facet({"$type": "mention", "did": calls.other.did}))
    calls.post(key(74), facets=facet({"$type": "mention", "did": calls.other.handle}))
    calls.post(key(75), facets=facet({"$type": "tag", "tag": "a" * 64}))
    calls.post(key(76), facets=facet({"$type": "tag", "tag": "a" * 65}))
    calls.post(key(77), facets=facet(link, start=100, end=90))
    calls.post(key(78), facets=facet(link, start=-1))


def replies(calls: Calls) -> None:
    parent = calls.post(key(80))
    reference = {"uri": parent["uri"], "cid": parent["cid"]}
    calls.post(key(81), reply={"root": reference, "parent": reference})
    calls.post(key(82), reply={"root": reference})
    calls.post(key(83), reply={"root": {"uri": parent["uri"]}, "parent": reference})
    missing = {**reference, "uri": parent["uri"].replace(key(80), key(89))}
    calls.post(key(84), reply={"root": missing, "parent": missing})


def batches(calls: Calls) -> None:
    gate = {
        "$type": "com.atproto.repo.applyWrites#create",
        "collection": "app.bsky.feed.threadgate",
        "rkey": key(90),
        "value": {
            "$type": "app.bsky.feed.threadgate",
            "post": f"at://{calls.account.did}/{POST}/{key(90)}",
            "allow": [{"$type": "app.bsky.feed.threadgate#mentionRule"}],
            "createdAt": AT,
        },
    }
    calls.write(create(90), gate)
    calls.write(create(90), gate)
    calls.write(create(91), create(90))
    calls.get(key(91))
    calls.write(create(92), create(93, text="a" * 301))
    calls.get(key(92))
    calls.write(create(94), create(94))
    calls.write({name: value for name, value in create(95).items() if name != "$type"})
    calls.write()
    calls.write({"$type": "com.atproto.repo.applyWrites#delete", "collection": POST, "rkey": key(96)})
    allow = [{"$type": "app.bsky.feed.threadgate#mentionRule"}] * 6
    calls.write({**gate, "rkey": key(97), "value": {**gate["value"], "allow": allow}})


def creating(calls: Calls) -> None:
    body = {"repo": calls.account.did, "collection": POST, "rkey": key(100), "record": post()}
    calls.call(NEW, body, token=calls.access)
    calls.call(NEW, body, token=calls.access)
    calls.call(NEW, {**body, "rkey": "x"}, token=calls.access)
    calls.delete(key(100), swapRecord="bafyreiagqi7firpwsxipmdwofilp7ocpdkhheauiq63x3oalmjexpkzqwa")
    calls.delete(key(100))


def reading(calls: Calls) -> None:
    calls.post(key(110))
    calls.get(key(110))
    calls.get(key(119))
    calls.get(key(110), repo=calls.account.handle)
    calls.get(key(110), repo="did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")
    calls.call(GET, params={"repo": calls.account.did})
    calls.call(GET, params={"repo": calls.account.did, "collection": "app.bsky.feed.like", "rkey": "x"})
    for more in (
        {},
        {"limit": "1"},
        {"limit": "1", "reverse": "true"},
        {"limit": "0"},
        {"limit": "101"},
        {"limit": "x"},
    ):
        calls.call(LIST, params={"repo": calls.account.did, "collection": POST, **more})
    calls.call(LIST, params={"repo": "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "collection": POST})
    calls.call(LIST, params={"repo": calls.account.did, "collection": "app.bsky.feed.like"})


def uploads(calls: Calls) -> None:
    calls.upload()
    calls.upload(content_type="image/jpeg")
    calls.upload(b"only text", content_type="image/png")
    calls.upload(b"WEBVTT\n", content_type="text/vtt")
    calls.upload(b"")
    calls.call(UPLOAD, PNG, content_type="image/png")
    calls.call(UPLOAD, PNG, content_type="image/png", token="x.y.z")
    calls.call(UPLOAD, PNG, content_type="image/png", token=calls.refresh)
    calls.upload(headers={"content-encoding": "gzip"})


def images(calls: Calls) -> None:
    blob = calls.upload()
    calls.post(key(120), embed=image(blob))
    calls.call(BLOB, params={"did": calls.account.did, "cid": blob["ref"]["$link"]})
    calls.post(key(121), embed=image({**blob, "size": 1}))
    calls.post(key(122), embed=image({**blob, "mimeType": "image/jpeg"}))
    calls.post(key(123), embed=image(blob, aspectRatio={"width": 0, "height": 1}))
    calls.post(key(124), embed={**image(blob), "images": image(blob)["images"] * 5})
    calls.post(key(125), embed={**image(blob), "images": []})
    calls.post(key(126), embed={"images": []})
    calls.post(key(127), embed=image({**blob, "size": 2_000_001}))
    calls.post(key(128), embed={"$type": "app.bsky.embed.images", "images": [{"image": blob}]})
    unknown = {**blob, "ref": {"$link": blob["ref"]["$link"][:-4] + "aaaa"}}
    calls.post(key(129), embed=image(unknown))
    calls.delete(key(120))
    calls.post(key(120), embed=image(blob))
    calls.call(BLOB, params={"did": calls.account.did, "cid": blob["ref"]["$link"]})


def cards(calls: Calls) -> None:
    card = {"uri": "https://example.com", "title": "", "description": ""}
    kind = "app.bsky.embed.external"
    calls.post(key(130), embed={"$type": kind, "external": card})
    calls.post(key(131), embed={"$type": kind, "external": {**card, "thumb": calls.upload()}})
    calls.post(key(132), embed={"$type": kind, "external": {"uri": card["uri"]}})
    calls.post(key(133), embed={"$type": kind, "external": {**card, "uri": "example"}})
    calls.post(key(134), embed={"$type": "app.bsky.embed.unheard", "a": 1})


def too_large(calls: Calls) -> None:
    calls.put(key(140), post(unknown="a" * 200_000))
    calls.put(key(141), post(unknown="a" * 1_100_000))


def deactivated(calls: Calls) -> None:
    calls.post(key(150))
    calls.server.deactivate(calls.account)
    calls.post(key(151))
    calls.upload()
    calls.call(GET_SESSION, token=calls.access)
    calls.call(REFRESH, b"", token=calls.refresh)
    sign_in(calls, calls.account.did)
    calls.get(key(150))
    calls.call(LIST, params={"repo": calls.account.did, "collection": POST})
    calls.call(STATUS, params={"did": calls.account.did})
    calls.server.activate(calls.account)
    calls.get(key(150))


def taken_down(calls: Calls) -> None:
    calls.post(key(160))
    calls.server.take_down(calls.account, calls.server.records(calls.account)[-1])
    calls.get(key(160))
    calls.post(key(160))
    calls.get(key(160))
    calls.server.take_down(calls.account)
    calls.post(key(161))
    calls.upload()
    calls.call(GET_SESSION, token=calls.access)
    calls.call(REFRESH, b"", token=calls.refresh)
    sign_in(calls, calls.account.did)
    sign_in(calls, calls.account.did, calls.account.password)
    calls.get(key(160))
    calls.call(STATUS, params={"did": calls.account.did})


def revoked(calls: Calls) -> None:
    calls.server.revoke_app_password(calls.account)
    calls.post(key(170))
    calls.call(REFRESH, b"", token=calls.refresh)
    sign_in(calls, calls.account.did)


def renamed(calls: Calls) -> None:
    before = calls.account.handle
    calls.server.change_handle(calls.account, "renamed")
    calls.call(GET_SESSION, token=calls.access)
    calls.call(RESOLVE, params={"handle": before})
    calls.call(RESOLVE, params={"handle": calls.account.handle})
    sign_in(calls, before)
    calls.put(key(180), post(), repo=before)
    calls.put(key(181), post(), repo=calls.account.handle)


SCRIPTS: list[Callable[[Calls], None]] = [
    sessions, refused_sessions, refreshing, signing_out, the_server, repeated_puts, refused_puts, texts, dates,
    languages_and_labels, facets, replies, batches, creating, reading, uploads, images, cards, too_large, deactivated,
    taken_down, revoked, renamed,
]  # fmt: skip


def shape(value: Any) -> Any:
    """The fields and types of a JSON value."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


IGNORED = {"didDoc", "value", "email", "links", "contact", "phoneVerificationRequired", "did"}
"""Not compared inside: documents and records that the caller wrote itself, and facts about the server's owner."""


def comparable(answer: Answer) -> Any:
    body = parsed(answer)
    if not isinstance(body, dict):
        return answer.status, answer.body[:8]
    if "error" in body:
        return answer.status, body["error"]
    return answer.status, shape({name: "" if name in IGNORED else value for name, value in body.items()})


@pytest.fixture
def stand_in(clock: HandClock) -> Iterator[StandIn]:
    server = StandIn(clock)
    yield server
    server.close()


def calls_to(server: BlueskyServer) -> Calls:
    account, other = server.add_account("alice"), server.add_account("bob")
    session = server.session(account)
    return Calls(server, account, other, session["accessJwt"], session["refreshJwt"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_sandbox_responds_as_the_real_server_does(real_server, stand_in, script):
    real, simulated = calls_to(real_server), calls_to(stand_in)
    script(real)
    script(simulated)
    assert [name for name, _ in simulated.answers] == [name for name, _ in real.answers]
    pairs = enumerate(zip(simulated.answers, real.answers, strict=True), start=1)
    differences = [
        f"call {number}, {name}: {comparable(other)} instead of {comparable(answer)}"
        for number, ((name, other), (_, answer)) in pairs
        if comparable(other) != comparable(answer)
    ]
    assert not differences, "\n".join(differences)
