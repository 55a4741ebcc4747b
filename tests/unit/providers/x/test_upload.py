"""Uploads to X: resumed after a crash, and sent again a limited number of times."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from socialpub.providers.base import Again, Done, ImageLimits, MediaFile, More, Refused, Wait
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer, Throttled
from tests.unit.providers.x.script import (
    NOW,
    Script,
    answer,
    data,
    gif,
    image,
    invalid,
    job,
    problem,
    run,
    uploaded,
    video,
)

MIB = 1024 * 1024
DAY = 86400
OPENED = data(id="77", media_key="7_77", expires_after_secs=DAY)


def after(*steps: str, script: Script, media: MediaFile, memo: dict[str, Any] | None = None) -> dict[str, Any]:
    for step in steps:
        outcome = run(step, script, "Hi", media, memo=memo)
        assert isinstance(outcome, Done)
        memo = outcome.memo
    assert memo is not None
    return memo


def test_an_image_is_one_call_with_its_category_and_without_its_name():
    script = Script(data(id="11", media_key="3_11", size=120_000, expires_after_secs=DAY))
    memo = after("upload:0", script=script, media=image())
    parts = script.calls[0].request["multipart"]
    assert list(parts) == ["media_category", "media"]
    assert parts["media_category"] == "tweet_image"
    assert (parts["media"].filename, parts["media"].content_type) == ("media.jpg", "image/jpeg")
    assert (parts["media"].offset, parts["media"].length) == (0, 120_000)
    assert memo["media"]["0"]["id"] == "11"


def test_an_image_that_x_has_is_not_sent_again():
    assert after("upload:0", script=Script(), media=image(), memo=uploaded("11")) == uploaded("11")


def test_an_expired_image_is_sent_again():
    script = Script(data(id="12", expires_after_secs=DAY))
    outcome = run("upload:0", script, "Hi", image(), memo=uploaded("11"), seconds=DAY)
    assert isinstance(outcome, Done)
    assert outcome.memo["media"]["0"]["id"] == "12"


def test_an_image_is_fitted_to_the_limits_of_x():
    asked: list[ImageLimits] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        asked.append(limits)
        return replace(media, mime_type="image/png", size_bytes=4_000_000)

    script = Script(data(id="11"))
    run("upload:0", script, "Hi", gif(frames=1), fit=fit)
    assert asked[0].max_bytes == 5_000_000
    assert "image/gif" not in asked[0].types
    assert script.calls[0].file.length == 4_000_000
    assert script.calls[0].file.filename == "media.png"


def test_an_image_that_the_edge_finds_too_large_is_made_smaller():
    sizes: list[int] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        sizes.append(limits.max_bytes)
        return media

    memo: dict[str, Any] = {}
    for status in (413, 431, 413):
        outcome = run("upload:0", Script(answer(status)), "Hi", image(), memo=memo, fit=fit)
        assert isinstance(outcome, Again)
        assert outcome.step == "upload:0"
        memo = outcome.memo
    assert isinstance(run("upload:0", Script(answer(413)), "Hi", image(), memo=memo, fit=fit), Refused)
    assert sizes == [5_000_000, 2_500_000, 1_250_000, 625_000]


def test_an_upload_without_the_scope_names_it_and_leaves_the_account_alone():
    for step, media in (("upload:0", image()), ("init:0", video())):
        outcome = run(step, Script(problem(403, "Forbidden")), "Hi", media)
        assert isinstance(outcome, Refused)
        assert "media.write" in outcome.message
        assert not outcome.reauth


def test_a_response_without_an_id_is_no_answer():
    for unusable in (data(media_key="3_1"), answer(200, b"<html>"), answer(200)):
        with pytest.raises(NoAnswer):
            run("upload:0", Script(unusable), "Hi", image())


def test_a_video_is_sent_in_chunks_and_polled():
    media = video(size_bytes=2 * MIB + 5)
    script = Script(
        OPENED,
        data(expires_at=1),
        answer(204),
        answer(200),
        data(id="77", expires_after_secs=DAY, processing_info={"state": "pending", "check_after_secs": 7}),
        data(id="77", processing_info={"state": "in_progress", "progress_percent": 40, "check_after_secs": 5}),
        data(id="77", processing_info={"state": "succeeded", "progress_percent": 100}),
    )
    memo = after("init:0", "append:0", "finalize:0", script=script, media=media)
    assert script.calls[0].json == {
        "media_type": "video/mp4",
        "total_bytes": 2 * MIB + 5,
        "media_category": "tweet_video",
    }
    pieces = [call for call in script.calls if call.path.endswith("/append")]
    assert [call.path for call in pieces] == ["/2/media/upload/77/append"] * 3
    assert [list(call.request["multipart"]) for call in pieces] == [["segment_index", "media"]] * 3
    assert [call.request["multipart"]["segment_index"] for call in pieces] == ["0", "1", "2"]
    assert [(call.file.offset, call.file.length) for call in pieces] == [(0, MIB), (MIB, MIB), (2 * MIB, 5)]
    assert script.calls[4].json == {}

    waits = []
    for _ in range(3):
        outcome = run("await:0", script, "Hi", media, memo=memo)
        assert isinstance(outcome, Wait)
        waits.append((outcome.seconds, outcome.reason))
        memo = outcome.memo
    assert waits == [
        (7, "X is processing the video"),
        (5, "X is processing the video (40 %)"),
        (2, "X has just processed the video"),
    ]
    assert script.calls[-1].params == {"command": "STATUS", "media_id": "77"}
    after("await:0", script=script, media=media, memo=memo)
    assert script.over


def test_an_animated_gif_is_ready_when_x_names_no_processing():
    script = Script(OPENED, answer(204), answer(204), data(id="77"))
    memo = after("init:0", "append:0", "finalize:0", "await:0", script=script, media=gif())
    assert script.calls[0].json["media_category"] == "tweet_gif"
    assert memo["media"]["0"]["ready_at"] == NOW.timestamp()


@pytest.mark.parametrize(
    ("total", "chunk", "segments"),
    [(1, MIB, 1), (MIB, MIB, 1), (MIB + 1, MIB, 2), (150 * MIB, MIB, 150), (2000 * MIB, 2000 * MIB // 1000, 1000)],
)
def test_a_chunk_is_a_mebibyte_or_a_thousandth(total, chunk, segments):
    script = Script(OPENED, *[answer(204)] * segments)
    memo = after("init:0", "append:0", script=script, media=video(size_bytes=total))
    assert script.over
    assert script.calls[1].file.length == min(chunk, total)
    assert memo["media"]["0"]["segment"] == segments


def test_an_upload_pauses_after_ten_seconds_and_then_continues():
    media = video(size_bytes=3 * MIB)
    memo = after("init:0", script=Script(OPENED), media=media)
    over: Iterator[bool] = iter([False, True])
    outcome = run("append:0", Script(answer(204), answer(204)), "Hi", media, memo=memo, slice_over=lambda: next(over))
    assert isinstance(outcome, More)
    rest = Script(answer(204))
    after("append:0", script=rest, media=media, memo=outcome.memo)
    assert rest.calls[0].request["multipart"]["segment_index"] == "2"


@pytest.mark.parametrize(
    "failure", [NoAnswer("cut"), answer(503), problem(429, "Too many"), problem(401, "No"), answer(200, b"<html>")]
)
def test_a_failed_upload_keeps_the_chunks_before_the_failure(failure):
    media = video(size_bytes=3 * MIB)
    memo = after("init:0", script=Script(OPENED), media=media)
    outcome = run("append:0", Script(answer(204), failure), "Hi", media, memo=memo)
    assert isinstance(outcome, More)
    with pytest.raises((NoAnswer, Throttled, AuthExpired)):
        run("append:0", Script(failure), "Hi", media, memo=outcome.memo)
    rest = Script(answer(204), answer(204))
    after("append:0", script=rest, media=media, memo=outcome.memo)
    assert rest.calls[0].request["multipart"]["segment_index"] == "1"


def test_a_rate_limit_keeps_the_chunks_and_the_wait_that_x_names():
    media = video(size_bytes=3 * MIB)
    memo = after("init:0", script=Script(OPENED), media=media)
    outcome = run(
        "append:0",
        Script(
            answer(204), answer(429, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}, retry_after="600")
        ),
        "Hi",
        media,
        memo=memo,
    )
    assert isinstance(outcome, Wait)
    assert outcome.seconds == 600
    rest = Script(answer(204), answer(204))
    after("append:0", script=rest, media=media, memo=outcome.memo)
    assert rest.calls[0].request["multipart"]["segment_index"] == "1"


@pytest.mark.parametrize("status", [413, 431])
def test_chunks_that_are_too_large_are_halved_in_a_new_session(status):
    media = video(size_bytes=MIB)
    memo = after("init:0", script=Script(OPENED), media=media)
    halvings = 0
    while True:
        outcome = run("append:0", Script(answer(status)), "Hi", media, memo=memo)
        if isinstance(outcome, Refused):
            break
        assert isinstance(outcome, Again)
        assert outcome.step == "init:0"
        halvings += 1
        memo = after("init:0", script=Script(OPENED), media=media, memo=outcome.memo)
        assert memo["media"]["0"]["chunk_bytes"] == MIB >> halvings
        assert memo["media"]["0"]["segment"] == 0
    assert halvings == 4


@pytest.mark.parametrize("step", ["append:0", "finalize:0", "await:0"])
@pytest.mark.parametrize(
    "gone", [invalid("BadRequest: Not found"), problem(404, "Not Found"), invalid("segments are missing")]
)
def test_a_session_unknown_to_x_restarts_once(step, gone):
    media = video(size_bytes=10)
    memo = after("init:0", script=Script(OPENED), media=media)
    back: dict[str, int] = {}
    outcome = run(step, Script(gone), "Hi", media, memo=memo, back=back)
    assert isinstance(outcome, Again)
    assert outcome.step == "init:0"
    memo = after("init:0", script=Script(data(id="78", expires_after_secs=DAY)), media=media, memo=outcome.memo)
    assert memo["media"]["0"]["id"] == "78"
    assert isinstance(run(step, Script(gone), "Hi", media, memo=memo, back=back), Refused)


@pytest.mark.parametrize("step", ["append:0", "finalize:0", "await:0"])
def test_an_expired_session_restarts(step):
    media = video(size_bytes=10)
    memo = after("init:0", script=Script(OPENED), media=media)
    outcome = run(step, Script(), "Hi", media, memo=memo, seconds=DAY)
    assert isinstance(outcome, Again)
    assert outcome.step == "init:0"


@pytest.mark.parametrize("step", ["finalize:0", "await:0"])
def test_a_video_that_x_cannot_process_has_a_reason_and_a_remedy(step):
    media = video(size_bytes=10)
    memo = after("init:0", script=Script(OPENED), media=media)
    failed = data(processing_info={"state": "failed", "error": {"name": "InvalidMedia", "message": "Bad format"}})
    outcome = run(step, Script(failed), "Hi", media, memo=memo)
    assert isinstance(outcome, Refused)
    assert '"Bad format"' in outcome.message
    assert "H.264" in outcome.message


def test_a_video_may_be_processed_for_half_an_hour_but_not_forever():
    media = video(size_bytes=10)
    memo = after("init:0", script=Script(OPENED), media=media)
    working = data(processing_info={"state": "in_progress", "check_after_secs": 60})
    outcome: Any = run("await:0", Script(working), "Hi", media, memo=memo)
    for minutes in range(1, 31):
        outcome = run("await:0", Script(working), "Hi", media, memo=outcome.memo, seconds=60 * minutes)
        assert isinstance(outcome, Wait)
    assert isinstance(run("await:0", Script(working), "Hi", media, memo=outcome.memo, seconds=3700), Refused)


def test_alt_text_goes_into_its_wrapper_once():
    media = image(alt="A red bicycle")
    script = Script(data(id="11", associated_metadata={}))
    memo = after("alt:0", script=script, media=media, memo=uploaded("11"))
    assert script.asked == ["POST /2/media/metadata"]
    assert script.calls[0].json == {"id": "11", "metadata": {"alt_text": {"text": "A red bicycle"}}}
    after("alt:0", script=Script(), media=media, memo=memo)


def test_a_refused_alt_text_is_a_note_and_the_post_continues():
    memo = after("alt:0", script=Script(problem(403, "No")), media=image(alt="A bike"), memo=uploaded("11"))
    assert "without the alt text of media item 1" in memo["notes"][0]


def test_an_outage_of_alt_texts_delays_the_post_at_most_five_tries():
    media, memo = image(alt="A bike"), uploaded("11")
    for _ in range(4):
        outcome = run("alt:0", Script(answer(500)), "Hi", media, memo=memo)
        assert isinstance(outcome, Wait)
        memo = outcome.memo
    memo = after("alt:0", script=Script(answer(500)), media=media, memo=memo)
    assert memo["notes"]


def test_an_alt_text_step_raises_errors_of_account_and_app():
    for status, kind in ((401, AuthExpired), (429, Throttled), (402, AppRefused)):
        with pytest.raises(kind):
            run("alt:0", Script(problem(status, "No")), "Hi", image(alt="A bike"), memo=uploaded("11"))


def test_a_step_does_not_change_its_job():
    given = job(
        Script(answer(204)), "Hi", video(size_bytes=10), memo=after("init:0", script=Script(OPENED), media=video())
    )
    before = repr(given.memo)
    run("append:0", Script(answer(204)), "Hi", video(size_bytes=10), memo=given.memo)
    assert repr(given.memo) == before
