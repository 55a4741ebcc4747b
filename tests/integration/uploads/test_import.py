"""Media by URL arrive before their request is accepted, or nothing is accepted (contract 10.2)."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import stamp
from socialpub.core.secrets import signed_urls
from socialpub.media.decoder import client
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing.media import imports
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from socialpub.web.http.server import Server
from tests.integration.api.client import Client, form
from tests.integration.uploads.caller import Gone, Reply
from tests.samples import media as samples
from tests.support.file_host import FileHost, redirect, response
from tests.support.hand_loop import HandLoop
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_one, select_value

SECRET = "/private-folder/capability-token"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000)
HTML = b"<!doctype html><title>Share</title>"
LIMIT = 50_000


@pytest.fixture
def appliance_options(network: ScriptedNetwork) -> dict[str, Any]:
    return {
        "providers": {"x": network},
        "media": {"import_from": ["127.0.0.1"]},
        "uploads": {"max_image_bytes": LIMIT, "max_video_bytes": LIMIT},
    }


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def host() -> FileHost:
    return FileHost({"/a": response(PNG), "/b": response(PNG), "/page": response(HTML, "Content-Type: text/html")})


@pytest.fixture
def caller(rt: Runtime, app: App, host: FileHost) -> Iterator[Client]:
    with Client(app, rt.write(api_keys.create, "test"), loop_factory=HandLoop) as caller:
        caller.run(host.start())
        yield caller
        caller.run(host.stop())


@pytest.fixture(autouse=True)
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real child process takes a quarter of a second."""
    if request.node.get_closest_marker("decoder_child") is not None:
        return

    async def inspect_file(path: Path, declared: str | None, *_: Any, **__: Any) -> Facts:
        data = path.read_bytes()
        if not data.startswith(PNG[:8]):
            raise MediaRejected("The file was found to be application/pdf, which is not accepted.")
        return Facts("image", declared or "image/png", len(data), {"width": 8, "height": 8})

    monkeypatch.setattr(client, "inspect_file_async", inspect_file)


@pytest.fixture
def draft(profile: str) -> Callable[..., dict[str, Any]]:
    def make(*media: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"post": {"body": "Hello"}, "profiles": [profile], "media": list(media), **more}

    return make


def stored(rt: Runtime) -> tuple[int, int, list[Path]]:
    """Return the posts, the artifacts and the files."""
    posts, artifacts = (select_value(rt.db, f"SELECT count(*) FROM {table}") for table in ("post", "artifact"))
    return posts, artifacts, [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]


NOTHING = (0, 0, [])


def message(reply: Reply) -> str:
    assert reply.status == 400, reply.body
    (error,) = reply.json()["errors"]
    return str(error["message"])


# --- one file --------------------------------------------------------------------------------------------------------


@pytest.mark.decoder_child
def test_the_bytes_decide_the_type(rt, caller, host, tmp_path):
    image = samples.png(tmp_path / "a.png").read_bytes()
    host.responses["/share.html"] = response(image, "Content-Type: text/html")
    reply = caller.send("POST", "/uploads/import", {"url": host.url("/share.html?token=1")})
    assert reply.status == 200, reply.body
    artifact = reply.data
    assert (artifact["kind"], artifact["mimeType"], artifact["sizeBytes"]) == ("image", "image/png", len(image))
    assert caller.ask("GET", artifact["url"]).body == image
    assert select_value(rt.db, "SELECT file_name FROM artifact") == "127.0.0.1", "a path may be a secret"
    assert rt.media.arriving_bytes == 0
    assert rt.media.may_fetch("another key", 1, 0)
    assert "answered text/html: is it a share page?" in message(
        caller.send("POST", "/uploads/import", {"url": host.url("/page")})
    )


ENDLESS = response(PNG + bytes(LIMIT), length=None)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (response(HTML, "Content-Type: text/html; charset=utf-8"), "answered text/html: is it a share page?"),
        (response(b"%PDF-1.7", "Content-Type: image/png"), "found to be application/pdf"),
        (response(PNG, length=LIMIT + 1), "is larger than 48.8 KiB (50000 bytes)"),
        (ENDLESS, "is larger than 48.8 KiB (50000 bytes)"),
        (redirect("http://10.1.2.3/inner"), "leads to 10.1.2.3, which does not exist or is not a public host"),
    ],
)
def test_a_failure_names_the_field_and_what_was_found(rt, caller, host, draft, sent, said, caplog):
    host.responses[SECRET] = sent
    url = host.url(f"{SECRET}?signature=s3cr3t")
    with caplog.at_level(logging.DEBUG):
        replies = [
            caller.send("POST", "/uploads/import", {"url": url}),
            caller.send("POST", "/posts", draft({"url": host.url()}, {"url": url})),
        ]
    for reply, path in zip(replies, ([["url"]], [["media", 1, "url"]]), strict=True):
        assert reply.paths() == path
        assert said in message(reply)
        assert b"capability" not in reply.body and b"s3cr3t" not in reply.body
    assert stored(rt) == NOTHING
    assert rt.media.arriving_bytes == 0
    # `core.logging` silences the HTTP client.
    lines = str([vars(record) for record in caplog.records if record.name.startswith("socialpub")])
    assert f"'origin': 'http://127.0.0.1:{host.port}'" in lines
    assert "capability" not in lines
    assert "s3cr3t" not in lines


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("frost.jpg", "is not an http or https URL"),
        ("http://user:word@127.0.0.1/a", "contains a user name or a password"),
        ("http://127.0.0.1:99999/a", "has a host or a port that is not valid"),
        ("http://127.0.0.1/" + "a" * 2048, "may have at most 2048 characters"),
        (5, "must be a string"),
    ],
)
def test_a_url_that_cannot_be_fetched_is_refused_at_once(caller, draft, url, said):
    for path, body, at in (
        ("/uploads/import", {"url": url}, ["url"]),
        ("/posts", draft({"url": url}), ["media", 0, "url"]),
        ("/posts/validate", draft({"url": url}), ["media", 0, "url"]),
    ):
        reply = caller.send("POST", path, body)
        assert reply.paths() == [at]
        assert said in message(reply)


@pytest.mark.parametrize("change", ["revoke", "limit"])
@pytest.mark.parametrize("request_of", ["import", "post", "form", "edit"])
def test_a_key_that_changes_during_a_fetch_adds_nothing(rt, caller, host, draft, request_of, change):
    clause = "revoked_at = created_at" if change == "revoke" else "approval = 1"
    at = stamp(rt.now() + timedelta(hours=1))
    scheduled = {"post": {"body": "x", "scheduledAt": at}, "profiles": draft()["profiles"]}
    post = caller.send("POST", "/posts", scheduled).data["id"]
    before = stored(rt), select_all(rt.db, "SELECT * FROM post")

    async def play(writer: asyncio.StreamWriter) -> None:
        await asyncio.to_thread(rt.db.write, lambda tx: tx.execute_sql(f"UPDATE api_key SET {clause}"))
        writer.write(response(PNG))

    host.responses["/a"] = play
    media = {"url": host.url()}
    payload = json.dumps(draft(media)).encode()
    method, path, body, more = {
        "import": ("POST", "/uploads/import", media, {}),
        "post": ("POST", "/posts", draft(media), {}),
        "form": ("POST", "/posts", form(payload), {"content_type": "multipart/form-data; boundary=x"}),
        "edit": ("PATCH", f"/posts/{post}", {"media": [media]}, {}),
    }[request_of]
    assert caller.send(method, path, body, **more).status == (401 if change == "revoke" else 403)
    assert (stored(rt), select_all(rt.db, "SELECT * FROM post")) == before


# --- posts -----------------------------------------------------------------------------------------------------------


def test_a_post_brings_files_from_urls_beside_artifacts_and_file_parts(rt, caller, host, draft):
    artifact = caller.upload(PNG)["artifactId"]
    media = [{"url": host.url("/b"), "alt": "B"}, {"artifactId": artifact}, {"url": host.url("/a"), "alt": "A"}]
    post = caller.send("POST", "/posts", draft(*media)).data
    assert [item.get("alt") for item in post["media"]] == ["B", None, "A"]
    assert [item["artifactStatus"] for item in post["media"]] == ["verified"] * 3
    assert post["media"][1]["artifactId"] == artifact
    payload = json.dumps(draft(*media, {"fileField": "f"})).encode()
    sent = form(payload, ("f", "image/png", PNG))
    reply = caller.send("POST", "/posts", sent, content_type="multipart/form-data; boundary=x")
    assert (reply.status, len(reply.data["media"])) == (201, 4), reply.body
    assert caller.ask("GET", reply.data["media"][0]["url"]).body == PNG
    assert sorted(host.paths) == ["/a", "/a", "/b", "/b"]
    assert stored(rt)[:2] == (2, 6)


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ({}, "artifactId and url"),
        ({"alt": "A"}, "artifactId and url"),
        ({"url": "http://127.0.0.1/a", "artifactId": "019aa5c0-0000-7000-8000-000000000001"}, "artifactId and url"),
    ],
)
def test_a_media_item_has_exactly_one_source(caller, host, draft, item, names):
    reply = caller.send("POST", "/posts", draft(item))
    assert ["media", 0] in reply.paths()
    assert f"must have exactly one of {names}" in reply.json()["detail"]
    sent = caller.send(
        "POST", "/posts", form(json.dumps(draft(item)).encode()), content_type="multipart/form-data; boundary=x"
    )
    assert "must have exactly one of fileField, artifactId and url" in sent.json()["detail"]
    assert host.heads == []


@pytest.mark.parametrize("query", ["", "?strict=true"])
def test_no_file_is_fetched_for_an_invalid_post(rt, caller, host, draft, query):
    unknown = "019aa5c0-0000-7000-8000-000000000001"
    media = {"url": host.url()}
    for more in (
        {"profiles": [unknown]},
        {"providerOptions": {"tiktok": {}}},
        {"post": {"scheduledAt": "2020-01-01T00:00:00Z"}},
    ):
        assert caller.send("POST", f"/posts{query}", draft(media, **more)).status == 400
    assert caller.send("POST", f"/posts{query}", draft(media, {"artifactId": unknown})).paths() == [
        ["media", 1, "artifactId"]
    ]
    assert host.heads == []
    assert stored(rt) == NOTHING


def test_no_file_is_fetched_above_the_daily_limit_of_a_key(rt, caller, host, draft):
    caller.key = rt.write(api_keys.create, "agent", posts_per_day=1)
    assert caller.send("POST", "/posts", draft({"url": host.url()})).status == 201
    assert caller.send("POST", "/posts", draft({"url": host.url()})).status == 429
    assert len(host.heads) == 1


def test_validate_does_not_fetch_and_says_so(caller, host, draft):
    reply = caller.send("POST", "/posts/validate", draft({"url": host.url()}, {"url": host.url("/b")}))
    (delivery,) = reply.data["deliveries"]
    note = "This check does not fetch media[0].url, media[1].url. The files are checked when you create the post."
    assert delivery["notes"] == [note]
    assert host.heads == []


# --- the appliance's own URLs ----------------------------------------------------------------------------------------


def test_a_url_of_this_appliance_means_its_artifact(rt, caller, draft, clock):
    artifact = caller.upload(PNG)
    imported = caller.send("POST", "/uploads/import", {"url": artifact["url"]}).data
    assert imported["artifactId"] == artifact["artifactId"]
    post = caller.send("POST", "/posts?strict=true", draft({"url": artifact["url"], "alt": "A"})).data
    assert [(item["artifactId"], item["alt"]) for item in post["media"]] == [(artifact["artifactId"], "A")]
    checked = caller.send("POST", "/posts/validate", draft({"url": artifact["url"]})).data["deliveries"]
    assert "notes" not in checked[0], "the file is known"
    assert stored(rt)[:2] == (1, 1)
    clock.forward(4000)
    forged = signed_urls.media_url(rt.settings, rt.secrets, "06/none.png", rt.now())
    for url, said in (
        (artifact["url"], "leads to this appliance. The URL has expired. Request a new URL."),
        (artifact["url"][:-5], "leads to this appliance. The URL's signature is not valid."),
        (forged, "leads to a file of this appliance that was removed or is not an artifact"),
    ):
        for path, body in (
            ("/uploads/import", {"url": url}),
            ("/posts", draft({"url": url})),
            ("/posts/validate", draft({"url": url})),
        ):
            assert said in message(caller.send("POST", path, body))


# --- repeats, limits and interruptions -------------------------------------------------------------------------------


def test_a_repeat_fetches_nothing_and_the_url_belongs_to_the_comparison(rt, caller, host, draft, clock):
    for key, path, body, other in (
        ("i", "/uploads/import", {"url": host.url()}, {"url": host.url("/b")}),
        ("p", "/posts", draft({"url": host.url()}), draft({"url": host.url("/b")})),
    ):
        fetched = len(host.heads)
        first = caller.send("POST", path, body, idempotency_key=key)
        assert first.status in (200, 201), first.body
        clock.forward(60)
        again = caller.send("POST", path, body, idempotency_key=key)
        assert (again.status, again.headers["idempotency-replayed"]) == (first.status, "true")
        shown = [json.loads(reply.body)["data"] for reply in (first, again)]
        url = [item.get("url") or item["media"][0]["url"] for item in shown]
        assert url[0].partition("?")[0] == url[1].partition("?")[0] and url[0] != url[1], "newly signed"
        assert caller.send("POST", path, other, idempotency_key=key).status == 409
        assert len(host.heads) == fetched + 1
    assert stored(rt)[:2] == (1, 2)


def test_a_failed_fetch_frees_its_idempotency_key(caller, host):
    body = {"url": host.url("/late")}
    assert caller.send("POST", "/uploads/import", body, idempotency_key="k").status == 400
    host.responses["/late"] = response(PNG)
    assert caller.send("POST", "/uploads/import", body, idempotency_key="k").status == 200


class Gate:
    """Holds every response until it opens."""

    def __init__(self) -> None:
        self.waiting = 0
        self.reached: dict[int, asyncio.Event] = {}
        self.opened = asyncio.Event()

    async def play(self, writer: asyncio.StreamWriter) -> None:
        writer.write(response(PNG)[:200])
        self.enter()
        await self.opened.wait()
        writer.write(response(PNG)[200:])

    def enter(self) -> HandLoop:
        self.waiting += 1
        self.until(self.waiting).set()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HandLoop)
        return loop

    def until(self, waiting: int) -> asyncio.Event:
        """Return the event of this number of responses."""
        return self.reached.setdefault(waiting, asyncio.Event())


def test_four_files_of_a_request_arrive_at_a_time_and_other_requests_do_not_wait(rt, caller, host, draft, monkeypatch):
    monkeypatch.setattr(imports, "MAX_REQUESTS", 3)
    monkeypatch.setattr(imports, "KEPT_REQUESTS", 1)
    other = rt.write(api_keys.create, "other")

    async def story() -> None:
        gate = Gate()
        host.responses["/held"] = gate.play
        body = draft(*({"url": host.url("/held")} for _ in range(6)))
        held = asyncio.ensure_future(caller.sending("POST", "/posts", body, idempotency_key="k"))
        await gate.until(4).wait()
        assert (await caller.sending("POST", "/uploads/import", {"url": host.url()})).status == 200
        assert (await caller.sending("POST", "/posts", body, idempotency_key="k")).status == 409
        second = asyncio.ensure_future(caller.sending("POST", "/uploads/import", {"url": host.url("/held")}))
        await gate.until(5).wait()
        full = await caller.sending("POST", "/uploads/import", {"url": host.url()})
        assert (full.status, full.json()["code"], full.headers["retry-after"]) == (503, "unavailable", "5")
        assert (await caller.sending("POST", "/uploads/import", {"url": host.url()}, key=other)).status == 200
        gate.opened.set()
        assert [(await one).status for one in (held, second)] == [201, 200]

    caller.run(story())
    assert host.most_open == 5 + 1
    assert rt.media.may_fetch("another key", 1, 0)


def test_the_total_time_covers_all_files_of_a_request_and_a_slow_drip(rt, caller, host, draft):
    gate = Gate()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(response(length=900))
        loop = gate.enter()
        await gate.until(4).wait()
        while True:  # a byte every few seconds
            writer.write(b"x")
            await writer.drain()
            loop.forward(4)
            for _ in range(9):
                await asyncio.sleep(0)

    host.responses["/drip"] = drip
    items = [{"url": host.url("/a")}, *({"url": host.url("/drip")} for _ in range(5)), {"url": host.url("/b")}]
    reply = caller.send("POST", "/posts", draft(*items))
    late = "did not arrive within the 100 seconds of one request"
    assert {error["message"] for error in reply.json()["errors"]} == {late}
    assert ["media", 0, "url"] not in reply.paths()
    assert ["media", 5, "url"] in reply.paths(), "also a file that never got its turn"
    assert stored(rt) == NOTHING


@pytest.mark.parametrize("way", ["disconnect", "stop", "cancel"])
def test_an_interrupted_fetch_leaves_nothing_and_frees_its_key(rt, app, caller, host, draft, way):
    async def story() -> None:
        gate = Gate()
        host.responses["/held"] = gate.play
        body = draft({"url": host.url()}, {"url": host.url("/held")})
        fields = {"authorization": f"Bearer {caller.key}", "content-type": "application/json", "idempotency-key": "k"}
        raw = json.dumps(body).encode()
        sent = asyncio.ensure_future(
            caller.asking(
                "POST", "/api/v1/posts", [raw, b""], fields, goes_away=way == "disconnect", leaves=gate.until(1)
            )
        )
        await gate.until(1).wait()
        if way == "stop":
            draining = asyncio.ensure_future(Server(app).drain())
            refused = await sent
            assert (refused.status, refused.json()["code"]) == (503, "unavailable")
            draining.cancel()
        elif way == "cancel":
            sent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sent
        else:
            with pytest.raises(Gone):
                await sent
        gate.opened.set()
        assert (await caller.sending("POST", "/posts", body, idempotency_key="k")).status == 201

    caller.run(story())
    rt.files.remove_orphans(
        lambda keys: [key for key in keys if select_one(rt.db, "SELECT 1 FROM artifact WHERE storage_key = ?", (key,))]
    )
    posts, artifacts, files = stored(rt)
    assert (posts, artifacts, len(files)) == (1, 2, 2)
    assert rt.media.arriving_bytes == 0
