"""Requests that are kept for a test, without their credentials."""

from socialpub.sandbox import World
from tests.sandbox.files import MP4
from tests.sandbox.pinterest_client import PinterestClient
from tests.sandbox.tiktok_client import TikTokClient
from tests.sandbox.x_client import XClient


def test_requests_are_recorded_when_asked_for_and_without_credentials(world: World, x: XClient) -> None:
    x.post("unseen")
    world.record = True
    x.post("seen", reply_settings="verified")
    x.upload()
    created, uploaded = world.requests
    assert (created.method, created.path, created.json) == (
        "POST",
        "/2/tweets",
        {"text": "seen", "reply_settings": "verified"},
    )
    assert [name for name, _, _ in uploaded.fields] == ["media_category", "media"]
    assert x.token not in repr(list(world.requests))


def test_streamed_bodies_are_recorded_by_their_parts_and_upload_urls_without_their_token(
    world: World, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    world.record = True
    tiktok.put(tiktok.begin(), MP4)
    pinterest.video()
    begun, put, registered, uploaded = world.requests
    assert begun.json["source_info"]["video_size"] == len(MP4)
    assert (put.path, set(put.query)) == ("/upload/video/", {"upload_id"})
    assert registered.json == {"media_type": "video"}
    assert uploaded.fields[-1][0] == "file"
    (task,) = world.tiktok.tasks.all.values()
    shown = repr(list(world.requests))
    assert task.upload_token not in shown
    assert tiktok.token not in shown
