"""After the commit: only TikTok's verdict ends the polling."""

from typing import Any

import pytest

from socialpub.providers.auth import Account
from socialpub.providers.base import Again, CannotTell, Done, Memo, Outcome, Published, Readback, Refused, Wait
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, Rejected, Throttled
from tests.unit.providers.tiktok.script import (
    ADAPTER,
    DRAFT,
    PUBLISH_ID,
    Script,
    envelope,
    job,
    ok,
    opened,
    page,
    photo,
    received,
    run,
    video,
    with_status,
)

POST_ID = 7000000000000000123
STEP = "await_outcome"


def complete(*ids: Any, **more: Any) -> HttpResponse:
    return with_status("PUBLISH_COMPLETE", publicaly_available_post_id=list(ids), **more)


@pytest.mark.parametrize("answer", [with_status("PUBLISH_COMPLETE"), complete()])
def test_a_post_without_an_id_is_published(answer):
    script = Script(answer)
    assert run(STEP, script, memo=opened()) == Published(None, None)
    assert script.calls[0].json == {"publish_id": PUBLISH_ID}


@pytest.mark.parametrize("ids", [(POST_ID,), (str(POST_ID),), (POST_ID, POST_ID + 1)])
def test_the_first_id_counts_exactly_and_makes_the_link(ids):
    outcome = run(STEP, Script(complete(*ids)), memo=opened())
    assert outcome == Published(str(POST_ID), f"https://www.tiktok.com/@demo.owner/video/{POST_ID}")


def test_the_correct_spelling_of_the_ids_is_also_read():
    answer = with_status("PUBLISH_COMPLETE", publicly_available_post_id=[POST_ID])
    outcome = run(STEP, Script(answer), memo=opened())
    assert isinstance(outcome, Published)
    assert outcome.post_id == str(POST_ID)


@pytest.mark.parametrize("odd", [[None], [True], ["../x"], [{}], "x", 0, {"a": 1}])
def test_a_malformed_id_is_ignored(odd):
    answer = with_status("PUBLISH_COMPLETE", publicaly_available_post_id=odd)
    assert run(STEP, Script(answer), memo=opened()) == Published(None, None)


def test_photos_have_an_address_of_their_own():
    outcome = run(STEP, Script(complete(POST_ID)), photo(), memo=opened())
    assert outcome == Published(str(POST_ID), f"https://www.tiktok.com/@demo.owner/photo/{POST_ID}")


def test_a_connection_that_may_list_videos_gets_tiktok_s_own_link():
    account = Account("oid", scopes=frozenset({"video.list", "video.publish"}))
    shared = "https://www.tiktok.com/@demo.owner/photo/7000000000000000123?u=1"
    script = Script(complete(POST_ID), ok(videos=[{"id": str(POST_ID), "share_url": shared}]))
    assert run(STEP, script, photo(), memo=opened(), account=account) == Published(str(POST_ID), shared)
    assert script.calls[1].path == "/v2/video/query/?fields=id,share_url"
    assert script.calls[1].json == {"filters": {"video_ids": [str(POST_ID)]}}


@pytest.mark.parametrize(
    "answer",
    [
        ok(),
        ok(videos=[]),
        ok(videos=[{"id": "1", "share_url": "https://x.example"}]),
        ok(videos=[{"id": str(POST_ID), "share_url": "javascript:x"}]),
        ok(videos=[{"id": str(POST_ID), "share_url": "http://www.tiktok.com/x"}]),
        page(502),
        NoAnswer("cut"),
        Throttled("full"),
    ],
)
def test_a_missing_link_changes_nothing(answer):
    account = Account("oid", scopes=frozenset({"video.list"}))
    outcome = run(STEP, Script(complete(POST_ID), answer), memo=opened(), account=account)
    assert outcome == Published(str(POST_ID), f"https://www.tiktok.com/@demo.owner/video/{POST_ID}")


def test_a_draft_in_the_inbox_is_settled_with_a_note():
    outcome = run(STEP, Script(with_status("SEND_TO_USER_INBOX")), memo=opened(), options=DRAFT)
    assert isinstance(outcome, Done)
    assert any("in the TikTok inbox" in note for note in outcome.memo["notes"])
    assert run("settle_draft", Script(), memo=outcome.memo, options=DRAFT) == Published(None, None)


def test_a_direct_post_in_the_inbox_is_also_settled_with_a_note():
    waits = run(STEP, Script(with_status("SEND_TO_USER_INBOX")), memo=opened())
    assert isinstance(waits, Wait)
    assert any("in the TikTok inbox" in note for note in waits.memo["notes"])
    assert run(STEP, Script(with_status("SEND_TO_USER_INBOX")), memo=waits.memo) == Published(None)


def test_a_draft_that_its_owner_finished_at_once_is_a_post():
    outcome = run(STEP, Script(complete(POST_ID)), memo=opened(), options=DRAFT)
    assert isinstance(outcome, Published)
    assert outcome.post_id == str(POST_ID)


@pytest.mark.parametrize(
    ("seconds", "pause"), [(0, 5), (59, 5), (60, 15), (599, 15), (600, 60), (3599, 60), (3600, 900), (90_000, 900)]
)
def test_tiktok_is_asked_less_and_less_often(seconds, pause):
    outcome = run(STEP, Script(received(15_000_000)), memo=opened(), seconds=seconds)
    assert isinstance(outcome, Wait)
    assert outcome.seconds == pause
    assert outcome.memo == opened()


def test_after_half_an_hour_the_reason_is_a_missing_confirmation():
    early = run(STEP, Script(with_status("PROCESSING_DOWNLOAD")), photo(), memo=opened(), seconds=1799)
    late = run(STEP, Script(with_status("PROCESSING_DOWNLOAD")), photo(), memo=opened(), seconds=1800)
    assert isinstance(early, Wait)
    assert isinstance(late, Wait)
    assert early.reason == "TikTok is processing the photos"
    assert "not confirmed" in late.reason


def test_an_unknown_status_means_work_in_progress():
    assert isinstance(run(STEP, Script(with_status("NEVER_HEARD_OF")), memo=opened()), Wait)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (ok(), NoAnswer),
        (page(502), NoAnswer),
        (envelope(500, "internal_error"), NoAnswer),
        (envelope(429, "rate_limit_exceeded"), Throttled),
        (envelope(401, "access_token_invalid"), AuthExpired),
        (envelope(401, "scope_not_authorized"), Rejected),
        (envelope(400, "invalid_publish_id"), Rejected),
        (envelope(400, "token_not_authorized_for_specified_publish_id"), Rejected),
        (envelope(400, "never_heard_of"), Rejected),
    ],
)
def test_a_refused_poll_is_no_verdict(answer, kind):
    with pytest.raises(kind):
        run(STEP, Script(answer), memo=opened())


def test_an_uncertain_last_chunk_is_polled_until_an_hour_after_its_address_expires():
    memo = opened(5, seconds_left=3000, out=True, watched="The connection broke.")

    def at(seconds: float, memo: Memo, count: int) -> Outcome:
        return run(STEP, Script(received(count)), video(64_000_001), memo=memo, seconds=seconds)

    early = at(3059, memo, 0)
    assert early == Wait(60, early.reason if isinstance(early, Wait) else "", memo)
    lapsed = at(3061, memo, 0)
    assert isinstance(lapsed, Wait)
    assert "TikTok has 0 of 64000001 bytes" in lapsed.reason
    moved = at(5000, lapsed.memo, 50_000_000)
    assert isinstance(moved, Wait)
    still_moving = at(5000 + 3599, moved.memo, 50_000_000)
    assert isinstance(still_moving, Wait)
    over = at(5000 + 3600, still_moving.memo, 50_000_000)
    assert isinstance(over, Refused)
    assert over.verdict
    assert over.message.startswith("The connection broke. TikTok has 50000000 of 64000001 bytes.")
    assert isinstance(at(9e4, still_moving.memo, 64_000_001), Wait), "whole after all"


@pytest.mark.parametrize(
    "state", [with_status("PROCESSING_UPLOAD"), with_status("NEVER_HEARD_OF"), received(64_000_001)]
)
def test_a_missing_byte_count_proves_nothing(state):
    memo = opened(5, seconds_left=-9e4, out=True, watched="The connection broke.", short=[0, 0])
    assert isinstance(run(STEP, Script(state), video(64_000_001), memo=memo), Wait)


def test_a_low_count_of_an_accepted_video_is_only_late():
    memo = opened(6, seconds_left=-9e4, out=True)
    assert isinstance(run(STEP, Script(received(0)), video(64_000_001), memo=memo), Wait)


def failed(reason: str | None) -> HttpResponse:
    return with_status("FAILED", **({"fail_reason": reason} if reason else {}))


@pytest.mark.parametrize(
    ("reason", "says", "reauth", "rest"),
    [
        ("file_format_check_failed", "H.264", False, 0),
        ("duration_check_failed", "12.0 s", False, 0),
        ("frame_rate_check_failed", "30 frames per second", False, 0),
        ("picture_size_check_failed", "1080×1920", False, 0),
        ("publish_cancelled", "canceled", False, 0),
        ("auth_removed", "Connect the account again", True, 0),
        ("spam_risk_user_banned_from_posting", "banned this account", False, 86_400),
        ("spam_risk_text", "Change the caption", False, 0),
        ("spam_risk", "spam", False, 0),
        ("never_heard_of", "never_heard_of", False, 0),
        (None, "could not publish", False, 0),
    ],
)
def test_a_fail_reason_names_the_remedy_and_is_a_verdict(reason, says, reauth, rest):
    outcome = run(STEP, Script(failed(reason)), memo=opened())
    assert isinstance(outcome, Refused)
    assert outcome.verdict
    assert says in outcome.message
    assert (outcome.reauth, outcome.rest_seconds) == (reauth, rest)


@pytest.mark.parametrize(
    ("reason", "seconds"),
    [("internal", 600), ("video_pull_failed", 300), ("photo_pull_failed", 300), ("spam_risk_too_many_posts", 86_400)],
)
def test_a_passing_failure_gets_one_new_task_and_no_third(reason, seconds):
    back: dict[str, int] = {}
    outcome = run(STEP, Script(failed(reason)), memo=opened(), back=back)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.limit, outcome.seconds) == ("creator_info", 1, seconds)
    assert "publish_id" not in outcome.memo
    refused = run(STEP, Script(failed(reason)), memo=opened(), back=back)
    assert isinstance(refused, Refused)
    assert refused.verdict


@pytest.mark.parametrize(
    "state",
    [
        received(64_000_001),
        with_status("PROCESSING_UPLOAD"),
        with_status("NEVER_HEARD_OF"),
        with_status("PUBLISH_COMPLETE"),
        with_status("SEND_TO_USER_INBOX"),
        with_status("FAILED", fail_reason="internal"),
    ],
)
def test_a_video_that_tiktok_may_have_is_only_polled(state):
    script = Script(state)
    assert ADAPTER.recover(job(script, video(64_000_001), memo=opened(5))) == Done(opened(5))


def test_a_video_whose_last_bytes_are_missing_is_not_there():
    for got in (0, 50_000_000, 64_000_000):
        assert ADAPTER.recover(job(Script(received(got)), video(64_000_001), memo=opened(5))) == Readback(whole=False)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(page(502), NoAnswer), (envelope(400, "invalid_publish_id"), Rejected), (NoAnswer("cut"), NoAnswer)],
)
def test_a_read_back_without_a_response_is_an_error(answer, kind):
    with pytest.raises(kind):
        ADAPTER.recover(job(Script(answer), memo=opened()))


def test_photos_without_a_publish_id_cannot_be_read_back():
    found = ADAPTER.recover(job(Script(), photo(), memo={"photos": []}))
    assert isinstance(found, CannotTell)
    assert "Check the profile" in found.hint


def test_an_id_that_comes_late_can_be_filled_in():
    assert ADAPTER.fill_in(job(Script(complete()), memo=opened())) is None
    assert ADAPTER.fill_in(job(Script(received(1)), memo=opened())) is None
    found = ADAPTER.fill_in(job(Script(complete(POST_ID)), memo=opened()))
    assert found == Published(str(POST_ID), f"https://www.tiktok.com/@demo.owner/video/{POST_ID}")
