"""The bytes: in order, resumed where TikTok says, never anew once TikTok may have the last of them."""

import pytest

from socialpub.providers.errors import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.providers.outcomes import Again, Done, More, Outcome, Refused, Unknown, Wait
from socialpub.providers.responses import HttpResponse
from tests.unit.providers.tiktok.script import (
    ADDRESS,
    CHUNK,
    DRAFT,
    PUBLISH_ID,
    Script,
    envelope,
    film,
    opened,
    page,
    put,
    received,
    run,
    stands,
)

SIZE = 64_000_001
LONG = film(SIZE)
"""Six chunks: five of ten million bytes, and the rest."""
STATUS = "status/fetch/"


def chunk(index: int) -> str:
    last = SIZE if index == 5 else (index + 1) * CHUNK
    return f"bytes {index * CHUNK}-{last - 1}/{SIZE}"


def sent(outcome: Outcome) -> int:
    assert isinstance(outcome, Done | More | Wait)
    return int(outcome.memo["upload"]["sent"])


# --- all but the last ------------------------------------------------------------------------------------------------


def test_chunks_go_in_order_and_stop_before_the_last() -> None:
    script = Script(received(0), put(206), put(206), put(200), put(201), put(206))
    outcome = run("send_chunks", script, LONG, memo=opened())
    assert script.asked == [STATUS, chunk(0), chunk(1), chunk(2), chunk(3), chunk(4)]
    assert isinstance(outcome, Done)
    assert sent(outcome) == 5
    assert script.calls[0].json == {"publish_id": PUBLISH_ID}


def test_a_put_goes_to_the_very_address_with_the_file_s_type() -> None:
    script = Script(put(201))
    run("send_last", script, film(mime_type="video/quicktime"), memo=opened())
    call = script.calls[0]
    assert (call.method, call.path) == ("PUT", ADDRESS)
    assert call.request["headers"] == {
        "content-type": "video/quicktime",
        "content-range": "bytes 0-14999999/15000000",
    }


def test_a_run_that_had_its_time_comes_back_for_the_rest() -> None:
    script = Script(received(0), put(206))
    outcome = run("send_chunks", script, LONG, memo=opened(), slice_over=lambda: True)
    assert isinstance(outcome, More)
    assert sent(outcome) == 1
    following = Script(received(CHUNK), put(206))
    again = run("send_chunks", following, LONG, memo=outcome.memo, slice_over=lambda: True)
    assert following.asked == [STATUS, chunk(1)]
    assert sent(again) == 2


def test_what_a_dead_worker_sent_without_writing_it_down_is_not_sent_again() -> None:
    script = Script(received(3 * CHUNK), put(206), put(206))
    assert sent(run("send_chunks", script, LONG, memo=opened(1))) == 5
    assert script.asked == [STATUS, chunk(3), chunk(4)]


def test_a_count_that_lags_behind_is_not_believed() -> None:
    for told in (received(CHUNK), stands("PROCESSING_UPLOAD"), received(CHUNK + 1)):
        script = Script(told, put(206))
        run("send_chunks", script, LONG, memo=opened(4))
        assert script.asked == [STATUS, chunk(4)]


def test_everything_but_the_last_is_there_already() -> None:
    script = Script(received(5 * CHUNK))
    assert sent(run("send_chunks", script, LONG, memo=opened())) == 5


def test_a_cut_in_the_middle_keeps_what_went_through() -> None:
    script = Script(received(0), put(206), put(206), NoAnswer("cut"))
    outcome = run("send_chunks", script, LONG, memo=opened())
    assert isinstance(outcome, More)
    assert sent(outcome) == 2


@pytest.mark.parametrize("error", [NoAnswer("cut"), NotSent("no"), AuthExpired("spent")])
def test_a_run_that_sent_nothing_is_left_to_the_engine(error: Exception) -> None:
    with pytest.raises(type(error)):
        run("send_chunks", Script(received(0), error), LONG, memo=opened())
    with pytest.raises(type(error)):
        run("send_chunks", Script(error), LONG, memo=opened())


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408, 416])
def test_a_chunk_that_was_not_taken_is_tried_five_times_with_growing_pauses(status: int) -> None:
    memo, pauses = opened(), []
    for _ in range(4):
        outcome = run("send_chunks", Script(received(0), put(status)), LONG, memo=memo)
        assert isinstance(outcome, Wait)
        pauses.append(outcome.seconds)
        memo = outcome.memo
    assert pauses == [2, 5, 15, 60]
    fifth = run("send_chunks", Script(received(0), put(status)), LONG, memo=memo)
    assert isinstance(fifth, Again)
    assert (fifth.step, fifth.limit) == ("creator_info", 1)
    assert "publish_id" not in fifth.memo
    assert "upload" not in fifth.memo


def test_tries_are_counted_for_one_chunk_only() -> None:
    outcome = run("send_chunks", Script(received(0), put(206), put(502)), LONG, memo=opened(tries=3))
    assert isinstance(outcome, Wait)
    assert (outcome.seconds, sent(outcome)) == (2, 1)


def test_out_of_step_is_resolved_by_what_tiktok_has() -> None:
    first = run("send_chunks", Script(received(0), put(416)), LONG, memo=opened())
    assert isinstance(first, Wait)
    script = Script(received(2 * CHUNK), put(206), put(206), put(206))
    assert sent(run("send_chunks", script, LONG, memo=first.memo)) == 5
    assert script.asked == [STATUS, chunk(2), chunk(3), chunk(4)]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_upload_that_is_gone_before_its_last_byte_begins_anew_once(status: int) -> None:
    back: dict[str, int] = {}
    outcome = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened(), back=back)
    assert isinstance(outcome, Again)
    assert outcome.step == "creator_info"
    refused = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened(), back=back)
    assert isinstance(refused, Refused)
    assert "Nothing was posted" in refused.message


def test_a_draft_begins_anew_with_its_own_first_step() -> None:
    outcome = run("send_chunks", Script(received(0), put(404)), LONG, memo=opened(), options=DRAFT)
    assert isinstance(outcome, Again)
    assert outcome.step == "init_draft"


@pytest.mark.parametrize(
    "answer",
    [
        envelope(400, "invalid_publish_id"),
        envelope(400, "token_not_authorized_for_specified_publish_id"),
        stands("FAILED", fail_reason="internal"),
    ],
)
def test_a_task_that_tiktok_has_no_more_begins_anew(answer: HttpResponse) -> None:
    assert isinstance(run("send_chunks", Script(answer), LONG, memo=opened()), Again)


@pytest.mark.parametrize("status", [400, 302, 411])
def test_a_chunk_that_was_refused_outright_ends_the_post(status: int) -> None:
    outcome = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened())
    assert isinstance(outcome, Refused)
    assert str(status) in outcome.message


def test_an_address_that_is_over_is_not_used() -> None:
    outcome = run("send_chunks", Script(), LONG, memo=opened(seconds_left=0))
    assert isinstance(outcome, Again)


def test_an_address_is_judged_again_when_it_is_used() -> None:
    memo = opened()
    memo["upload"]["address"] = "sealed https://evil.example/?t=hush"
    with pytest.raises(Rejected) as caught:
        run("send_last", Script(), memo=memo)
    assert "hush" not in caught.value.message


# --- the last one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 206])
def test_a_last_chunk_that_was_taken_is_done(status: int) -> None:
    script = Script(put(status))
    outcome = run("send_last", script, LONG, memo=opened(5))
    assert script.asked == [chunk(5)]
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == PUBLISH_ID


@pytest.mark.parametrize("error", [NoAnswer("cut"), NotSent("not reached")])
def test_a_cut_or_a_failed_connection_is_left_to_the_engine(error: Exception) -> None:
    with pytest.raises(type(error)):
        run("send_last", Script(error), LONG, memo=opened(5))


def test_an_answer_that_nobody_documents_leaves_it_open() -> None:
    with pytest.raises(NoAnswer):
        run("send_last", Script(put(204)), LONG, memo=opened(5))


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 408, 416, 429, 500, 502])
@pytest.mark.parametrize(
    "told",
    [
        received(SIZE),
        stands("PUBLISH_COMPLETE"),
        stands("SEND_TO_USER_INBOX", uploaded_bytes=0),
        stands("FAILED", fail_reason="spam_risk"),
    ],
)
def test_whatever_the_put_said_all_bytes_at_tiktok_mean_that_it_arrived(status: int, told: HttpResponse) -> None:
    outcome = run("send_last", Script(put(status), told), LONG, memo=opened(5))
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == PUBLISH_ID


@pytest.mark.parametrize("status", [302, 400, 403, 404, 416, 500])
@pytest.mark.parametrize(
    "told",
    [
        NoAnswer("cut"),
        AuthExpired("spent"),
        Throttled("full"),
        page(502),
        envelope(401, "access_token_invalid"),
        envelope(401, "scope_not_authorized"),
        stands("PROCESSING_UPLOAD"),
        stands("NEVER_HEARD_OF"),
    ],
)
def test_when_tiktok_cannot_be_heard_the_outcome_is_unknown(status: int, told: HttpResponse | Exception) -> None:
    assert isinstance(run("send_last", Script(put(status), told), LONG, memo=opened(5)), Unknown)


@pytest.mark.parametrize("status", [416, 429, 500, 502])
def test_a_last_chunk_that_certainly_is_not_there_is_sent_again(status: int) -> None:
    memo, pauses = opened(5), []
    for _ in range(4):
        outcome = run("send_last", Script(put(status), received(5 * CHUNK)), LONG, memo=memo)
        assert isinstance(outcome, Wait)
        pauses.append(outcome.seconds)
        memo = outcome.memo
    assert pauses == [2, 5, 15, 60]
    lapses = run("send_last", Script(put(status), received(5 * CHUNK)), LONG, memo=memo)
    assert isinstance(lapses, Wait)
    assert lapses.seconds > 3600
    assert lapses.memo == memo


def test_once_the_last_byte_went_out_nothing_begins_anew_before_the_upload_has_lapsed() -> None:
    waits = run("send_last", Script(put(416), received(2 * CHUNK)), LONG, memo=opened(5))
    assert isinstance(waits, Wait)
    late = waits.seconds
    assert isinstance(run("send_last", Script(received(2 * CHUNK)), LONG, memo=waits.memo, seconds=late), Again)
    assert isinstance(run("send_last", Script(received(SIZE)), LONG, memo=waits.memo, seconds=late), Done)


@pytest.mark.parametrize("status", [403, 404])
def test_an_upload_that_is_gone_begins_anew_while_bytes_are_missing(status: int) -> None:
    assert isinstance(run("send_last", Script(put(status), received(0)), memo=opened()), Again)
    assert isinstance(run("send_last", Script(put(status), received(0)), memo=opened(), unknown_before=True), Again)


def test_a_task_that_is_gone_begins_anew_only_when_its_last_byte_was_plainly_refused() -> None:
    def outcome(status: int, tries: int = 0, unknown_before: bool = False) -> Outcome:
        script = Script(put(status), envelope(400, "invalid_publish_id"))
        return run("send_last", script, memo=opened(tries=tries), unknown_before=unknown_before)

    assert isinstance(outcome(404), Again)
    assert isinstance(outcome(404, tries=1), Unknown)
    assert isinstance(outcome(404, unknown_before=True), Unknown)
    assert isinstance(outcome(502), Unknown)


def test_a_refused_last_chunk_ends_the_post() -> None:
    assert isinstance(run("send_last", Script(put(400), received(0)), memo=opened()), Refused)


def test_when_the_hour_is_over_tiktok_is_asked_before_anything_begins_anew() -> None:
    over = opened(seconds_left=0)
    script = Script(received(0))
    assert isinstance(run("send_last", script, memo=over, unknown_before=True), Again)
    assert script.asked == [STATUS]
    assert isinstance(run("send_last", Script(received(15_000_000)), memo=over, unknown_before=True), Done)
    assert isinstance(run("send_last", Script(NoAnswer("cut")), memo=over, unknown_before=True), Unknown)
