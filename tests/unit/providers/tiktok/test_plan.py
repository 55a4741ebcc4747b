"""The plans of posts and the chunks of a video."""

from typing import Any

import pytest

from socialpub.providers.base import Content, Kind, MediaFile
from socialpub.providers.tiktok import upload
from tests.unit.providers.tiktok.script import ADAPTER, DIRECT, DRAFT, photo, video


def names(options: dict[str, Any], *media: MediaFile) -> list[str]:
    plan = ADAPTER.plan(Content("", media), options)
    assert [step.kind for step in plan].count(Kind.COMMIT) == 1
    return [f"{step.name} {step.kind}" for step in plan]


def test_a_short_video_is_committed_by_its_only_chunk():
    assert names(DIRECT, video()) == [
        "creator_info prepare", "init_video prepare", "send_last commit", "await_outcome poll",
    ]  # fmt: skip


def test_of_a_long_video_all_chunks_but_the_last_only_prepare():
    assert names(DIRECT, video(64_000_001))[2:4] == ["send_chunks prepare", "send_last commit"]


def test_a_draft_asks_nothing_about_the_creator_and_ends_in_the_inbox():
    assert names(DRAFT, video()) == [
        "init_draft prepare", "send_last commit", "await_outcome poll", "settle_draft poll",
    ]  # fmt: skip


def test_photos_are_committed_by_the_call_that_names_them():
    assert names(DIRECT, photo(0), photo(1)) == [
        "creator_info prepare", "fit_photos prepare", "init_photos commit", "await_outcome poll",
    ]  # fmt: skip
    assert names(DRAFT, photo())[:2] == ["fit_photos prepare", "init_photo_draft commit"]


@pytest.mark.parametrize(
    ("size", "chunk", "count", "last"),
    [
        (1, 1, 1, 1),
        (1_000_000, 1_000_000, 1, 1_000_000),
        (4_999_999, 4_999_999, 1, 4_999_999),
        (15_000_000, 15_000_000, 1, 15_000_000),
        (64_000_000, 64_000_000, 1, 64_000_000),
        (64_000_001, 10_000_000, 6, 14_000_001),
        (69_999_999, 10_000_000, 6, 19_999_999),
        (70_000_000, 10_000_000, 7, 10_000_000),
        (158_008_374, 10_000_000, 15, 18_008_374),
        (602_285_541, 10_000_000, 60, 12_285_541),
        (4_294_967_296, 10_000_000, 429, 14_967_296),
    ],
)
def test_the_chunk_plan_of_every_size(size, chunk, count, last):
    cut = upload.plan_chunks(size)
    assert (cut.chunk_bytes, cut.count) == (chunk, count)
    assert cut.slice(count - 1)[1] == last
    assert sum(cut.slice(index)[1] for index in range(count)) == size
    assert cut.content_range(count - 1) == f"bytes {size - last}-{size - 1}/{size}"


def test_the_byte_count_determines_the_next_chunk():
    cut = upload.plan_chunks(64_000_001)
    assert [cut.next_after(got) for got in (0, 10_000_000, 50_000_000, 64_000_001)] == [0, 1, 5, 6]
    assert [cut.next_after(got) for got in (1, 9_999_999, 60_000_000, 64_000_000)] == [None] * 4
