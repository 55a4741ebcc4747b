"""Completing an upload inspects one PUT, and the result is final (contract 5.5)."""

import asyncio
import os

import pytest

from socialpub.accounts import api_keys
from socialpub.db.tables import artifact_rows
from socialpub.media.decoder import client
from socialpub.media.decoder.client import DecoderFailed
from socialpub.media.types import Facts
from tests.integration.uploads.caller import Caller
from tests.samples import hostile, media


def files_of(rt):
    return [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]


def refused(reply):
    assert reply.status == 400, reply.body
    assert reply.json()["code"] == "invalidRequest"
    assert reply.paths() == [["artifactId"]]
    return reply.json()["errors"][0]["message"]


def inspects_with(monkeypatch, inspect):
    """Replace the decoder process by `inspect(path)`."""

    async def inspect_file(path, declared, limits, **_):
        return await inspect(path)

    monkeypatch.setattr(client, "inspect_file_async", inspect_file)


def a_picture(path):
    return Facts("image", "image/png", path.stat().st_size, {"width": 1, "height": 1, "frames": 1})


@pytest.mark.decoder_child
def test_a_verified_upload_is_an_artifact_with_exactly_these_fields(rt, clock, caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)
    clock.forward(60)
    reply = caller.complete(reservation)
    assert reply.status == 200
    artifact = reply.data
    assert set(artifact) == {"artifactId", "storageKey", "url", "createdAt", "kind", "mimeType", "sizeBytes"}
    assert artifact["artifactId"] == reservation["artifactId"]
    assert (artifact["kind"], artifact["mimeType"], artifact["sizeBytes"]) == ("image", "image/png", len(png))
    assert artifact["createdAt"] == "2026-10-12T09:01:00.000Z"
    assert caller.ask("GET", artifact["url"]).body == png


@pytest.mark.decoder_child
@pytest.mark.parametrize(
    ("make", "mime_type"), [(media.heic, "image/heic"), (media.heif, "image/heif"), (media.avif, "image/avif")]
)
def test_a_heic_or_avif_stays_as_it_is(caller, tmp_path, make, mime_type):
    data = make(tmp_path / "a").read_bytes()
    artifact = caller.upload(data, mime_type, "a")
    assert (artifact["kind"], artifact["mimeType"]) == ("image", mime_type)
    read = caller.ask("GET", artifact["url"])
    assert read.body == data and read.headers["content-type"] == mime_type


@pytest.mark.parametrize(
    ("mime_type", "words"),
    [
        ("image/tiff", "Save it as JPEG or PNG"),
        ("image/x-canon-cr3", "Save it as JPEG or PNG"),
        ("video/x-msvideo", "Convert it to MP4 with H.264 and AAC"),
        ("text/plain", "image/heic"),
    ],
)
def test_the_refusal_of_a_type_names_the_conversion(caller, mime_type, words):
    reply = caller.post("/uploads", {"fileName": "a", "mimeType": mime_type, "fileSize": 10})
    assert (reply.status, reply.paths()) == (400, [["mimeType"]])
    message = reply.json()["errors"][0]["message"]
    assert words in message and ".." not in message


def test_completing_again_is_the_same_artifact(caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)
    assert caller.complete(reservation).json() == caller.complete(reservation).json()


def test_two_completes_at_once_give_the_same_answer(caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)

    async def both():
        return await asyncio.gather(caller.completing(reservation), caller.completing(reservation))

    first, second = caller.run(both())
    assert (first.status, second.status) == (200, 200)
    assert first.json() == second.json()


def test_nothing_can_be_completed_before_its_bytes_have_arrived(caller, png):
    reservation = caller.reserve(png)
    assert "PUT" in refused(caller.complete(reservation))
    assert caller.put(reservation, png).status == 200
    assert caller.complete(reservation).status == 200


def test_an_unknown_id_is_a_400(caller):
    missing = {"artifactId": "019aa5c0-0000-7000-8000-000000000001"}
    assert "POST /uploads" in refused(caller.complete(missing))


@pytest.mark.parametrize("body", [{}, {"artifactId": "x"}, {"artifactId": None}, {"artifactId": 1}])
def test_a_bad_id_is_a_400(caller, body):
    assert caller.post("/uploads/complete", body).paths() == [["artifactId"]]


@pytest.mark.decoder_child
@pytest.mark.parametrize(
    ("make", "mime_type", "reason"),
    [
        (hostile.html, "image/png", "text/html"),
        (hostile.pdf, "image/jpeg", "application/pdf"),
        (media.png, "image/jpeg", "image/png"),
        (media.sound_mp4, "video/mp4", "no video track"),
        (lambda path: hostile.cut(media.png(path, noise=True)), "image/png", ""),
    ],
)
def test_a_file_of_another_type_is_rejected_with_a_reason(rt, caller, tmp_path, make, mime_type, reason):
    data = make(tmp_path / "liar").read_bytes()
    reservation = caller.reserve(data, mime_type)
    assert caller.put(reservation, data).status == 200
    assert reason in refused(caller.complete(reservation))
    assert files_of(rt) == []
    assert reason in refused(caller.complete(reservation)), "it is remembered"
    assert artifact_rows.find(rt.db, reservation["artifactId"]).status == "rejected"


def test_a_put_during_complete_is_examined_as_well(rt, caller, monkeypatch):
    reservation = caller.reserve(5)
    caller.put(reservation, b"first")
    seen = []

    async def inspect(path):
        seen.append(path.read_bytes())
        found = a_picture(path)
        if len(seen) == 1:
            assert (await caller.putting(reservation, b"later")).status == 200
        return found

    inspects_with(monkeypatch, inspect)
    artifact = caller.complete(reservation).data
    assert seen == [b"first", b"later"]
    assert caller.ask("GET", artifact["url"]).body == b"later"
    assert [path.read_bytes() for path in files_of(rt)] == [b"later"]


def test_replacing_a_file_during_inspection_is_not_a_failure(rt, caller, monkeypatch):
    reservation = caller.reserve(5)
    caller.put(reservation, b"first")

    async def inspect(path):
        if path.read_bytes() == b"first":
            assert (await caller.putting(reservation, b"later")).status == 200
            raise DecoderFailed("no such file")
        return a_picture(path)

    inspects_with(monkeypatch, inspect)
    assert caller.complete(reservation).status == 200


def test_bytes_that_never_stop_changing_are_a_conflict(rt, caller, monkeypatch):
    reservation = caller.reserve(5)
    caller.put(reservation, b"first")

    async def inspect(path):
        found = a_picture(path)
        assert (await caller.putting(reservation, b"again")).status == 200
        return found

    inspects_with(monkeypatch, inspect)
    assert caller.complete(reservation).status == 409


def test_a_failed_decoder_allows_a_retry(rt, caller, png, monkeypatch):
    reservation = caller.reserve(png)
    caller.put(reservation, png)

    async def inspect(path):
        raise DecoderFailed("could not be started")

    with monkeypatch.context() as patched:
        inspects_with(patched, inspect)
        reply = caller.complete(reservation)
    assert (reply.status, reply.json()["code"]) == (503, "unavailable")
    assert "started" not in reply.json()["detail"]
    assert caller.complete(reservation).status == 200


def test_lost_bytes_can_be_sent_again(rt, caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)
    files_of(rt)[0].unlink()
    assert "again" in refused(caller.complete(reservation))
    assert caller.put(reservation, png).status == 200
    assert caller.complete(reservation).status == 200


def test_no_transaction_is_open_while_the_child_decodes(rt, caller, png, monkeypatch):
    reservation = caller.reserve(png)
    caller.put(reservation, png)

    async def inspect(path):
        await rt.write_soon(lambda rt, tx: tx.execute_sql("UPDATE artifact SET file_name = 'written meanwhile'"))
        return a_picture(path)

    inspects_with(monkeypatch, inspect)
    assert caller.complete(reservation).status == 200
    assert artifact_rows.find(rt.db, reservation["artifactId"]).file_name == "written meanwhile"


# --- reserving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mime_type", "size", "status"),
    [
        ("image/png", 32 << 20, 201),
        ("image/png", (32 << 20) + 1, 400),
        ("video/mp4", 157_286_400, 201),
        ("video/mp4", 157_286_401, 400),
        ("video/webm", 1, 201),
        ("video/quicktime", 0, 400),
    ],
)
def test_each_kind_has_its_own_largest_file(caller, mime_type, size, status):
    reply = caller.post("/uploads", {"fileName": "a", "mimeType": mime_type, "fileSize": size})
    assert reply.status == status
    if status == 400:
        assert reply.paths() == [["fileSize"]]


# --- fairness between keys --------------------------------------------------------------------------------------------


CORES = os.cpu_count() or 1


@pytest.fixture
def other(rt, caller):
    other = Caller(caller.app, rt.write(api_keys.create, "other"))
    with other:
        yield other


class Decodes:
    """The decodes in the order in which they began. None ends before the gate opens."""

    def __init__(self):
        self.begun, self.gate, self.run_once = [], asyncio.Event(), client._run_once

    async def run(self, need, request, timeout_seconds):
        self.begun.append(request["path"])
        await self.gate.wait()
        return await self.run_once(need, request, timeout_seconds)

    def before(self, reservation):
        """Return how many decodes began before the decode of this upload. None if it did not begin."""
        return next((n for n, path in enumerate(self.begun) if reservation["artifactId"] in path), None)

    async def end_when_it_came(self, reservation):
        """Open the gate as soon as this upload waits beside the files of another key, or begins."""
        while len(client._fair_slots()._waiting) < 2 and self.before(reservation) is None:
            await asyncio.sleep(0)
        self.gate.set()


@pytest.fixture
def decodes(monkeypatch):
    decodes = Decodes()
    monkeypatch.setattr(client, "_run_once", decodes.run)
    return decodes


async def answered(asking):
    reply = await asking
    assert reply.status in (200, 201), reply.body


async def beside(flood, one, decodes, reservation):
    """Send the flood, and then the one request, before any decode ends."""
    tasks = [asyncio.ensure_future(answered(each)) for each in flood]
    async with asyncio.timeout(120):
        while not client._fair_slots()._waiting:
            await asyncio.sleep(0)
        await asyncio.gather(answered(one), decodes.end_when_it_came(reservation), *tasks)


def test_one_complete_does_not_wait_behind_many_of_another_key(caller, other, png, decodes):
    many, one = [caller.send_file(png) for _ in range(5 * CORES)], caller.send_file(png)
    caller.run(beside(map(caller.completing, many), other.completing(one), decodes, one))
    assert len(decodes.begun) == len(many) + 1
    assert decodes.before(one) <= CORES + 1, "it begins next"


@pytest.mark.parametrize(
    ("make", "declared", "advice"),
    [
        (media.webp, "image/jpeg", "Declare image/webp."),
        (media.png_animated, "image/gif", "Declare image/png."),
        (media.avif, "image/png", "Declare image/avif."),
        (media.video_mp4, "video/quicktime", "Declare video/mp4."),
        (media.video_m4v, "image/jpeg", "Declare video/mp4."),
        (media.video_mov, "video/mp4", "Declare video/quicktime."),
        (media.video_webm, "video/mp4", "Declare video/webm."),
    ],
)
def test_a_wrong_declaration_ends_with_the_right_one(caller, tmp_path, make, declared, advice):
    content = make(tmp_path / "file").read_bytes()
    assert advice in refused(caller.complete(caller.send_file(content, declared)))


@pytest.mark.parametrize(
    ("make", "declared", "mime_type"),
    [
        (media.jpeg, "image/pjpeg", "image/jpeg"),
        (media.png_animated, "image/apng", "image/png"),
        (media.video_m4v, "video/x-m4v", "video/mp4"),
        (media.video_matroska, "video/x-matroska", "video/webm"),
        (media.video_webm, "video/webm; codecs=vp8", "video/webm"),
    ],
)
def test_other_names_of_accepted_types_and_parameters_are_accepted(caller, tmp_path, make, declared, mime_type):
    content = make(tmp_path / "file").read_bytes()
    reservation = caller.send_file(content, declared)
    assert reservation["requiredHeaders"] == {"content-type": declared}
    assert caller.complete(reservation).data["mimeType"] == mime_type
