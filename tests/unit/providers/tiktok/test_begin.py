"""The calls before the upload: the creator's data, the new task and TikTok's refusals."""

from typing import Any

import pytest

from socialpub.providers.auth import Account
from socialpub.providers.base import Done, Held, Refused
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, Throttled
from tests.unit.providers.tiktok.script import (
    ADDRESS,
    DRAFT,
    PUBLISH_ID,
    Script,
    envelope,
    ok,
    opened,
    page,
    photo,
    run,
    video,
)

PUBLIC = {"privacyLevel": "PUBLIC_TO_EVERYONE"}
CREATOR = {
    "creator_avatar_url": "https://cdn.example/av.jpeg",
    "creator_username": "demo.owner",
    "creator_nickname": "Demo Owner",
    "privacy_level_options": ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"],
    "comment_disabled": False,
    "duet_disabled": True,
    "stitch_disabled": True,
    "max_video_post_duration_sec": 600,
}
TASK = {"publish_id": PUBLISH_ID, "upload_url": ADDRESS}


def creator(**other: Any) -> HttpResponse:
    return ok(**{**CREATOR, **other})


def test_the_creator_is_asked_before_a_direct_post_and_remembered():
    script = Script(creator())
    outcome = run("creator_info", script)
    assert script.asked == ["creator_info/query/"]
    assert isinstance(outcome, Done)
    assert outcome.memo["creator"] == {
        "username": "demo.owner",
        "levels": CREATOR["privacy_level_options"],
        "off": ["duet", "stitch"],
    }


def test_a_level_that_the_account_does_not_offer_is_never_replaced_by_another():
    outcome = run("creator_info", Script(creator()), options=PUBLIC)
    assert isinstance(outcome, Refused)
    assert "PUBLIC_TO_EVERYONE" in outcome.message
    assert "FOLLOWER_OF_CREATOR, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY" in outcome.message


def test_without_levels_the_next_call_decides():
    assert isinstance(run("creator_info", Script(creator(privacy_level_options=[])), options=PUBLIC), Done)
    assert isinstance(run("creator_info", Script(ok())), Done)


def test_a_video_longer_than_the_creator_may_post_is_refused_with_both_figures():
    outcome = run("creator_info", Script(creator(max_video_post_duration_sec=180)), video(duration_seconds=180.5))
    assert isinstance(outcome, Refused)
    assert "180 seconds" in outcome.message
    assert "180.5" in outcome.message
    assert isinstance(run("creator_info", Script(creator(max_video_post_duration_sec=60)), photo()), Done)


def test_a_direct_video_sends_all_options_and_both_brand_fields():
    script = Script(ok(**TASK))
    chosen = {
        "privacyLevel": "SELF_ONLY",
        "disableComment": True,
        "disableStitch": False,
        "videoCoverTimestampMs": 1500,
        "brandOrganicToggle": True,
        "isAigc": True,
    }
    memo = {"creator": {"username": "demo.owner", "levels": [], "off": ["duet"]}}
    run("init_video", script, options=chosen, memo=memo)
    assert script.asked == ["video/init/"]
    assert script.calls[0].json == {
        "post_info": {
            "privacy_level": "SELF_ONLY",
            "title": "Evening light #demo",
            "disable_comment": True,
            "disable_duet": True,
            "disable_stitch": False,
            "video_cover_timestamp_ms": 1500,
            "brand_content_toggle": False,
            "brand_organic_toggle": True,
            "is_aigc": True,
        },
        "source_info": {
            "source": "FILE_UPLOAD",
            "video_size": 15_000_000,
            "chunk_size": 15_000_000,
            "total_chunk_count": 1,
        },
    }


def test_a_post_without_text_sends_no_title():
    script = Script(ok(**TASK))
    run("init_video", script, text="")
    assert "title" not in script.calls[0].json["post_info"]


def test_a_draft_sends_only_the_files_size():
    script = Script(ok(**TASK))
    run("init_draft", script, video(158_008_374), options=DRAFT)
    assert script.asked == ["inbox/video/init/"]
    assert script.calls[0].json == {
        "source_info": {
            "source": "FILE_UPLOAD",
            "video_size": 158_008_374,
            "chunk_size": 10_000_000,
            "total_chunk_count": 15,
        }
    }


def test_the_publish_id_is_kept_and_shown_and_the_address_only_sealed():
    script = Script(ok(**TASK))
    outcome = run("init_video", script)
    assert isinstance(outcome, Done)
    assert outcome.memo["publish_id"] == PUBLISH_ID
    assert outcome.memo["upload"] == opened()["upload"]
    assert script.trace.message == f"publish_id {PUBLISH_ID}"


def test_an_upload_host_that_is_not_listed_holds_all_uploads_and_fails_no_post():
    outcome = run("init_video", Script(ok(publish_id=PUBLISH_ID, upload_url="https://evil.example/?t=hush")))
    assert isinstance(outcome, Held)
    assert (outcome.code, outcome.this_step) == ("upload_host", True)
    assert "evil.example" in outcome.reason
    assert "upload_hosts in [providers.tiktok]" in outcome.reason
    assert "hush" not in outcome.reason


@pytest.mark.parametrize("data", [{}, {"publish_id": PUBLISH_ID}, {"upload_url": ADDRESS}])
def test_a_response_without_a_task_is_no_answer(data):
    with pytest.raises(NoAnswer):
        run("init_video", Script(ok(**data)))


@pytest.mark.parametrize(
    ("chosen", "creator_off", "off"),
    [
        ({}, [], {"comment", "duet", "stitch"}),
        ({"disableComment": False}, [], {"duet", "stitch"}),
        ({"disableComment": False, "disableDuet": False, "disableStitch": False}, [], set()),
        ({"disableComment": False, "disableDuet": False, "disableStitch": False}, ["duet"], {"duet"}),
        ({"disableComment": True, "disableDuet": False}, [], {"comment", "stitch"}),
    ],
)
def test_interactions_are_off_by_default(chosen, creator_off, off):
    memo = {"creator": {"username": "demo.owner", "levels": [], "off": creator_off}}
    script = Script(ok(**TASK))
    run("init_video", script, options={"privacyLevel": "SELF_ONLY", **chosen}, memo=memo)
    info = script.calls[0].json["post_info"]
    assert {name for name in ("comment", "duet", "stitch") if info[f"disable_{name}"]} == off


ENDPOINTS = ["creator_info", "init_video", "init_draft"]


@pytest.mark.parametrize("step", ENDPOINTS)
@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (400, "invalid_param", "Check the text"),
        (400, "invalid_params", "Check the text"),
        (400, "app_version_check_failed", "31.8"),
        (403, "unaudited_client_can_only_post_to_private_accounts", "private"),
        (403, "url_ownership_unverified", "URL properties"),
        (403, "privacy_level_option_mismatch", "Choose another"),
        (400, "never_heard_of", "never_heard_of"),
        (200, "never_heard_of", "never_heard_of"),
    ],
)
def test_a_refusal_names_the_remedy_and_ends_the_post(step, status, code, says):
    script = Script(envelope(status, code, "The total chunk count is invalid"))
    outcome = run(step, script)
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.reauth, outcome.rest_seconds) == (code, False, 0)
    assert says in outcome.message
    assert (script.trace.code, script.trace.request_id) == (code, "20260131AB")
    if code.startswith(("invalid", "never")):
        assert "The total chunk count is invalid" in outcome.message
        assert "20260131AB" in outcome.message


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("step", ENDPOINTS)
def test_a_banned_account_is_paused_for_a_day(step, status):
    outcome = run(step, Script(envelope(status, "spam_risk_user_banned_from_posting")))
    assert isinstance(outcome, Refused)
    assert outcome.rest_seconds == 86_400


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("code", ["spam_risk_too_many_posts", "spam_risk_too_many_pending_share"])
@pytest.mark.parametrize("step", ENDPOINTS)
def test_a_daily_limit_of_the_account_waits_a_day(step, code, status):
    with pytest.raises(Throttled) as caught:
        run(step, Script(envelope(status, code)))
    assert caught.value.retry_after_seconds == 86_400


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("step", ENDPOINTS)
def test_an_app_at_its_cap_delays_direct_posts_of_the_account_for_a_day(step, status):
    with pytest.raises(Throttled) as caught:
        run(step, Script(envelope(status, "reached_active_user_cap")))
    assert caught.value.retry_after_seconds == 86_400
    assert caught.value.steps == {"creator_info", "init_video", "init_photos"}


@pytest.mark.parametrize("step", ENDPOINTS)
@pytest.mark.parametrize("answer", [envelope(401, "access_token_invalid"), envelope(200, "access_token_invalid")])
def test_a_spent_token_is_refreshed_by_the_engine(step, answer):
    with pytest.raises(AuthExpired):
        run(step, Script(answer))


DATE = {"date": "Sat, 21 Nov 2026 12:00:00 GMT"}


def test_a_rate_limit_waits_a_minute_or_the_time_that_tiktok_names():
    limited = envelope(429, "rate_limit_exceeded")
    for answer, seconds in (
        (limited, None),
        (HttpResponse(429, {"retry-after": "300"}, limited.body), 300),
        (HttpResponse(429, {"retry-after": "1"}, limited.body), 60),
        (HttpResponse(429, {"retry-after": "0"}, limited.body), 0),
        (HttpResponse(429, {"retry-after": "Sat, 21 Nov 2026 12:05:00 GMT", **DATE}, limited.body), 300),
        (HttpResponse(429, {"retry-after": "Sat, 21 Nov 2026 12:00:01 GMT", **DATE}, limited.body), 60),
        (HttpResponse(429, {"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT", **DATE}, limited.body), -3600),
        (HttpResponse(429, {"retry-after": "Sat, 21 Nov 2026 12:05:00 GMT"}, limited.body), None),
        (HttpResponse(429, {"retry-after": "soon", **DATE}, limited.body), None),
        (HttpResponse(429, {"retry-after": "Sat, 99 Nov 2026 12:05:00 GMT", **DATE}, limited.body), None),
    ):
        with pytest.raises(Throttled) as caught:
            run("init_video", Script(answer))
        assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "answer",
    [
        envelope(500, "internal_error"),
        envelope(200, "internal_error"),
        envelope(503, "never_heard_of"),
        envelope(500, "ok"),
        page(502),
        page(200),
        page(302),
        page(408),
        HttpResponse(200, {}, b"[]"),
        HttpResponse(200, {}, b'{"data": {"publish_id": "x"}}'),
    ],
)
def test_an_unusable_response_is_no_answer(answer):
    with pytest.raises(NoAnswer):
        run("init_video", Script(answer))


@pytest.mark.parametrize("step", [*ENDPOINTS, "await_outcome"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 407, 429, 502, 503])
@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"denied", b"[]", b'{"message": "x"}', b'{"error": "x"}', b'{"error": {"code": 7}}']
)
def test_a_response_in_another_form_is_no_answer_with_any_status(step, status, body):
    with pytest.raises(NoAnswer) as caught:
        run(step, Script(HttpResponse(status, {"retry-after": "300"}, body)), memo=opened())
    assert f"HTTP {status}" in caught.value.message


@pytest.mark.parametrize(
    ("options", "step", "missing"),
    [({"privacyLevel": "SELF_ONLY"}, "creator_info", "video.publish"), (DRAFT, "init_draft", "video.upload")],
)
@pytest.mark.parametrize("code", ["scope_not_authorized", "scope_permission_missed"])
def test_a_missing_scope_ends_the_connection_only_without_another_way_to_publish(options, step, missing, code):
    both = {"video.publish", "video.upload"}
    for scopes, reauth in ((both, False), ({missing}, True), (set(), False)):
        account = Account("oid", scopes=frozenset(scopes))
        outcome = run(step, Script(envelope(401, code)), options=options, account=account)
        assert isinstance(outcome, Refused)
        assert missing in outcome.message
        assert outcome.reauth is reauth
