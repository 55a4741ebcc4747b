"""File uploads to the sandbox's TikTok: the plan, the chunks, how it ends."""

import hashlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import ConnectionCut, World
from socialpub.sandbox.tiktok.chunk_upload import chunk_plan_complaint
from tests.sandbox.tiktok_caller import FILM, TikToker, code, publish_id
from tests.support.hand_clock import HandClock

MEGA = 1_000_000


@pytest.fixture
def demo(world: World, web: TestClient) -> TikToker:
    world.tiktok.probes_video = False
    world.tiktok.moderation_seconds = 0
    return TikToker(web, world)


@pytest.mark.parametrize(
    ("size", "chunk_size", "count"),
    [
        (1_000_000, 1_000_000, 1),
        (4_999_999, 4_999_999, 1),
        (64_000_000, 64_000_000, 1),
        (64_000_001, 10_000_000, 6),
        (50_000_123, 10_000_000, 5),
        (158_008_374, 5_242_880, 30),
        (602_285_541, 10_000_000, 60),
        (4_294_967_296, 10_000_000, 429),
    ],
)
def test_the_plans_of_the_documents_are_taken(size: int, chunk_size: int, count: int) -> None:
    assert chunk_plan_complaint(size, chunk_size, count, lenient_mib=False) == ""


@pytest.mark.parametrize(
    ("size", "chunk_size", "count", "wrong"),
    [
        (64_000_001, 10_000_000, 7, "The total chunk count is invalid"),
        (15_000_000, 10_000_000, 2, "The total chunk count is invalid"),
        (15_000_000, 10_000_000, 1, "The chunk size is invalid"),
        (64_000_001, 64_000_001, 1, "The chunk size is invalid"),
        (8_000_000, 4_000_000, 2, "The chunk size is invalid"),
        (5_000_000_000, 10_000_000, 500, "The chunk size is invalid"),
        (0, 0, 1, "The chunk size is invalid"),
    ],
)
def test_other_plans_are_refused(size: int, chunk_size: int, count: int, wrong: str) -> None:
    assert chunk_plan_complaint(size, chunk_size, count, lenient_mib=False) == wrong


def test_binary_megabytes_can_be_told_to_do(world: World, demo: TikToker) -> None:
    size = 64 * 1024 * 1024
    assert code(demo.begin(size)) == "invalid_params"
    world.tiktok.lenient_mib = True
    assert code(demo.begin(size)) == "ok"


def test_a_film_in_one_piece_is_posted(world: World, demo: TikToker) -> None:
    begun = demo.begin(title="Evening light #demo", disable_comment=True)
    data = begun.json()["data"]
    assert data["publish_id"].startswith("v_pub_file~v2-1.")
    assert len(data["upload_url"]) <= 256
    taken = demo.put(begun, FILM)
    assert (taken.status_code, taken.content) == (201, b"")
    assert taken.headers["content-range"] == f"bytes 0-{len(FILM)}/{len(FILM)}"
    first, second = demo.status(publish_id(begun)), demo.status(publish_id(begun))
    assert first == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": len(FILM)}
    assert second["status"] == "PUBLISH_COMPLETE"
    assert second["publicaly_available_post_id"] == [], "only the user sees it"
    (post,) = world.tiktok.posts
    assert (post.title, post.privacy, post.options) == ("Evening light #demo", "SELF_ONLY", {"disable_comment": True})
    assert post.media[0].sha256 == hashlib.sha256(FILM).hexdigest()
    assert world.tiktok.counts["video_init"] == 1


def test_a_large_film_goes_in_chunks_that_come_in_order_and_whole(world: World, demo: TikToker) -> None:
    data = FILM + bytes(10 * MEGA + 500 - len(FILM))
    begun = demo.begin(len(data), 5 * MEGA, 2)
    (task,) = world.tiktok.tasks.all.values()
    whole = len(data)
    assert demo.put(begun, data[5 * MEGA :], 5 * MEGA, whole).status_code == 416, "not this one yet"
    assert demo.put(begun, data[: 4 * MEGA], 0, whole).status_code == 416, "not what the plan says"
    assert demo.put(begun, data[: 5 * MEGA], 0, whole).status_code == 206
    assert demo.put(begun, data[: 5 * MEGA], 0, whole).status_code == 416, "not again"
    assert demo.status(task.publish_id) == {"status": "PROCESSING_UPLOAD", "uploaded_bytes": 5 * MEGA}
    last = demo.put(begun, data[5 * MEGA :], 5 * MEGA, whole)
    assert (last.status_code, last.headers["content-range"]) == (201, f"bytes 0-{whole}/{whole}")
    assert [put.status for put in task.puts] == [416, 416, 206, 416, 201]
    assert task.media[0].sha256 == hashlib.sha256(data).hexdigest()
    assert world.tiktok.tasks.cache.get(task.media[0].id) == data


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "application/octet-stream"},
        {"content_range": "bytes 0-999"},
        {"content_range": f"bytes 0-{len(FILM)}/{len(FILM) + 1}"},
        {"content_range": f"bytes 5-3/{len(FILM)}"},
        {"authorization": "Bearer x"},
    ],
)
def test_odd_headers_are_400(demo: TikToker, headers: dict[str, str]) -> None:
    assert demo.put(demo.begin(), FILM, **headers).status_code == 400


def test_an_upload_url_lives_an_hour_and_unknown_ones_are_404(
    world: World, web: TestClient, demo: TikToker, clock: HandClock
) -> None:
    begun = demo.begin()
    assert web.put("/tiktok/upload/video/?upload_id=1&upload_token=x", content=FILM).status_code == 404
    clock.forward(3600)
    assert demo.put(begun, FILM).status_code == 403
    assert world.tiktok.posts == []


def test_a_chunk_can_fail_before_it_is_taken_or_after(world: World, demo: TikToker) -> None:
    begun = demo.begin()
    world.tiktok.next("upload_chunk").fails_with(502).times(2)
    assert [demo.put(begun, FILM).status_code for _ in range(2)] == [502, 502]
    world.tiktok.next("upload_chunk").drops_connection_after_effect()
    with pytest.raises(ConnectionCut):
        demo.put(begun, FILM)
    assert demo.status(publish_id(begun))["uploaded_bytes"] == len(FILM)
    assert demo.put(begun, FILM).status_code == 416


def test_answers_that_the_documents_leave_open_can_be_chosen(world: World, demo: TikToker) -> None:
    world.tiktok.last_chunk_status = 200
    world.tiktok.progress_is_last_index = True
    answer = demo.put(demo.begin(), FILM)
    assert (answer.status_code, answer.headers["content-range"]) == (200, f"bytes 0-{len(FILM) - 1}/{len(FILM)}")


def test_a_share_ends_by_time_when_nobody_looks(world: World, demo: TikToker, clock: HandClock) -> None:
    demo.post()
    assert world.tiktok.posts == []
    clock.forward(30)
    assert len(world.tiktok.posts) == 1


@pytest.mark.parametrize(("ids", "told"), [("one", 1), ("several", 2), ("none", 0), ("missing", None)])
def test_a_public_post_gets_its_id_after_moderation(
    world: World, demo: TikToker, clock: HandClock, ids: Any, told: int | None
) -> None:
    world.tiktok.post_ids, world.tiktok.processing_ticks, world.tiktok.moderation_seconds = ids, 0, 60
    begun = demo.post(privacy_level="PUBLIC_TO_EVERYONE")
    early = demo.status(begun).get("publicaly_available_post_id")
    assert early == (None if told is None else [])
    clock.forward(60)
    late = demo.status(begun).get("publicaly_available_post_id")
    assert (None if late is None else len(late)) == told
    if told == 1:
        assert late == [int(world.tiktok.posts[0].id)]
        assert late[0] > 2**53
        query = demo.call("/video/query/?fields=id,share_url", {"filters": {"video_ids": [str(late[0])]}}).json()
        assert query["data"]["videos"][0]["share_url"].endswith(f"/tiktok/@demo/video/{late[0]}")


def test_any_fate_can_be_arranged_for_the_next_shares(world: World, demo: TikToker, clock: HandClock) -> None:
    world.tiktok.next_fate("spam_risk_text")
    world.tiktok.next_fate("never_ends")
    failed, stuck, fine = demo.post(), demo.post(), demo.post()
    clock.forward(86000)
    assert demo.status(failed)["fail_reason"] == "spam_risk_text"
    assert demo.status(stuck)["status"] == "PROCESSING_UPLOAD"
    assert demo.status(fine)["status"] == "PUBLISH_COMPLETE"
    assert len(world.tiktok.posts) == 1
    with pytest.raises(ValueError, match="known"):
        world.tiktok.next_fate("explodes")


def test_a_share_is_told_to_its_own_user_only(world: World, web: TestClient, demo: TikToker) -> None:
    begun = demo.post()
    studio = TikToker(web, world, "studio")
    foreign = studio.look(begun)
    assert (foreign.status_code, code(foreign)) == (400, "token_not_authorized_for_specified_publish_id")
    assert code(demo.look("v_pub_file~v2-1.1")) == "invalid_publish_id"
    assert code(demo.call("/post/publish/cancel/", {"publish_id": begun})) == "publish_not_cancellable"


def test_a_draft_waits_in_the_inbox_until_its_user_posts_it(world: World, demo: TikToker) -> None:
    begun = demo.draft()
    assert demo.put(begun, FILM).status_code == 201
    demo.status(publish_id(begun))
    assert demo.status(publish_id(begun))["status"] == "SEND_TO_USER_INBOX"
    assert world.tiktok.posts == []
    world.tiktok.tasks.finish_draft(publish_id(begun), 2, "PUBLIC_TO_EVERYONE")
    done = demo.status(publish_id(begun))
    assert (done["status"], len(done["publicaly_available_post_id"])) == ("PUBLISH_COMPLETE", 2)
    assert len(world.tiktok.posts) == 2


def test_five_drafts_may_wait(world: World, demo: TikToker, clock: HandClock) -> None:
    first = publish_id(demo.draft())
    for _ in range(4):
        demo.draft()
    clock.forward(60)
    refused = demo.draft()
    assert (refused.status_code, code(refused)) == (403, "spam_risk_too_many_pending_share")
    assert first in world.tiktok.tasks.all
    clock.forward(86400)
    demo.token = TikToker(demo.web, world).token
    assert code(demo.draft()) == "ok"
