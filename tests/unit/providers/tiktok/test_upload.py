"""The upload: ordered, resumed at TikTok's count, and never restarted when the last chunk may have arrived."""

import pytest

from socialpub.providers.base import Again, Done, Held, More, Outcome, Refused, Unknown, Wait, Withdrawn
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, NotSent, Throttled
from tests.unit.providers.tiktok.script import (
    ADDRESS,
    CHUNK,
    DRAFT,
    PUBLISH_ID,
    Script,
    envelope,
    opened,
    page,
    put,
    received,
    run,
    video,
    with_status,
)

SIZE = 64_000_001
LONG = video(SIZE)
"""Six chunks: five of ten million bytes, and the rest."""
STATUS = "status/fetch/"


def chunk(index: int) -> str:
    last = SIZE if index == 5 else (index + 1) * CHUNK
    return f"bytes {index * CHUNK}-{last - 1}/{SIZE}"


def sent(outcome: Outcome) -> int:
    assert isinstance(outcome, Done | More | Wait)
    return int(outcome.memo["upload"]["sent"])


def test_chunks_go_in_order_and_stop_before_the_last():
    script = Script(received(0), put(206), put(206), put(200), put(201), put(206))
    outcome = run("send_chunks", script, LONG, memo=opened())
    assert script.asked == [STATUS, chunk(0), chunk(1), chunk(2), chunk(3), chunk(4)]
    assert isinstance(outcome, Done)
    assert sent(outcome) == 5
    assert script.calls[0].json == {"publish_id": PUBLISH_ID}


def test_a_put_uses_the_given_address_and_the_files_type():
    script = Script(put(201))
    run("send_last", script, video(mime_type="video/quicktime"), memo=opened())
    call = script.calls[0]
    assert (call.method, call.path) == ("PUT", ADDRESS)
    assert call.request["headers"] == {"content-type": "video/quicktime", "content-range": "bytes 0-14999999/15000000"}


def test_a_run_at_its_time_limit_continues_in_the_next_run():
    script = Script(received(0), put(206))
    outcome = run("send_chunks", script, LONG, memo=opened(), slice_over=lambda: True)
    assert isinstance(outcome, More)
    assert sent(outcome) == 1
    following = Script(received(CHUNK), put(206))
    again = run("send_chunks", following, LONG, memo=outcome.memo, slice_over=lambda: True)
    assert following.asked == [STATUS, chunk(1)]
    assert sent(again) == 2


def test_chunks_of_a_dead_worker_are_not_sent_again():
    script = Script(received(3 * CHUNK), put(206), put(206))
    assert sent(run("send_chunks", script, LONG, memo=opened(1))) == 5
    assert script.asked == [STATUS, chunk(3), chunk(4)]


def test_a_lagging_count_is_ignored():
    for state in (received(CHUNK), with_status("PROCESSING_UPLOAD"), received(CHUNK + 1)):
        script = Script(state, put(206))
        run("send_chunks", script, LONG, memo=opened(4))
        assert script.asked == [STATUS, chunk(4)]


def test_no_chunk_is_sent_when_only_the_last_is_missing():
    script = Script(received(5 * CHUNK))
    assert sent(run("send_chunks", script, LONG, memo=opened())) == 5


def test_a_cut_keeps_the_chunks_before_it():
    script = Script(received(0), put(206), put(206), NoAnswer("cut"))
    outcome = run("send_chunks", script, LONG, memo=opened())
    assert isinstance(outcome, More)
    assert sent(outcome) == 2


@pytest.mark.parametrize("error", [NoAnswer("cut"), NotSent("no"), AuthExpired("spent")])
def test_a_run_that_sent_nothing_is_left_to_the_engine(error):
    with pytest.raises(type(error)):
        run("send_chunks", Script(received(0), error), LONG, memo=opened())
    with pytest.raises(type(error)):
        run("send_chunks", Script(error), LONG, memo=opened())


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408, 416])
def test_a_chunk_is_tried_five_times_with_growing_pauses(status):
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


def test_tries_are_counted_for_one_chunk_only():
    outcome = run("send_chunks", Script(received(0), put(206), put(502)), LONG, memo=opened(tries=3))
    assert isinstance(outcome, Wait)
    assert (outcome.seconds, sent(outcome)) == (2, 1)


def test_a_range_error_is_resolved_by_tiktoks_count():
    first = run("send_chunks", Script(received(0), put(416)), LONG, memo=opened())
    assert isinstance(first, Wait)
    script = Script(received(2 * CHUNK), put(206), put(206), put(206))
    assert sent(run("send_chunks", script, LONG, memo=first.memo)) == 5
    assert script.asked == [STATUS, chunk(2), chunk(3), chunk(4)]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_upload_lost_before_its_last_byte_restarts_once(status):
    back: dict[str, int] = {}
    outcome = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened(), back=back)
    assert isinstance(outcome, Again)
    assert outcome.step == "creator_info"
    refused = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened(), back=back)
    assert isinstance(refused, Refused)
    assert "Nothing was posted" in refused.message


def test_a_draft_restarts_with_its_own_first_step():
    outcome = run("send_chunks", Script(received(0), put(404)), LONG, memo=opened(), options=DRAFT)
    assert isinstance(outcome, Again)
    assert outcome.step == "init_draft"


@pytest.mark.parametrize(
    "answer",
    [
        envelope(400, "invalid_publish_id"),
        envelope(400, "token_not_authorized_for_specified_publish_id"),
        with_status("FAILED", fail_reason="internal"),
    ],
)
def test_a_task_unknown_to_tiktok_restarts(answer):
    assert isinstance(run("send_chunks", Script(answer), LONG, memo=opened()), Again)


@pytest.mark.parametrize("status", [400, 302, 411])
def test_a_chunk_that_was_refused_outright_ends_the_post(status):
    outcome = run("send_chunks", Script(received(0), put(status)), LONG, memo=opened())
    assert isinstance(outcome, Refused)
    assert str(status) in outcome.message


def test_an_expired_address_is_not_used():
    outcome = run("send_chunks", Script(), LONG, memo=opened(seconds_left=0))
    assert isinstance(outcome, Again)


@pytest.mark.parametrize("step", ["send_chunks", "send_last"])
def test_an_address_is_checked_again_at_each_use(step):
    memo = opened()
    memo["upload"]["address"] = "sealed https://evil.example/?t=hush"
    outcome = run(step, Script(), LONG, memo=memo)
    assert isinstance(outcome, Held)
    assert (outcome.code, outcome.this_step) == ("upload_host", True)
    assert "evil.example" in outcome.reason
    assert "hush" not in outcome.reason


@pytest.mark.parametrize("status", [200, 206, 400, 401, 403, 404, 410, 416, 503])
def test_a_page_instead_of_the_upload_host_proves_nothing(status):
    for answer in (page(status), HttpResponse(status, {"content-type": "text/html"}, b"Blocked")):
        with pytest.raises(NoAnswer):
            run("send_chunks", Script(received(0), answer), LONG, memo=opened())
        script = Script(answer, received(0))
        assert isinstance(run("send_last", script, LONG, memo=opened(5)), Unknown)
        assert script.asked == [chunk(5), STATUS]


@pytest.mark.parametrize("status", [200, 201, 206])
def test_an_accepted_last_chunk_is_done(status):
    script = Script(put(status))
    outcome = run("send_last", script, LONG, memo=opened(5))
    assert script.asked == [chunk(5)]
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == PUBLISH_ID


OPEN = [NoAnswer("cut"), put(204), page(403), *(put(code) for code in (302, 400, 401, 403, 404, 410, 416, 429, 503))]
"""Responses that may follow the arrival of the last chunk."""


@pytest.mark.parametrize("answer", OPEN)
@pytest.mark.parametrize(
    "state",
    [
        received(SIZE),
        with_status("PUBLISH_COMPLETE"),
        with_status("SEND_TO_USER_INBOX", uploaded_bytes=0),
        with_status("FAILED", fail_reason="spam_risk"),
    ],
)
@pytest.mark.parametrize("unknown_before", [False, True])
def test_a_complete_byte_count_means_arrival_after_any_response(answer, state, unknown_before):
    outcome = run("send_last", Script(answer, state), LONG, memo=opened(5), unknown_before=unknown_before)
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == PUBLISH_ID
    assert not outcome.memo["upload"].get("watched")


UNHEARD = [
    NoAnswer("cut"),
    AuthExpired("spent"),
    Throttled("full"),
    Withdrawn("The profile was disconnected."),
    page(502),
    envelope(401, "access_token_invalid"),
    envelope(401, "scope_not_authorized"),
    envelope(400, "invalid_publish_id"),
    envelope(400, "token_not_authorized_for_specified_publish_id"),
    with_status("PROCESSING_UPLOAD"),
    with_status("NEVER_HEARD_OF"),
    received(0),
    received(5 * CHUNK),
]
"""TikTok's responses without a complete byte count."""


@pytest.mark.parametrize("answer", OPEN)
@pytest.mark.parametrize("state", UNHEARD)
def test_the_outcome_is_unknown_after_the_first_try_and_polled_after_the_second(answer, state):
    first = run("send_last", Script(answer, state), LONG, memo=opened(5, out=False))
    assert isinstance(first, Unknown)
    assert first.memo is not None
    assert first.memo["upload"]["out"] is True
    assert first.memo["publish_id"] == PUBLISH_ID
    script = Script(answer, state)
    second = run("send_last", script, LONG, memo=first.memo, unknown_before=True)
    assert script.asked == [chunk(5), STATUS], "the same bytes, to the same task"
    assert isinstance(second, Done)
    assert second.memo["upload"]["watched"]


def test_the_message_names_tiktoks_byte_count():
    outcome = run("send_last", Script(put(503), received(5 * CHUNK)), LONG, memo=opened(5))
    assert isinstance(outcome, Unknown)
    assert outcome.message.endswith(f"HTTP 503. TikTok has {5 * CHUNK} of {SIZE} bytes.")
    assert outcome.code == "503"


def test_a_foreign_success_does_not_count():
    doubtful = HttpResponse(200, {}, b"welcome")
    assert isinstance(run("send_last", Script(doubtful, received(5 * CHUNK)), LONG, memo=opened(5)), Unknown)
    assert isinstance(run("send_chunks", Script(received(4 * CHUNK), doubtful), LONG, memo=opened(4)), Done)
    certain = HttpResponse(201, {"content-range": f"bytes 0-{SIZE}/{SIZE}"}, b"{}")
    assert isinstance(run("send_last", Script(certain), LONG, memo=opened(5)), Done)


def test_a_new_task_is_begun_only_when_no_try_of_the_last_chunk_can_have_left():
    never_sent = opened(5, seconds_left=0, out=False)
    again = run("send_last", Script(), LONG, memo=never_sent)
    assert isinstance(again, Again)
    assert again.step == "creator_info"
    assert "publish_id" not in again.memo

    script = Script(received(5 * CHUNK))
    assert isinstance(run("send_last", script, LONG, memo=opened(5, seconds_left=0, out=True)), Unknown)
    assert script.asked == [STATUS], "the expired address is not used"
    watched = run("send_last", Script(received(5 * CHUNK)), LONG, memo=never_sent, unknown_before=True)
    assert isinstance(watched, Done)
    assert watched.memo["upload"]["watched"]


def test_a_removed_upload_host_holds_no_post_that_may_be_public():
    memo = opened(5, out=True)
    memo["upload"]["address"] = "sealed https://elsewhere.example/?t=hush"
    script = Script(received(5 * CHUNK))
    assert isinstance(run("send_last", script, LONG, memo=memo, unknown_before=True), Done)
    assert script.asked == [STATUS]
