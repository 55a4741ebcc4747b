"""Examination is fair: who has a lot examined makes nobody with another key wait for it."""

import asyncio
import os

import pytest

from socialpub.accounts import api_keys
from socialpub.media.decoder import client
from socialpub.media.types import MediaLimits
from tests.integration.uploads.caller import Caller
from tests.integration.uploads.test_multipart import file, form, headers, payload
from tests.samples import hostile, media

CORES = os.cpu_count() or 1


@pytest.fixture
def other(rt, caller):
    """Somebody with another key."""
    other = Caller(caller.app, rt.write(api_keys.create, "other"))
    with other:
        yield other


def reserved(caller, png):
    reservation = caller.reserve(png)
    assert caller.put(reservation, png).status == 200
    return reservation


async def answered(ended, name, asking):
    reply = await asking
    assert reply.status in (200, 201), reply.body
    ended.append(name)


def test_one_complete_does_not_wait_behind_many_of_another_key(caller, other, png):
    many, one = [reserved(caller, png) for _ in range(8 * CORES)], reserved(caller, png)
    ended = []

    async def story():
        flood = [asyncio.ensure_future(answered(ended, "many", caller.completing(each))) for each in many]
        await asyncio.sleep(0)
        await answered(ended, "one", other.completing(one))
        assert len(ended) < len(many) // 2, "the flood goes on"
        await asyncio.gather(*flood)

    caller.run(story())


def test_one_complete_does_not_wait_behind_the_files_of_another_keys_post(caller, other, profile, png):
    body = form(
        payload(profile, *({"fileField": f"f{n}"} for n in range(20))), *(file(f"f{n}", png) for n in range(20))
    )
    one, ended = reserved(caller, png), []

    async def story():
        asking = caller.asking("POST", "/api/v1/posts", body, headers(caller))
        post = asyncio.ensure_future(answered(ended, "post", asking))
        while not client._fair_turns()._waiting:
            await asyncio.sleep(0)
        await answered(ended, "one", other.completing(one))
        assert client._fair_turns()._waiting, "files of the post have not even begun"
        await post

    caller.run(story())
    assert ended == ["one", "post"]


@pytest.mark.parametrize(
    ("make", "declared", "seconds"),
    [
        (media.png, "image/png", client.IMAGE_CPU_SECONDS),
        (media.png, None, client.IMAGE_CPU_SECONDS),
        (media.video_webm, "video/webm", client.VIDEO_CPU_SECONDS),
        (media.video_webm, None, client.VIDEO_CPU_SECONDS),
    ],
)
def test_a_picture_may_take_less_time_than_a_film(tmp_path, monkeypatch, make, declared, seconds):
    asked, run = [], client._run

    def noted(path, request, *rest):
        asked.append(request["cpu_seconds"])
        return run(path, request, *rest)

    monkeypatch.setattr(client, "_run", noted)
    client.inspect_file(make(tmp_path / "a"), declared, MediaLimits())
    assert asked == [seconds]
    assert client.IMAGE_CPU_SECONDS < client.VIDEO_CPU_SECONDS


def test_a_bomb_of_scans_is_refused_with_what_is_wrong(caller, tmp_path):
    data = hostile.jpeg_scans(tmp_path / "a.jpg", 2000).read_bytes()
    reservation = caller.reserve(data, "image/jpeg", "a.jpg")
    caller.put(reservation, data)
    reply = caller.complete(reservation)
    assert (reply.status, reply.json()["code"]) == (400, "invalidRequest")
    assert "more than 100 scans" in reply.json()["errors"][0]["message"]
